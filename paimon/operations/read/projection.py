"""Define the columns that a read returns, and the columns that must be read for them.

Invariant: of nested rows only the requested fields are read. The name `"a.b"` returns a flat column `a.b`, which is
null if any row on the path is null. Nulls of a column with `fields.<column>.default-value` are shown, and compared, as
that value. Source: `NestedProjectedRowData`, `ReadBuilder`, `DefaultValueAssigner` (0.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.columns.conform import fill_nulls
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import read_key, split_path
from paimon.domain.predicate.transform import columns_of, rewrite_for_stored_rows
from paimon.domain.schema.rules.defaults import read_defaults
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import arrow_field, arrow_schema
from paimon.domain.types.data_types import ArrayType, DataField, DataType, MapType, RowType
from paimon.domain.types.system_columns import ROW_KIND, SEQUENCE_NUMBER, TRACKING_FIELDS


@frozen
class ReadPlan:
    """What each task of a read returns of its split."""

    # in the order of the result; `"a.b"` is the field b of the nested row a
    columns: tuple[str, ...]
    # over stored columns (see `bind_predicate`); only rows for which it is true are returned
    predicate: Predicate | None = None
    # the largest number of rows of one split, not of the whole read
    limit: int | None = None
    # also return retracts, and offer the column `rowkind` (`+I`, `-U`, `+U`, `-D`)
    row_kinds: bool = False
    # rows are changes that are not merged; without `row_kinds`, only those that add a row are returned
    unmerged: bool = False
    # with `row_kinds`, return each column as a list, with both values of an unmerged update
    binlog: bool = False
    # offer the columns `_ROW_ID` and `_SEQUENCE_NUMBER` of tables with row tracking
    row_ids: bool = False
    # of `unmerged` rows, also return those that remove a row
    keep_retracts: bool = False

    @property
    def predicate_columns(self) -> frozenset[str]:
        """The columns that the predicate names; nested ones by path."""
        return columns_of(self.predicate) if self.predicate is not None else frozenset()


def list_readable_fields(
    table: TableDefinition, row_kinds: bool = False, binlog: bool = False, row_ids: bool = False
) -> tuple[DataField, ...]:
    """Return the columns that a read may name, system columns first.

    `row_kinds` also offers the sequence number if an option says so. `row_ids` has an effect only with row tracking.
    """
    fields = table.schema.fields
    if row_ids and table.options.row_tracking_enabled:
        return (*TRACKING_FIELDS, *fields)
    if binlog:
        fields = tuple(evolve(f, type=ArrayType(element=f.type.with_nullable(True))) for f in fields)
    if not row_kinds:
        return fields
    numbered = table.schema.primary_keys and table.options.table_read_sequence_number
    return (ROW_KIND, *((SEQUENCE_NUMBER,) if numbered else ()), *fields)


def bind_predicate(predicate: Predicate, table: TableDefinition, fields: Sequence[DataField]) -> Predicate:
    """Bind a read's predicate to stored rows: literals by column type, defaults for nulls resolved."""
    return rewrite_for_stored_rows(bind(predicate, fields), read_defaults(table.schema, table.options))


Defaults = Mapping[str, tuple[Any, DataType]]
"""By column name: the value shown instead of null, and the column's type."""


def get_read_defaults(table: TableDefinition) -> Defaults:
    """Return the default values that the table's options define for nulls."""
    found = read_defaults(table.schema, table.options)
    return {name: (value, table.schema.field_of(name).type) for name, value in found.items()}


