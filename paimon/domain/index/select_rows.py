"""Find the rows of a data file that a predicate can select, by the file indexes of its columns.

Invariant: each row for which the predicate is true is in the result. Rows for which it is not true may be, too. A
damaged index is a `CorruptTable`.
Source: `FileIndexPredicate`, `FileIndexEvaluator`.
"""

# Each condition becomes the set of rows for which it can be true, or None for all rows. For `a = 7 AND (b > 3 OR c LIKE
# 'x%')` with a bitmap on `a` and a range bitmap on `b`:
#
#     a = 7          {2, 5, 9}          from the bitmap
#     b > 3          {1, 2}             from the range bitmap
#     c LIKE 'x%'    None               no index
#     OR             None
#     AND            {2, 5, 9}
#
# NOT is pushed down to the conditions first. Several indexes of a column narrow each other. The indexes of CHAR serve
# only IS NULL: files pad its values, or do not. TIMESTAMP beyond microseconds has keys that join values, so comparisons
# are widened.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from attrs import frozen
from pyroaring import BitMap

from paimon.domain.deletion.row_slice import ALL_ROWS, NO_ROWS, RowSelection
from paimon.domain.errors import CorruptTable
from paimon.domain.index.bit_sliced_index import BitSlicedIndex
from paimon.domain.index.bitmap_index import BitmapIndex
from paimon.domain.index.bloom_filter import BloomFilter
from paimon.domain.index.container import REBUILD_HINT, IndexEntry, decode_head
from paimon.domain.index.index_keys import Key, KeyForm, to_key
from paimon.domain.index.range_bitmap import RangeBitmap
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Operator, Or, Predicate
from paimon.domain.predicate.like_patterns import find_prefix, parse_like
from paimon.domain.predicate.transform import Leaf, columns_of, simplify
from paimon.domain.schema.declared_indexes import split_index_column, supports_type
from paimon.domain.types.data_types import CharType, DataType, MapType

MOST_ROWS = (1 << 31) - 1
"""Indexes have row positions of 31 bits."""

Rows = BitMap | None
"""The rows for which a condition can be true; None: all."""


class _Index(Protocol):
    def select(self, operator: Operator, key: Key) -> Rows: ...
    def select_nulls(self) -> Rows: ...


@frozen(eq=False)
class _EmptyIndex:
    """The index of a map key that no row has: all values are null."""

    def select(self, operator: Operator, key: Key) -> Rows:
        return BitMap()

    def select_nulls(self) -> Rows:
        return None


@frozen(eq=False)
class FileIndexes:
    """The indexes of one data file, decoded when a condition needs them."""

    # the container, for errors
    path: str
    row_count: int
    # the columns of the file, by name
    types: Mapping[str, DataType]
    entries: Sequence[IndexEntry]
    # returns the bytes of an index
    load: Callable[[IndexEntry], bytes]

    @classmethod
    def of(cls, data: bytes, path: str, row_count: int, types: Mapping[str, DataType]) -> FileIndexes:
        """Return the indexes of a whole container."""
        return cls(path, row_count, types, decode_head(data, path), lambda entry: entry.cut(data, path))

    def select(self, predicate: Predicate) -> RowSelection:
        """Return the rows for which a predicate, bound to the columns of the file, can be true."""
        if self.row_count > MOST_ROWS:
            return ALL_ROWS
        wanted = columns_of(predicate)
        indexes = {name: tuple(self._open(e) for e in self._entries_of(name)) for name in wanted}
        try:
            found = _select(simplify(predicate), self.types, indexes)
        except ValueError as error:
            raise self._damage(error) from error
        return found if found.rows is None or len(found.rows) < self.row_count else ALL_ROWS

    def open_bloom_filters(self) -> dict[str, BloomFilter]:
        """Return the bloom filters by column; CHAR, whose values files pad or do not, has none."""
        found: dict[str, BloomFilter] = {}
        for name, data_type in self.types.items():
            for entry in () if isinstance(data_type, CharType) else self._entries_of(name):
                index = self._open(entry)[1] if entry.kind == "bloom-filter" else None
                if isinstance(index, BloomFilter):
                    found[name] = index
        return found

    def check(self) -> None:
        """Decode all indexes of the file that this library can read; `CorruptTable` if one is damaged."""
        for column in {entry.column for entry in self.entries}:
            for entry in self._entries_of(column):
                self._open(entry)

    def _entries_of(self, column: str) -> Iterable[IndexEntry]:
        """Return the indexes of a column that this library can read; others are ignored."""
        data_type = self._type_of(column)
        if data_type is None:
            return ()
        return (e for e in self.entries if e.column == column and e.kind in _KINDS and supports_type(e.kind, data_type))

    def _type_of(self, name: str) -> DataType | None:
        column, map_key = split_index_column(name)
        data_type = self.types.get(column)
        if map_key is None:
            return data_type
        return data_type.value if isinstance(data_type, MapType) else None

    def _open(self, entry: IndexEntry) -> tuple[str, _Index]:
        name = f"{entry.kind}({entry.column})"
        data_type = self._type_of(entry.column)
        if entry.is_empty or data_type is None:
            return name, _EmptyIndex()
        data = self.load(entry)
        try:
            return name, _KINDS[entry.kind](data, KeyForm.of(data_type), self.row_count)
        except ValueError as error:
            raise self._damage(error) from error

    def _damage(self, error: ValueError) -> CorruptTable:
        return CorruptTable(self.path, f"contains a damaged file index: {error}", hint=REBUILD_HINT)


