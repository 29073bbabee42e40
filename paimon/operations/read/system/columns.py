"""Build the system tables about columns: `aggregation_fields` and `statistics`.

Invariant: they show stored values, namely the options of the schema and the statistics file of the snapshot. Source:
`AggregationFieldsTable`, `StatisticTable`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import STATISTICS_FILE, dump_json, load_object
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.snapshots import report_expired
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
    snapshot = pin_snapshot(context).snapshot
    if snapshot is None or snapshot.statistics is None:
        return _STATISTICS.empty_table()
    path = context.paths.statistics(snapshot.statistics, context.paths.snapshot(snapshot.id))
    with report_expired(context, snapshot.id):
        try:
            found = load_object(context.files.read(path, STATISTICS_FILE.max_bytes), path, STATISTICS_FILE)
        except NotFound as error:
            raise CorruptTable(path, f"does not exist, but snapshot {snapshot.id} references it") from error
    columns = found.get("colStats")
    row = {
        "snapshot_id": found.integer("snapshotId"),
        "schema_id": found.integer("schemaId"),
        "mergedRecordCount": found.optional_integer("mergedRecordCount"),
        "mergedRecordSize": found.optional_integer("mergedRecordSize"),
        "colstat": None if columns is None else dump_json(columns).decode("utf-8"),
    }
    return pa.Table.from_pylist([row], schema=_STATISTICS)
