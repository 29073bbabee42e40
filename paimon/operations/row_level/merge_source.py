"""The source of a MERGE: in memory if it is small, otherwise spilled, and read in parts that fit the memory budget.

Invariant: a spilled source is stored in pieces, each ordered by the hash of its key. A part has all rows of a range of
hashes, so parts can be merged one after another. Memory holds one piece or one part.
"""

# A source that needs more than half of the memory budget is spilled, in pieces as they come, and read again in parts:
#
#     given      k=7 k=2 k=5                     k=2 k=9 k=7
#     pieces     hash   12  40  91               hash   40  55  91        each sorted by the hash of the key
#                key     5   7   2               key     7   9   2
#                number  2   0   1               number  5   4   3        the position in the source, for errors
#     parts      hashes below 50: 5 7 7          the others: 2 9 2        a slice of each piece, found by binary search
#
# Equal keys have equal hashes, so all rows of the source that match one row of the target are in one part. Each part is
# merged as if it was the whole source; the price is that each part reads the target. Parts have ranges of equal width,
# of about a quarter of the budget; only many rows of one key make a part too large, which is refused. Without equal
# columns in the ON condition there is no key to divide by, and the source must fit the budget as a whole.
#
# The columns of a spilled source are described by the tables before the first piece. So later tables must have the same
# columns, with values that fit those types (`_fit_schema`). A source in memory takes the common type of all tables.
#
# `KeyValues` prunes the target: up to 256 different keys become `In`, more become a range from the smallest to the
# largest. The condition must be true for each row that can matter. So there is none where rows that the source does not
# match can change.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from paimon.domain.assignment.hash_ranges import HashRange, divide_hashes, hash_keys
from paimon.domain.assignment.merge_clauses import TARGET, BoundMerge, MergeOn, to_plain_name
from paimon.domain.assignment.merge_columnar import SourceIndex
from paimon.domain.assignment.merge_sql import parse_on
from paimon.domain.columns.accept import can_accept, complete_type
from paimon.domain.columns.convert import convert_array
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, Literal, Operator, Predicate
from paimon.domain.predicate.transform import join_conjuncts, map_names, restrict_to_columns
from paimon.domain.row.values import to_values
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.arrow import arrow_schema, arrow_type, fields_from_arrow
from paimon.domain.types.data_types import DataField, DataType, DoubleType, FloatType
from paimon.domain.types.type_text import format_type
from paimon.domain.undo import undo_on_failure
from paimon.operations.row_level.merge import MergeRequest, WrittenMerge
from paimon.operations.row_level.merge_match import (
    KeyRange,
    MergeMatcher,
    find_target_column,
    list_target_columns,
    name_source,
)
from paimon.operations.row_level.write_merge import write_merge
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import open_files, to_arrow_tables
from paimon.ports.engine import Engine
from paimon.ports.temp import TempStore

_INDEX_BYTES = 64
"""What the index of a source needs for a row, in addition to its columns."""
_MOST_BYTES = 1 << 30
"""Arrow cannot hold more than twice as many bytes of text in one array."""
_HASH, _NUMBER = "\0hash", "\0number"
"""Stored next to the columns; no column of a table contains a NUL."""
_MOST_LISTED_KEYS = 256
"""Up to this number of different keys, files are pruned by each of them; above it, by the smallest and the largest."""


@frozen(eq=False)
class SourcePart:
    """Rows of a source that are merged together."""

    # In canonical Arrow types
    rows: pa.RecordBatch
    # The position of each row in the source; None if they are all rows in their order
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
    # Only rows of the target whose key has such a hash can match; None for all
    hashes: HashRange | None = None


ReadPart: TypeAlias = Callable[[], SourcePart]