_KINDS: Mapping[str, Callable[[bytes, KeyForm, int], _Index]] = {
    "bloom-filter": lambda data, form, row_count: BloomFilter.decode(data, form),
    "bitmap": BitmapIndex.decode,
    "bsi": lambda data, form, row_count: BitSlicedIndex.decode(data, row_count),
    "range-bitmap": RangeBitmap.decode,
}

_Indexes = Mapping[str, Sequence[tuple[str, _Index]]]


def _select(predicate: Predicate, types: Mapping[str, DataType], indexes: _Indexes) -> RowSelection:
    match predicate:
        case Literal(value=value):
            return ALL_ROWS if value is True else NO_ROWS
        case And(children=children):
            found = ALL_ROWS
            for child in children:
                found = found.intersect(_select(child, types, indexes))
                if found.is_empty:
                    break
            return found
        case Or(children=children):
            found = NO_ROWS
            for child in children:
                found = found.unite(_select(child, types, indexes))
            return found
        case Compare() | In() | Like() | IsNull():
            return _select_leaf(predicate, types, indexes.get(predicate.column, ()))
    return ALL_ROWS


def _select_leaf(leaf: Leaf, types: Mapping[str, DataType], indexes: Sequence[tuple[str, _Index]]) -> RowSelection:
    found = ALL_ROWS
    for name, index in indexes:
        rows = _select_rows(leaf, index, types[split_index_column(leaf.column)[0]])
        found = found.intersect(RowSelection(rows, () if rows is None else (name,)))
        if found.is_empty:
            break
    return found


def _select_rows(leaf: Leaf, index: _Index, data_type: DataType) -> Rows:
    if isinstance(data_type, MapType):
        data_type = data_type.value
    if isinstance(leaf, IsNull):
        return _select_null(index, leaf.negated)
    if isinstance(data_type, CharType):
        return None
    form = KeyForm.of(data_type)
    match leaf:
        case Compare(op=op, literal=literal):
            return _compare(index, op, literal, form)
        case In(literals=literals, negated=negated):
            return _select_in(index, literals, negated, form)
        case Like(pattern=pattern, escape=escape, negated=False):
            return _select_like(index, pattern, escape)
    return None


def _select_null(index: _Index, negated: bool) -> Rows:
    if isinstance(index, _EmptyIndex):
        return BitMap() if negated else None
    nulls = index.select_nulls()
    if nulls is None or not negated:
        return nulls
    assert isinstance(index, BitmapIndex | BitSlicedIndex | RangeBitmap)
    return BitMap(range(index.row_count)) - nulls


def _compare(index: _Index, operator: Operator, literal: object, form: KeyForm) -> Rows:
    if literal is None:
        return BitMap()
    if not form.is_exact:
        if operator is Operator.NE:
            return None
        operator = _WIDER.get(operator, operator)
    return index.select(operator, to_key(literal, form))


_WIDER = {Operator.LT: Operator.LE, Operator.GT: Operator.GE}


def _select_in(index: _Index, literals: Sequence[object], negated: bool, form: KeyForm) -> Rows:
    if negated and None in literals:
        return BitMap()
    operator = Operator.NE if negated else Operator.EQ
    selections = [_compare(index, operator, literal, form) for literal in literals if literal is not None]
    known = [rows for rows in selections if rows is not None]
    if negated:
        return BitMap.intersection(*known) if known else None
    if len(known) < len(selections):
        return None
    return BitMap.union(*known) if known else BitMap()


def _select_like(index: _Index, pattern: str, escape: str | None) -> Rows:
    """Return the rows whose text can match: an equal text, or, by a sorted dictionary, those with the prefix."""
    parts = parse_like(pattern, escape)
    prefix = find_prefix(parts).encode()
    if len(parts) == 1 and prefix:
        return index.select(Operator.EQ, prefix)
    if not prefix or not isinstance(index, RangeBitmap):
        return None
    rows = index.select(Operator.GE, prefix)
    # UTF-8 has no byte 0xff, so a larger last byte is the smallest text behind all with the prefix.
    return rows & index.select(Operator.LT, prefix[:-1] + bytes([prefix[-1] + 1]))
