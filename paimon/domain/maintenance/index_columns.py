"""Which tables and columns can have a global index.

Source: `CreateGlobalIndexProcedure`, `KeySerializer`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.index.btree_keys import supports_btree
from paimon.domain.scan.prune_by_global_index import BTREE, has_one_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type

_EXTERNAL_PATH = "global-index.external-path"


def check_index_type(index_type: str) -> None:
    """Refuse types of global indexes that are not built."""
    if index_type.strip().lower() != BTREE:
        raise Unsupported(f"a global index of type {index_type!r}", hint=f"build one of type {BTREE!r}")


def find_index_column(table: TableDefinition, name: str) -> DataField:
    """Return the column of a global index by its name."""
    column = table.schema.fields_by_name.get(name)
    if column is None:
        raise InvalidRequest(
            f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, table.schema.names)
        )
    return column


def find_index_ids(table: TableDefinition, name: str, schemas: Iterable[TableSchema]) -> frozenset[int]:
    """Return the ids of a column, and of dropped ones with its name: their indexes remain."""
    current = {f.id: f.name for f in table.schema.fields}
    named = (f.id for schema in schemas for f in schema.fields if f.name == name)
    found = frozenset(field_id for field_id in named if current.get(field_id, name) == name)
    return found or frozenset((find_index_column(table, name).id,))


def check_index_column(table: TableDefinition, name: str, schemas: Iterable[TableSchema]) -> DataField:
    """Return the column to index; refuse tables and columns, in all schemas, without global indexes."""
    column, options = find_index_column(table, name), table.options
    if not options.data_evolution_enabled:
        raise InvalidRequest(
            f"Table {table.table_name!r} cannot have global indexes, because its rows have no lasting ids",
            subject="data-evolution.enabled",
            hint="create the table with 'row-tracking.enabled' and 'data-evolution.enabled', or use file indexes",
        )
    if options.get(_EXTERNAL_PATH):
        raise Unsupported(
            f"building global indexes outside the table, by option {_EXTERNAL_PATH!r}", hint="reset the option"
        )
    kind = format_type(column.type.with_nullable(True))
    if not supports_btree(column.type):
        raise Unsupported(f"a global index of column {name!r} of type {kind}", hint="index a column of another type")
    if not has_one_type(schemas, column):
        raise Unsupported(
            f"a global index of column {name!r}, whose type changed to {kind}",
            hint="add a column of this type, and index it",
        )
    return column
