"""Build the system tables about columns: `aggregation_fields` and `statistics`.

Invariant: they show stored values, namely the options of the schema and the statistics file of the snapshot. Source:
`AggregationFieldsTable`, `StatisticTable`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.json_text import dump_json
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.snapshots import read_statistics
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext

_FIELDS = "fields."
_AGGREGATION = pa.schema(
    [(name, pa.string()) for name in ("field_name", "field_type", "function", "function_options", "comment")]
)
_STATISTICS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("mergedRecordCount", pa.int64()),
        ("mergedRecordSize", pa.int64()),
        ("colstat", pa.string()),
    ]
)


def aggregation_fields_table(context: TableContext) -> pa.Table:
    """Return one row per column, with the `fields.*` options that define its merge."""
    rows = []
    for column in context.schema.fields:
        held = _select_column_options(context.table, column.name)
        rows.append(
            {
                "field_name": column.name,
                "field_type": format_type(column.type),
                "function": f"[{', '.join(held.values())}]",
                "function_options": f"[{', '.join(held)}]",
                "comment": column.description,
            }
        )
    return pa.Table.from_pylist(rows, schema=_AGGREGATION)


def _select_column_options(table: TableDefinition, column: str) -> dict[str, str]:
    found = {k: v for k, v in table.schema.options.items() if k.startswith(f"{_FIELDS}{column}.")}
    return dict(sorted(found.items()))


def statistics_table(context: TableContext) -> pa.Table:
    """Return the statistics that ANALYZE stored with the snapshot; no row if there are none."""
    found = read_statistics(context, pin_snapshot(context).snapshot)
    if found is None:
        return _STATISTICS.empty_table()
    columns = {name: column.to_json() for name, column in found.columns.items()}
    row = {
        "snapshot_id": found.snapshot_id,
        "schema_id": found.schema_id,
        "mergedRecordCount": found.row_count,
        "mergedRecordSize": found.byte_count,
        "colstat": dump_json(columns).decode("utf-8"),
    }
    return pa.Table.from_pylist([row], schema=_STATISTICS)
