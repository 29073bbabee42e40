"""What a read answers: its columns, and what must be read to make them.

Law: of nested rows only the fields wanted are read; `"a.b"` answers a flat column named `a.b`, null where any row on
the path is. Nulls of a column with `fields.<column>.default-value` are shown as that value, and asked for as that.
Source: `NestedProjectedRowData`, `ReadBuilder`, `DefaultValueAssigner` (0.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.columns.fill import filled
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.defaults import over_stored
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.terms.paths import splits
from paimon.domain.predicate.transform import columns_of
from paimon.domain.schema.rules.defaults import read_defaults
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import arrow_field, arrow_schema
from paimon.domain.types.data_types import ArrayType, DataField, DataType, RowType
from paimon.domain.types.system import ROW_KIND, SEQUENCE_NUMBER


@frozen
class ReadPlan:
    """What every task of a read does with its split.

    Parameters
    ----------
    columns : tuple of str
        The columns of the answer, in order; `"a.b"` is the field b of the nested row a.
    predicate : Predicate, optional
        Over the columns as they are stored (see `bound`); only rows where it is true are answered.
    limit : int, optional
        Most rows that one split has to answer.
    row_kinds : bool
        Answer retracts too, and offer the column `rowkind` (``+I``, ``-U``, ``+U``, ``-D``).
    keep_retracts : bool
        Answer retracts too, as plain rows: what is read was not merged.
    binlog : bool
        With `row_kinds`: answer each column as a list, of an update that was not merged with both its values.
    """

    columns: tuple[str, ...]
    predicate: Predicate | None = None
    limit: int | None = None
    row_kinds: bool = False
    keep_retracts: bool = False
    binlog: bool = False

    @property
    def predicate_columns(self) -> frozenset[str]:
        """The columns, nested ones by path, that the predicate names."""
        return columns_of(self.predicate) if self.predicate is not None else frozenset()


def readable_fields(table: TableDefinition, row_kinds: bool = False, binlog: bool = False) -> tuple[DataField, ...]:
    """The columns that a read may name."""
    fields = table.schema.fields
    if binlog:
        fields = tuple(evolve(f, type=ArrayType(element=f.type.with_nullable(True))) for f in fields)
    if not row_kinds:
        return fields
    numbered = table.schema.primary_keys and table.options.table_read_sequence_number
    return (ROW_KIND, *((SEQUENCE_NUMBER,) if numbered else ()), *fields)


def bound(predicate: Predicate, table: TableDefinition, fields: Sequence[DataField]) -> Predicate:
    """The predicate that a user gave, over rows as they are stored."""
    return over_stored(bind(predicate, fields), read_defaults(table.schema, table.options))


Defaults = Mapping[str, tuple[Any, DataType]]
"""What nulls of a column are shown as, and the column's type."""


def defaults_of(table: TableDefinition) -> Defaults:
    """The defaults that a table's options give."""
    found = read_defaults(table.schema, table.options)
    return {name: (value, table.schema.field_of(name).type) for name, value in found.items()}


def shown(batch: pa.RecordBatch, defaults: Defaults) -> pa.RecordBatch:
    """The batch with defaults in place of nulls."""
    names = batch.schema.names
    columns = [_shown(column, name, defaults) for name, column in zip(names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _shown(column: pa.Array, name: str, defaults: Defaults) -> pa.Array:
    return filled(column, *defaults[name]) if name in defaults else column


def output_schema(table: TableDefinition, read: ReadPlan) -> pa.Schema:
    """The schema of what the read answers; InvalidRequest for a column that the table does not have."""
    fields = readable_fields(table, read.row_kinds, read.binlog)
    paths = resolve_paths(fields, read.columns)
    return arrow_schema([_flat(path, name) for path, name in zip(paths, read.columns, strict=True)])


def resolve_paths(fields: Sequence[DataField], names: Iterable[str]) -> list[tuple[DataField, ...]]:
    """Find the fields on the path of each name.

    Parameters
    ----------
    fields : sequence of DataField
        The columns that names may begin with.
    names : iterable of str
        Names of columns, and of fields in nested rows (`"a.b"`).

    Returns
    -------
    list of tuple
        For each name its fields, outermost first.

    Raises
    ------
    InvalidRequest
        There is no such column.
    """
    by_name = {f.name: f for f in fields}
    return [_resolve(by_name, name) for name in names]


def _resolve(by_name: Mapping[str, DataField], name: str) -> tuple[DataField, ...]:
    if name in by_name:
        return (by_name[name],)
    for first, rest in splits(name):
        column = by_name.get(first)
        if column is not None and isinstance(column.type, RowType):
            return (column, *_resolve({f.name: f for f in column.type.fields}, rest))
    raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=did_you_mean(name, by_name))


def _flat(path: tuple[DataField, ...], name: str) -> DataField:
    if len(path) == 1 and path[0].name == name:
        return path[0]
    nullable = any(f.type.nullable for f in path)
    return evolve(path[-1], name=name, type=path[-1].type.with_nullable(nullable))


def wanted_fields(fields: Sequence[DataField], names: Iterable[str]) -> tuple[DataField, ...]:
    """The columns that hold all of `names`, in the order of `fields`; nested rows only with the fields wanted."""
    trees: dict[str, list[tuple[DataField, ...]]] = {}
    for path in resolve_paths(fields, names):
        trees.setdefault(path[0].name, []).append(path[1:])
    return tuple(_cut(f, trees[f.name]) for f in fields if f.name in trees)


def _cut(column: DataField, rests: Sequence[tuple[DataField, ...]]) -> DataField:
    if not isinstance(column.type, RowType) or () in rests:
        return column
    inner = wanted_fields(column.type.fields, {".".join(f.name for f in rest) for rest in rests})
    return evolve(column, type=evolve(column.type, fields=inner))


@frozen(eq=False)
class Projection:
    """Turns batches of wanted columns into batches of the answer."""

    schema: pa.Schema
    paths: tuple[tuple[str, ...], ...]
    defaults: Defaults

    @classmethod
    def of(cls, table: TableDefinition, read: ReadPlan) -> Projection:
        """The projection that a read ends with."""
        fields = readable_fields(table, read.row_kinds, read.binlog)
        resolved = resolve_paths(fields, read.columns)
        schema = pa.schema([arrow_field(_flat(p, n)) for p, n in zip(resolved, read.columns, strict=True)])
        paths = tuple(tuple(f.name for f in path) for path in resolved)
        return cls(schema, paths, {} if read.binlog else defaults_of(table))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The answer's columns of a batch that holds the wanted ones."""
        if not self.paths:
            return batch.select([])
        held: Mapping[str, int] = {name: i for i, name in enumerate(batch.schema.names)}
        columns = [_leaf(batch.column(held[path[0]]), path[1:]) for path in self.paths]
        columns = [_shown(c, path[0], self.defaults) for c, path in zip(columns, self.paths, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _leaf(column: pa.Array, path: tuple[str, ...]) -> pa.Array:
    return pc.struct_field(column, list(path)) if path else column
