"""System tables about columns: `aggregation_fields`, `statistics`.

Law: what is shown is stored: options of the schema, and the statistics file of the snapshot. Source:
`AggregationFieldsTable`, `StatisticTable`.
"""

from __future__ import annotations

import pyarrow as pa

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import STATISTICS_FILE, dump_json, load_object
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.text import format_type
from paimon.operations.read.time_travel import pin
from paimon.ports.engine import Engine

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


def aggregation_fields_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """One row a column, with the `fields.*` options that say how it is merged."""
    rows = []
    for column in table.schema.fields:
        held = _options_of(table, column.name)
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


def _options_of(table: TableDefinition, column: str) -> dict[str, str]:
    found = {k: v for k, v in table.schema.options.items() if k.startswith(f"{_FIELDS}{column}.")}
    return dict(sorted(found.items()))


def statistics_table(engine: Engine, table: TableDefinition) -> pa.Table:
    """The statistics that an ANALYZE left with the snapshot; no row where there are none."""
    snapshot = pin(engine, table).snapshot
    if snapshot is None or snapshot.statistics is None:
        return _STATISTICS.empty_table()
    path = table.paths.statistics(snapshot.statistics, table.paths.snapshot(snapshot.id))
    try:
        found = load_object(engine.files.read(path, STATISTICS_FILE.max_bytes), path, STATISTICS_FILE)
    except NotFound as error:
        raise CorruptTable(path, f"is named by snapshot {snapshot.id} but does not exist") from error
    columns = found.get("colStats")
    row = {
        "snapshot_id": found.integer("snapshotId"),
        "schema_id": found.integer("schemaId"),
        "mergedRecordCount": found.optional_integer("mergedRecordCount"),
        "mergedRecordSize": found.optional_integer("mergedRecordSize"),
        "colstat": None if columns is None else dump_json(columns).decode("utf-8"),
    }
    return pa.Table.from_pylist([row], schema=_STATISTICS)