def _to_pieces(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen(eq=False)
class SourceRows:
    """The rows of a source, in memory or spilled."""

    # All rows; None if they are spilled
    rows: pa.RecordBatch | None
    # Its temporary store has the pieces; its memory budget limits a part
    engine: Engine
    # Handles in the temporary store
    pieces: tuple[str, ...] = field(default=(), converter=_to_pieces)
    # What all spilled rows need in memory
    bytes: int = 0

    def parts(self) -> list[ReadPart]:
        """Return a function for each part, which reads it, so that the caller decides how long it is in memory."""
        if self.rows is not None:
            return [partial(SourcePart, self.rows)]
        count = -(-self.bytes // part_bytes(self.engine))
        return [partial(self._read_part, hashes) for hashes in divide_hashes(count)]

    def _read_part(self, hashes: HashRange) -> SourcePart:
        """Return the rows in a range of hashes; InvalidRequest if one key's exceed the memory budget."""
        slices = []
        for handle in self.pieces:
            (piece,) = self.engine.temp.map_batches(handle)
            found = hashes.find(piece[_HASH].to_numpy())
            slices.append(piece.slice(found.start, found.stop - found.start))
        if sum(map(count_bytes, slices)) > min(self.engine.memory.bytes, 2 * _MOST_BYTES):
            raise budget_error(self.engine, "Many rows of the source have the same key, so they are merged together")
        part = pa.concat_batches(slices)
        numbers = part[_NUMBER].to_numpy()
        return SourcePart(part.select(part.schema.names[:-2]), numbers, hashes)

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.pieces:
            self.engine.temp.drop(handle)


def count_bytes(rows: pa.RecordBatch | pa.Table) -> int:
    """Return what rows and their index need in memory."""
    size: int = rows.nbytes + rows.num_rows * _INDEX_BYTES
    return size


def must_spill(engine: Engine, size: int) -> bool:
    """Return whether rows of this size, together with their index, are too large to stay in memory."""
    return size > min(engine.memory.bytes // 2, _MOST_BYTES)


def part_bytes(engine: Engine) -> int:
    """Return how large a part of a spilled source is at most."""
    return max(1, min(engine.memory.bytes // 4, _MOST_BYTES // 2))


def divide_tables(engine: Engine, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables in pieces of the size of a part, so that large tables are not copied as a whole."""
    for table in tables:
        rows = max(1, table.num_rows * part_bytes(engine) // max(1, count_bytes(table)))
        yield from (table.slice(start, rows) for start in range(0, max(1, table.num_rows), rows))


def budget_error(engine: Engine, reason: str) -> InvalidRequest:
    """Return the error for a source that does not fit the memory budget."""
    return InvalidRequest(
        f"The source of the merge needs more than the memory budget of {engine.memory.bytes} bytes. {reason}",
        subject="memory-budget",
        hint="merge the source in parts, or raise 'memory-budget'",
    )


def store_piece(temp: TempStore, batches: Sequence[pa.RecordBatch]) -> str:
    """Store batches of one schema, of which there is at least one; return the handle."""
    # Buffers of a file are padded; the limit only stops a store that never ends.
    stored = temp.store(batches, batches[0].schema, 2 * sum(batch.nbytes for batch in batches) + (1 << 20))
    assert stored is not None
    return stored.handle


@define(eq=False)
class SourceSpill:
    """A state machine: it stores the rows of a source in pieces."""

    temp: TempStore
    # The columns that must be equal to columns of the target
    keys: tuple[str, ...]
    # The types of those columns of the target
    types: tuple[DataType, ...]
    pieces: list[str] = field(factory=list)
    bytes: int = 0
    rows: int = 0

    def add(self, rows: pa.RecordBatch, keys: Sequence[pa.Array]) -> None:
        """Store rows, in canonical Arrow types, as one piece; `keys` are the key columns in the types of the target."""
        hashes = hash_keys(keys, self.types)
        order = np.argsort(hashes, kind="stable")
        columns = [column.take(pa.array(order)) for column in rows.columns]
        extra = [pa.array(hashes[order]), pa.array(order + self.rows)]
        piece = pa.RecordBatch.from_arrays([*columns, *extra], [*rows.schema.names, _HASH, _NUMBER])
        self.pieces.append(store_piece(self.temp, [piece]))
        self.rows += rows.num_rows
        self.bytes += count_bytes(piece)

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.pieces:
            self.temp.drop(handle)


@frozen(eq=False)
class ArrowSource:
    """A source that this process merges; see `MergeSource`."""

    fields: tuple[DataField, ...]
    rows: SourceRows

    def write(
        self, context: TableContext, snapshot: Snapshot | None, merge: BoundMerge, commit_user: str
    ) -> WrittenMerge:
        """Write the changes of a merge in this process."""
        parts = [partial(_prepare_part, context, merge, read) for read in self.rows.parts()]
        return write_merge(context, snapshot, parts, commit_user)

    def drop(self) -> None:
        """Delete spilled rows."""
        self.rows.drop()


def _prepare_part(context: TableContext, merge: BoundMerge, read: ReadPart) -> tuple[MergeMatcher, Predicate | None]:
    """Read and index a part of the source, and find which rows of the target it can match."""
    matcher = index_source(context, merge, read())
    keys = [KeyValues.of(values) for values in matcher.index.values]
    return matcher, find_target_condition(context, merge, keys)


def read_source(context: TableContext, data: Any, request: MergeRequest) -> ArrowSource:
    """Read the rows of a source, and spill them if they are too large for the memory budget.

    The data may have any form that `Table.write` takes. The caller must drop the source. Raise InvalidRequest if the
    rows must be spilled, but the condition has no equal columns.
    """
    tables: list[pa.Table] = []
    size, has_keys = 0, None
    rows = to_arrow_tables(open_files(context.engine, data), context.schema.fields)
    given = divide_tables(context.engine, rows)
    for table in given:
        tables.append(table)
        size += count_bytes(table)
        if not must_spill(context.engine, size):
            continue
        if has_keys is None:
            fields = describe_source(_unify_schemas(tables), context.schema.fields)
            has_keys = bool(_parse_on(context, request, fields).pairs)
        if has_keys:
            first = pa.concat_tables(tables, promote_options="permissive")
            fields = describe_source(first.schema, context.schema.fields)
            return ArrowSource(fields, _spill(context, _parse_on(context, request, fields), fields, first, given))
        _check_unkeyed(context, tables)
    whole = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    fields = describe_source(whole.schema, context.schema.fields)
    return ArrowSource(fields, SourceRows(convert_source(whole, fields), context.engine))


def store_source(
    context: TableContext, on: MergeOn, fields: Sequence[DataField], tables: Iterable[pa.Table]
) -> SourceRows:
    """Keep rows of a source, and spill them if they are too large for the memory budget.

    The rows are in canonical Arrow types. The caller must drop the result. Raise InvalidRequest if the rows must be
    spilled, but the condition has no equal columns.
    """
    read: list[pa.Table] = []
    size, given = 0, divide_tables(context.engine, tables)
    for table in given:
        read.append(table)
        size += count_bytes(table)
        if must_spill(context.engine, size):
            if on.pairs:
                return _spill(context, on, fields, pa.concat_tables(read), given)
            _check_unkeyed(context, read)
    whole = pa.concat_tables(read or [arrow_schema(fields).empty_table()])
    return SourceRows(convert_source(whole, fields), context.engine)


def _check_unkeyed(context: TableContext, tables: Sequence[pa.Table]) -> None:
    """Refuse rows that cannot be divided and exceed the memory budget."""
    if sum(t.nbytes for t in tables) > context.engine.memory.bytes:
        raise budget_error(context.engine, "The ON condition has no equal columns, so all rows are compared")


def _spill(
    context: TableContext, on: MergeOn, fields: Sequence[DataField], first: pa.Table, given: Iterator[pa.Table]
) -> SourceRows:
    """Store the tables that were read, and those that remain."""
    columns = [find_target_column(context, target) for target, _ in on.pairs]
    spill = SourceSpill(context.engine.temp, tuple(name for _, name in on.pairs), tuple(c.type for c in columns))
    with undo_on_failure(spill.drop):
        _store(context, on, spill, [convert_source(first, fields)])
        size, more = 0, []
        for table in given:
            more.append(_fit_schema(table, first.schema, fields))
            size += count_bytes(table)
            if size > part_bytes(context.engine):
                _store(context, on, spill, more)
                size, more = 0, []
        _store(context, on, spill, more)
    return SourceRows(None, context.engine, spill.pieces, spill.bytes)


def _parse_on(context: TableContext, request: MergeRequest, fields: tuple[DataField, ...]) -> MergeOn:
    return parse_on(request.on, request.name_columns(list_target_columns(context), fields))


def _unify_schemas(tables: Sequence[pa.Table]) -> pa.Schema:
    """Return the columns of all tables."""
    return pa.concat_tables([table.slice(0, 0) for table in tables], promote_options="permissive").schema


def _store(context: TableContext, on: MergeOn, spill: SourceSpill, tables: Sequence[pa.RecordBatch]) -> None:
    if tables:
        rows = pa.concat_batches(tables)
        spill.add(rows, convert_keys(context, on, rows))


def _fit_schema(table: pa.Table, schema: pa.Schema, fields: Sequence[DataField]) -> pa.RecordBatch:
    """Return a later table of the source with the columns and types of the first ones, which its values must fit."""
    other = [name for name in table.column_names if name not in schema.names]
    if other:
        raise InvalidRequest(
            f"Column {other[0]!r} of the source begins after rows without it",
            subject=other[0],
            hint="give all parts of a large source the same columns",
        )
    columns = []
    for column in fields:
        if column.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, arrow_type(column.type)))
            continue
        try:
            values = _combine(table[column.name]).cast(schema.field(column.name).type)
        except pa.ArrowException as error:
            raise InvalidRequest(
                f"Column {column.name!r} of the source has values that do not fit the type of its first rows: {error}",
                subject=column.name,
                hint="give all parts of a large source the same types",
            ) from error
        columns.append(convert_array(values, column.type, column.name))
    return pa.RecordBatch.from_arrays(columns, [f.name for f in fields])


def describe_source(schema: pa.Schema, fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the columns of a source; one without a type, as of nulls or empty lists, gets that of the target."""
    repeated = [name for i, name in enumerate(schema.names) if name in schema.names[:i]]
    if repeated:
        raise InvalidRequest(
            f"The source has column {repeated[0]!r} more than once",
            subject=repeated[0],
            hint="rename or drop one of them",
        )
    types = {f.name: arrow_type(f.type) for f in fields}
    typed = [(f.name, complete_type(f.type, types.get(f.name))) for f in schema]
    return fields_from_arrow(pa.schema(typed))


def convert_source(rows: pa.Table, fields: Sequence[DataField]) -> pa.RecordBatch:
    """Return rows of a source, in their order, in canonical Arrow types; `fields` are those of `describe_source`."""
    columns = [
        pa.nulls(rows.num_rows, arrow_type(field.type))
        if pa.types.is_null(column.type)
        else convert_array(_combine(column), field.type, field.name)
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, [f.name for f in fields])


def _combine(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if not isinstance(combined, pa.ChunkedArray):
        return combined
    return combined.chunk(0) if combined.num_chunks else pa.array([], column.type)


def index_source(context: TableContext, merge: BoundMerge, part: SourcePart, *, is_share: bool = False) -> MergeMatcher:
    """Index a part of a source by its equal columns; with `is_share`, row numbers are meaningless outside."""
    index = SourceIndex.of(convert_keys(context, merge.on, part.rows), part.rows.num_rows)
    types = tuple(find_target_column(context, target).type for target, _ in merge.on.pairs)
    key_range = None if part.hashes is None else KeyRange(part.hashes, types)
    source, name = name_source(part.rows), context.table.table_name
    return MergeMatcher(context.engine, name, merge, source, index, part.numbers, key_range, is_share)


def convert_keys(context: TableContext, on: MergeOn, source: pa.RecordBatch) -> list[pa.Array]:
    """Return the columns of a source that must be equal to columns of the target, in the types of the target.

    The result has one array for each pair of the condition. A key that does not fit its type is refused.
    """
    keys = []
    for target, name in on.pairs:
        column, values = find_target_column(context, target), source[name]
        if not can_accept(column.type, values.type):
            raise InvalidRequest(
                f"Column {name!r} of the source has the Arrow type {values.type}, but {target!r} is "
                f"{format_type(column.type)}",
                subject=name,
                hint="cast the column of the source",
            )
        keys.append(convert_array(values, column.type.with_nullable(True), name))
    return keys


@frozen(eq=False)
class KeyValues:
    """The different values of a key column of a source, or the smallest and the largest one of many."""

    # Without null
    values: pa.Array
    # False if `values` are only the smallest and the largest one
    is_complete: bool

    @classmethod
    def of(cls, values: pa.Array, is_complete: bool = True) -> KeyValues:
        """Return the values of a column, which may be repeated, in at most `_MOST_LISTED_KEYS` values."""
        different = values.unique().drop_null()
        if len(different) <= _MOST_LISTED_KEYS:
            return cls(different, is_complete)
        if not _has_bounds(different.type):
            return cls(different.slice(0, 0), False)
        bounds = pc.min_max(different)
        return cls(pa.array([bounds["min"], bounds["max"]], different.type), False)

    @classmethod
    def of_parts(cls, parts: Sequence[KeyValues]) -> KeyValues:
        """Return the values of several parts of a source, of which there is at least one."""
        return cls.of(pa.concat_arrays([part.values for part in parts]), all(part.is_complete for part in parts))


def _has_bounds(kind: pa.DataType) -> bool:
    return not (pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind))


def find_target_condition(context: TableContext, merge: BoundMerge, keys: Sequence[KeyValues]) -> Predicate | None:
    """Return a condition on plain columns for the target's rows that can match; None if all can."""
    if merge.not_matched_by_source:
        return None
    parts = []
    for (target, _), values in zip(merge.on.pairs, keys, strict=True):
        parts += _bound_keys(find_target_column(context, target), values)
    if merge.on.condition is not None:
        of_target = [f"{TARGET}.{f.name}" for f in list_target_columns(context)]
        rest = restrict_to_columns(merge.on.condition, of_target)
        parts += [] if rest is None else [map_names(rest, to_plain_name)]
    condition = join_conjuncts(parts)
    return None if condition == Literal(True) else condition


def _bound_keys(column: DataField, keys: KeyValues) -> list[Predicate]:
    """Return conditions that each of these values fulfils."""
    if isinstance(column.type, FloatType | DoubleType):
        return []  # the index holds their order, not their values
    values = to_values(keys.values, column.type)
    if keys.is_complete and len(values) <= _MOST_LISTED_KEYS:
        return [In(column.name, tuple(values))]
    if not _has_bounds(keys.values.type) or not values:
        return []
    bounds = pc.min_max(keys.values)
    low, high = (to_values(pa.array([bounds[end]], keys.values.type), column.type)[0] for end in ("min", "max"))
    return [And((Compare(column.name, Operator.GE, low), Compare(column.name, Operator.LE, high)))]
