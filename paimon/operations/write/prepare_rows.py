"""Check the rows that a caller gives, and bring them into the form that writers buffer.

Invariant: either all rows are accepted, or an error is raised and none is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.rows_alone import check_rows_alone
from paimon.domain.row.kinds import RETRACTS, parse_row_kinds
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.system_columns import VALUE_KIND


def prepare_rows(
    table: TableDefinition,
    data: pa.Table | pa.RecordBatch,
    kinds: str | pa.Int8Array | None = None,
    are_stored: bool = False,
) -> pa.Table:
    """Convert rows to the types of a table, check them, and add their row kinds.

    Columns are found by name, and cast only without loss. `kinds` has the numbers of the kinds, or names a text column
    that is not stored; by default `rowkind.field` or inserts apply. `are_stored` marks rows that are in the table
    already, so that a merge may refuse them. Primary-key tables get a `_VALUE_KIND` column.
    """
    rows = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    if isinstance(kinds, str):
        rows, kinds = _split_kind_column(rows, kinds)
    rows = conform_to_fields(rows, table.schema.fields, f"table {table.table_name}")
    options = table.options
    if kinds is None and options.rowkind_field is not None:
        kinds = parse_row_kinds(_get_kind_column(rows, options.rowkind_field), options.rowkind_field)
    if kinds is not None:
        rows, kinds = _drop_ignored_kinds(rows, kinds, options.ignore_delete, options.ignore_update_before)
    if not table.schema.primary_keys:
        _check_no_retracts(table, kinds)
        return rows
    if options.get("primary-key.nullable") != "true":
        _check_keys(table, rows)
    inserts = from_numpy(np.zeros(rows.num_rows, np.int8))
    rows = rows.append_column(VALUE_KIND.name, inserts if kinds is None else kinds)
    if not are_stored:
        check_rows_alone(rows, MergeSpec.of(table.schema, options))
    return rows


def _get_kind_column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in rows.column_names:
        raise InvalidRequest(
            f"Option 'rowkind.field' names {name!r}, which does not exist",
            subject="rowkind.field",
            hint=did_you_mean(name, rows.column_names),
        )
    return rows[name]


def _split_kind_column(table: pa.Table, column: str) -> tuple[pa.Table, pa.Int8Array]:
    if column not in table.column_names:
        raise InvalidRequest(
            f"Column {column!r} with row kinds does not exist in the data",
            subject=column,
            hint=did_you_mean(column, table.column_names),
        )
    return table.drop_columns([column]), parse_row_kinds(table[column], column)


def _drop_ignored_kinds(
    rows: pa.Table, kinds: pa.Int8Array, ignore_delete: bool, ignore_update_before: bool
) -> tuple[pa.Table, pa.Int8Array]:
    dropped = RETRACTS if ignore_delete else RETRACTS[:1] if ignore_update_before else RETRACTS[:0]
    kept = pc.invert(pc.is_in(kinds, dropped))
    return (rows, kinds) if kept.false_count == 0 else (rows.filter(kept), kinds.filter(kept))


def _check_no_retracts(table: TableDefinition, kinds: pa.Int8Array | None) -> None:
    if kinds is not None and pc.any(pc.is_in(kinds, RETRACTS)).as_py():
        raise InvalidRequest(
            f"Table {table.table_name!r} has no primary key, so it does not accept -U and -D rows",
            hint="set ignore-delete to drop them, or create the table with a primary key",
        )


def _check_keys(table: TableDefinition, rows: pa.Table) -> None:
    for name in table.schema.primary_keys:
        if rows[name].null_count:
            raise InvalidRequest(
                f"Primary key column {name!r} of table {table.table_name!r} contains nulls",
                subject=name,
                hint="give each row a key, or drop the rows without one",
            )
