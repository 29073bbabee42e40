"""Build the system tables about a table's history: `snapshots`, `schemas`, `options`, `tags`, `branches`, `consumers`.

Invariant: columns and their order are those of Java. Times are local times without a zone. A damaged consumer file
raises an error with its path. Source: `SnapshotsTable`, `SchemasTable`, `OptionsTable`, `TagsTable`, `BranchesTable`,
`ConsumersTable`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.json_text import DETAIL_FILE, load_object
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot, Tag
from paimon.domain.types.type_text import field_to_json
from paimon.operations.metadata.schemas import load_schema, schema_ids
from paimon.operations.metadata.snapshots import snapshots, tags
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_TIME = pa.timestamp("ms")

_SNAPSHOTS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("commit_user", pa.string()),
        ("commit_identifier", pa.int64()),
        ("commit_kind", pa.string()),
        ("commit_time", _TIME),
        ("base_manifest_list", pa.string()),
        ("delta_manifest_list", pa.string()),
        ("changelog_manifest_list", pa.string()),
        ("total_record_count", pa.int64()),
        ("delta_record_count", pa.int64()),
        ("changelog_record_count", pa.int64()),
        ("watermark", pa.int64()),
        ("next_row_id", pa.int64()),
    ]
)

_SCHEMAS = pa.schema(
    [
        ("schema_id", pa.int64()),
        ("fields", pa.string()),
        ("partition_keys", pa.string()),
        ("primary_keys", pa.string()),
        ("options", pa.string()),
        ("comment", pa.string()),
        ("update_time", _TIME),
    ]
)

_TAGS = pa.schema(
    [
        ("tag_name", pa.string()),
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("commit_time", _TIME),
        ("record_count", pa.int64()),
        ("create_time", _TIME),
        ("time_retained", pa.string()),
    ]
)
_BRANCH, _CONSUMER = "branch-", "consumer-"
_BRANCHES = pa.schema([("branch_name", pa.string()), ("create_time", pa.timestamp("ms"))])
_CONSUMERS = pa.schema([("consumer_id", pa.string()), ("next_snapshot_id", pa.int64())])


def snapshots_table(context: TableContext) -> pa.Table:
    """Return one row per snapshot that has not expired."""
    return pa.Table.from_pylist([_to_snapshot_row(context.engine, s) for s in snapshots(context)], schema=_SNAPSHOTS)


def _to_snapshot_row(engine: Engine, snapshot: Snapshot) -> dict[str, object]:
    return {
        "snapshot_id": snapshot.id,
        "schema_id": snapshot.schema_id,
        "commit_user": snapshot.commit_user,
        "commit_identifier": snapshot.commit_identifier,
        "commit_kind": snapshot.commit_kind.value,
        "commit_time": to_local_millis(engine, snapshot.time_millis),
        "base_manifest_list": snapshot.base_manifest_list,
        "delta_manifest_list": snapshot.delta_manifest_list,
        "changelog_manifest_list": snapshot.changelog_manifest_list,
        "total_record_count": snapshot.total_record_count,
        "delta_record_count": snapshot.delta_record_count,
        "changelog_record_count": snapshot.changelog_record_count,
        "watermark": snapshot.watermark,
        "next_row_id": snapshot.next_row_id,
    }


def schemas_table(context: TableContext) -> pa.Table:
    """Return one row per schema version; lists and maps are JSON text."""
    versions = [load_schema(context.engine, context.paths, i) for i in schema_ids(context.engine, context.paths)]
    return pa.Table.from_pylist([_to_schema_row(context.engine, s) for s in versions], schema=_SCHEMAS)


def _to_schema_row(engine: Engine, schema: TableSchema) -> dict[str, object]:
    return {
        "schema_id": schema.id,
        "fields": _dump_compact_json([field_to_json(f) for f in schema.fields]),
        "partition_keys": _dump_compact_json(list(schema.partition_keys)),
        "primary_keys": _dump_compact_json(list(schema.primary_keys)),
        "options": _dump_compact_json(dict(schema.options)),
        "comment": schema.comment,
        "update_time": to_local_millis(engine, schema.time_millis),
    }


def options_table(context: TableContext) -> pa.Table:
    """Return one row per stored option."""
    rows = [{"key": k, "value": v} for k, v in context.schema.options.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema([("key", pa.string()), ("value", pa.string())]))


def tags_table(context: TableContext) -> pa.Table:
    """Return one row per tag."""
    return pa.Table.from_pylist([_to_tag_row(context.engine, t) for t in tags(context)], schema=_TAGS)


def _to_tag_row(engine: Engine, tag: Tag) -> dict[str, object]:
    created = pa.scalar(tag.create_time).cast(pa.timestamp("ns")).cast(_TIME, safe=False) if tag.create_time else None
    return {
        "tag_name": tag.name,
        "snapshot_id": tag.snapshot.id,
        "schema_id": tag.snapshot.schema_id,
        "commit_time": to_local_millis(engine, tag.snapshot.time_millis),
        "record_count": tag.snapshot.total_record_count,
        "create_time": created.as_py() if created is not None else None,
        "time_retained": None if tag.retained_seconds is None else format_iso_duration(tag.retained_seconds),
    }


def format_iso_duration(seconds: float) -> str:
    """Format a duration as Java does (``PT17520H``)."""
    whole_seconds = int(seconds)
    hours, rest = divmod(whole_seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{left}S" if left else ""]
    return "PT" + ("".join(parts) or "0S")


def to_local_millis(engine: Engine, millis: int) -> int:
    """Convert an instant to local time, in milliseconds as if the local time were UTC."""
    return millis + engine.clock.local_offset_millis(millis)


def _dump_compact_json(value: Sequence[object] | dict[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def branches_table(context: TableContext) -> pa.Table:
    """Return one row per branch other than main."""
    listed = [s for s in context.files.list(context.paths.branches) if s.is_directory and s.name.startswith(_BRANCH)]
    rows = []
    for status in listed:
        name, modified = status.name.removeprefix(_BRANCH), status.modified_millis
        # A branch without a schema is incomplete and cannot be opened.
        if schema_ids(context.engine, TablePaths(context.table.location, name)):
            created = None if modified is None else to_local_millis(context.engine, modified)
            rows.append({"branch_name": name, "create_time": created})
    return pa.Table.from_pylist(rows, schema=_BRANCHES)


def consumers_table(context: TableContext) -> pa.Table:
    """Return one row per consumer, with the next snapshot that it reads."""
    found = [s for s in context.files.list(context.paths.consumers) if s.name.startswith(_CONSUMER)]
    rows = [
        {"consumer_id": s.name.removeprefix(_CONSUMER), "next_snapshot_id": _read_next_snapshot(context.engine, s.path)}
        for s in found
    ]
    return pa.Table.from_pylist(rows, schema=_CONSUMERS)


def _read_next_snapshot(engine: Engine, path: str) -> int:
    return load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("nextSnapshot")