def apply_read_defaults(batch: pa.RecordBatch, defaults: Defaults) -> pa.RecordBatch:
    """Replace nulls by default values."""
    names = batch.schema.names
    columns = [_apply_default(column, name, defaults) for name, column in zip(names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _apply_default(column: pa.Array, name: str, defaults: Defaults) -> pa.Array:
    return fill_nulls(column, *defaults[name]) if name in defaults else column


def build_output_schema(table: TableDefinition, read: ReadPlan) -> pa.Schema:
    """Return the Arrow schema of the rows that a read returns."""
    fields = list_readable_fields(table, read.row_kinds, read.binlog, read.row_ids)
    paths = resolve_paths(fields, read.columns)
    return arrow_schema([_flatten_field(path, name) for path, name in zip(paths, read.columns, strict=True)])


def resolve_paths(fields: Sequence[DataField], names: Iterable[str]) -> list[tuple[DataField, ...]]:
    """Find for each name, such as `"a.b"`, the fields on its path into nested rows, outermost first."""
    return _resolve_all(fields, names, reads_keys=False)


def _resolve_all(fields: Sequence[DataField], names: Iterable[str], reads_keys: bool) -> list[tuple[DataField, ...]]:
    """Find the fields on paths; with `reads_keys`, the path of a key, such as `"m[key]"`, ends with its map."""
    by_name = {f.name: f for f in fields}
    return [_resolve(by_name, name, reads_keys) for name in names]


def _resolve(by_name: Mapping[str, DataField], name: str, reads_keys: bool) -> tuple[DataField, ...]:
    if name in by_name:
        return (by_name[name],)
    for first, rest in split_path(name):
        column, key = by_name.get(first), read_key(rest)
        if column is not None and isinstance(column.type, RowType) and (key is None or reads_keys):
            inner = {f.name: f for f in column.type.fields}
            return (column, *_resolve(inner, rest if key is None else key, reads_keys))
        if column is not None and isinstance(column.type, MapType) and key is not None and reads_keys:
            return (column,)
    raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, by_name))


def _flatten_field(path: tuple[DataField, ...], name: str) -> DataField:
    if len(path) == 1 and path[0].name == name:
        return path[0]
    nullable = any(f.type.nullable for f in path)
    return evolve(path[-1], name=name, type=path[-1].type.with_nullable(nullable))


def select_fields(fields: Sequence[DataField], names: Iterable[str]) -> tuple[DataField, ...]:
    """Return the columns that contain all of `names`, in the order of `fields`; nested rows have only named fields."""
    trees: dict[str, list[tuple[DataField, ...]]] = {}
    for path in _resolve_all(fields, names, reads_keys=True):
        trees.setdefault(path[0].name, []).append(path[1:])
    return tuple(_restrict_field(f, trees[f.name]) for f in fields if f.name in trees)


def _restrict_field(column: DataField, rests: Sequence[tuple[DataField, ...]]) -> DataField:
    if not isinstance(column.type, RowType) or () in rests:
        return column
    inner = select_fields(column.type.fields, {".".join(f.name for f in rest) for rest in rests})
    return evolve(column, type=evolve(column.type, fields=inner))


@frozen(eq=False)
class Projection:
    """Convert batches of stored columns to batches of the result."""

    schema: pa.Schema
    paths: tuple[tuple[str, ...], ...]
    defaults: Defaults

    @classmethod
    def of(cls, table: TableDefinition, read: ReadPlan) -> Projection:
        """Return the projection that turns the rows of a split into the result of a read."""
        fields = list_readable_fields(table, read.row_kinds, read.binlog, read.row_ids)
        resolved = resolve_paths(fields, read.columns)
        schema = pa.schema([arrow_field(_flatten_field(p, n)) for p, n in zip(resolved, read.columns, strict=True)])
        paths = tuple(tuple(f.name for f in path) for path in resolved)
        return cls(schema, paths, {} if read.binlog else get_read_defaults(table))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the result from a batch that contains the stored columns."""
        if not self.paths:
            return batch.select([])
        held: Mapping[str, int] = {name: i for i, name in enumerate(batch.schema.names)}
        columns = [_get_leaf(batch.column(held[path[0]]), path[1:]) for path in self.paths]
        columns = [_apply_default(c, path[0], self.defaults) for c, path in zip(columns, self.paths, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _get_leaf(column: pa.Array, path: tuple[str, ...]) -> pa.Array:
    return pc.struct_field(column, list(path)) if path else column
