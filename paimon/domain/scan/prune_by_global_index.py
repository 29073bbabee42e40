"""Find the row ids that a predicate can select, by the global indexes of its columns.

Invariant: each row for which the predicate is true is in the result. Rows that no index covers always are: they were
appended after the index was built.
Source: `GlobalIndexEvaluator`, `GlobalIndexScanner`, `DataEvolutionBatchScan`. In Java 1.4.2, rows that no index covers
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from paimon.domain.errors import CorruptTable
from paimon.domain.index.btree_blocks import KeyBounds, Numbers
from paimon.domain.index.btree_keys import BtreeKeys, Interval, find_prefix_interval, supports_btree
from paimon.domain.index.btree_reader import BtreeFile, overlaps_bounds
from paimon.domain.manifest.entries import GlobalIndex, IndexManifestEntry
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Operator, Or, Predicate
from paimon.domain.predicate.like_patterns import find_prefix, parse_like
from paimon.domain.predicate.transform import Leaf, simplify
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField

BTREE = "btree"
"""The type of global index that is read and built; others are ignored."""
_MOST_LITERALS = 10_000
"""An IN of more values reads the table."""

Search = Callable[[DataField, Sequence[IndexManifestEntry], "Wanted"], Iterable[Numbers | None]]
"""Yields for each file its row ids, relative to the range of the file; None if they are too many."""


def _to_intervals(values: Iterable[Interval]) -> tuple[Interval, ...]:
    return tuple(values)


@frozen
class Wanted:
    """What a condition selects of an index: rows of null, or of keys in intervals."""

    intervals: tuple[Interval, ...] = field(converter=_to_intervals, default=())
    nulls: bool = False

    def is_in(self, keys: BtreeKeys, bounds: KeyBounds) -> bool:
        """Return whether a file with these first and last keys can have such rows."""
        if self.nulls:
            return bounds.has_nulls
        return any(overlaps_bounds(keys, bounds, interval) for interval in self.intervals)

    def search(self, file: BtreeFile) -> Numbers | None:
        """Return the row ids in a file; None if they are too many."""
        return file.find_nulls() if self.nulls else file.find_rows(self.intervals)


def find_indexes(
    entries: Iterable[IndexManifestEntry], columns: Iterable[DataField]
) -> Mapping[str, Sequence[IndexManifestEntry]]:
    """Return the files of the B-tree indexes of columns, by the name of the column."""
    names = {column.id: column.name for column in columns if supports_btree(column.type)}
    found: dict[str, list[IndexManifestEntry]] = {}
    for entry in entries:
        index = entry.global_index
        if index is None or entry.index_type != BTREE or index.extra_field_ids or index.source_meta is not None:
            continue
        if index.index_field_id in names:
            found.setdefault(names[index.index_field_id], []).append(entry)
    return found


def has_one_type(schemas: Iterable[TableSchema], column: DataField) -> bool:
    """Return whether a column had the same type in all schemas. An index does not record the type of its keys."""
    types = {f.type.with_nullable(True) for schema in schemas for f in schema.fields if f.id == column.id}
    return types <= {column.type.with_nullable(True)}


def select_row_ids(
    predicate: Predicate,
    columns: Mapping[str, DataField],
    indexes: Mapping[str, Sequence[IndexManifestEntry]],
    search: Search,
) -> RowIdRanges | None:
    """Return the ids of the rows for which a bound predicate can be true; None for all."""

    def select(part: Predicate) -> RowIdRanges | None:
        match part:
            case Literal(value=value):
                return None if value is True else RowIdRanges.of(())
            case And(children=children):
                return _intersect(select(child) for child in children)
            case Or(children=children):
                return _unite(select(child) for child in children)
            case Compare() | In() | Like() | IsNull():
                files = indexes.get(part.column, ())
                wanted = _find_wanted(part, BtreeKeys(columns[part.column].type)) if files else None
                return None if wanted is None else _select_leaf(columns[part.column], files, wanted, search)
        return None

    return select(simplify(predicate))


def _intersect(parts: Iterable[RowIdRanges | None]) -> RowIdRanges | None:
    found: RowIdRanges | None = None
    for part in parts:
        if part is not None:
            found = part if found is None else found.intersect(part)
            if found.is_empty:
                break
    return found


def _unite(parts: Iterable[RowIdRanges | None]) -> RowIdRanges | None:
    found = RowIdRanges.of(())
    for part in parts:
        if part is None:
            return None
        found = found.unite(part)
    return found


def _select_leaf(
    column: DataField, files: Sequence[IndexManifestEntry], wanted: Wanted, search: Search
) -> RowIdRanges | None:
    parts = [cover(files).complement()]
    for entry, ids in zip(files, search(column, files, wanted), strict=True):
        index = range_of(entry)
        end = index.row_range_end + 1
        if ids is None:
            parts.append(RowIdRanges.of([(index.row_range_start, end)]))
        elif len(ids):
            if ids.min() < 0 or ids.max() >= end - index.row_range_start:
                last = index.row_range_end - index.row_range_start
                raise CorruptTable(entry.file_name, f"has row ids outside 0 to {last}, its range in the index manifest")
            parts.append(RowIdRanges.of_ids(ids + np.int64(index.row_range_start)))
    return RowIdRanges.union(parts)


def cover(files: Iterable[IndexManifestEntry]) -> RowIdRanges:
    """Return the row ids that index files cover."""
    ranges = (range_of(entry) for entry in files)
    return RowIdRanges.of((index.row_range_start, index.row_range_end + 1) for index in ranges)


def range_of(entry: IndexManifestEntry) -> GlobalIndex:
    """Return the global index of an entry that has one."""
    assert entry.global_index is not None
    return entry.global_index


def _find_wanted(leaf: Leaf, keys: BtreeKeys) -> Wanted | None:
    """Return what a condition selects; None if the index cannot answer it."""
    match leaf:
        case IsNull(negated=False):
            return Wanted(nulls=True)
        case Compare(op=op, literal=literal):
            interval = None if literal is None else keys.find_interval(op, literal)
            return Wanted() if literal is None else None if interval is None else Wanted((interval,))
        case In(literals=literals, negated=False) if len(literals) <= _MOST_LITERALS:
            found = (keys.find_interval(Operator.EQ, literal) for literal in literals if literal is not None)
            return Wanted(interval for interval in found if interval is not None)
        case Like(pattern=pattern, escape=escape, negated=False) if keys.is_text:
            parts = parse_like(pattern, escape)
            prefix = find_prefix(parts)
            if len(parts) == 1 and prefix:
                interval = keys.find_interval(Operator.EQ, prefix)
                return None if interval is None else Wanted((interval,))
            return Wanted((find_prefix_interval(prefix.encode()),)) if prefix else None
    return None
