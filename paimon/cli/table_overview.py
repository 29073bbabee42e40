"""The command `paimon show`: schema, options, consumers, tags, branches, and the files of each bucket.

Invariant: all live files of the latest snapshot are counted, also those that batch reads skip.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import frozen

from paimon.cli.output import print_records
from paimon.cli.terminal import print_styled
from paimon.display.column_texts import to_plain_texts
from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.bucket_layout import LayoutRules, LevelShape, measure_buckets
from paimon.domain.markup import format_count
from paimon.domain.partition.partition_text import format_utc
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.type_text import format_type
from paimon.operations.expire.retention_reasons import read_references
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.plan import count_rows_from_metadata
from paimon.operations.read.system.partitions_and_buckets import format_partition_name
from paimon.table import Table

_SHOWN_BUCKETS = 40


@frozen
class BucketSummary:
    """Size of one bucket."""

    partition: str
    bucket: int
    levels: tuple[LevelShape, ...]
    # stored records of all files
    records: int


def show_table(table: Table, output: str) -> None:
    """Print the schema, the options and the buckets of a table, as tables or as one JSON object."""
    shapes = collect_bucket_shapes(table)
    if output == "json":
        print_records([_to_record(table, shapes)], "json")
        return
    print_styled(table.name, "bold")
    print(table.location)
    if table.table_schema.comment:
        print(to_plain_texts(pa.array([table.table_schema.comment]))[0])
    print()
    print_records(_describe_columns(table), "table", "columns")
    if table.options:
        print()
        print_records([{"option": k, "value": v} for k, v in sorted(table.options.items())], "table", "options")
    references = _describe_references(table)
    if references:
        print()
        print_records(references, "table", "consumers, tags and branches")
    snapshot = table.snapshot()
    print()
    print(_describe_snapshot(table, snapshot, shapes))
    if shapes:
        print_records(
            [_format_shape(s) for s in shapes[:_SHOWN_BUCKETS]], "table", "buckets (▪ is one file; L0 is level 0)"
        )
    if len(shapes) > _SHOWN_BUCKETS:
        print_styled(f"… and {format_count(len(shapes) - _SHOWN_BUCKETS, 'more bucket')}", "dim")


def _describe_snapshot(table: Table, snapshot: Snapshot | None, shapes: Sequence[BucketSummary]) -> str:
    if snapshot is None:
        return "the table has no snapshot yet"
    rows = count_known_rows(table, snapshot)
    merged = "not all merged" if rows is None else format_count(rows, "row")
    counts = (
        format_count(len(shapes), "bucket"),
        format_count(sum(level.files for shape in shapes for level in shape.levels), "file"),
        f"{format_count(sum(shape.records for shape in shapes), 'stored record')}, {merged}",
    )
    return f"snapshot {snapshot.id}, {snapshot.commit_kind.value}; {'; '.join(counts)}"


def count_known_rows(table: Table, snapshot: Snapshot | None) -> int | None:
    """Return the number of rows of a snapshot; None if it is unknown without a merge, or manifests cannot be read."""
    try:
        return count_rows_from_metadata(table.context, snapshot)
    except PaimonError:
        return None


def collect_bucket_shapes(table: Table) -> list[BucketSummary]:
    """Collect the size of every bucket of the latest snapshot, ordered by partition and bucket."""
    snapshot = table.snapshot()
    if snapshot is None:
        return []
    context = table.context
    with report_expired(context, snapshot.id):
        live = read_live_columns(context, read_data_manifests(context, snapshot))
    found = measure_buckets(live, LayoutRules.of(context.table))
    names = [format_partition_name(context.table, row) for row in found.partition_rows]
    buckets = zip(found.partitions.tolist(), found.buckets.tolist(), found.rows.tolist(), strict=True)
    shapes = [
        BucketSummary(names[partition], bucket, found.levels_of(place), records)
        for place, (partition, bucket, records) in enumerate(buckets)
    ]
    return sorted(shapes, key=lambda shape: (shape.partition, shape.bucket))


def _describe_columns(table: Table) -> list[dict[str, object]]:
    keys = table.primary_keys
    return [
        {
            "id": f.id,
            "column": f.name,
            "type": format_type(f.type),
            "role": " ".join(
                word for word, on in (("key", f.name in keys), ("partition", f.name in table.partition_keys)) if on
            ),
            "description": f.description or "",
        }
        for f in table.table_schema.fields
    ]


def _describe_references(table: Table) -> list[dict[str, object]]:
    """Describe what retains snapshots or their files; one that cannot be read is described by its error."""
    found: list[dict[str, object]] = []
    try:
        for reason in read_references(table.context):
            since = None if reason.since_millis is None else format_utc(reason.since_millis)
            found.append(
                {"reference": reason.kind, "name": reason.name, "snapshot": reason.snapshot_id, "since": since}
            )
    except PaimonError as error:
        found.append({"reference": "unreadable", "name": error.message, "snapshot": None, "since": None})
    return found


def _format_shape(shape: BucketSummary) -> dict[str, object]:
    levels = "  ".join(f"L{level.level} {_format_blocks(level.files)}" for level in shape.levels)
    return {
        "partition": shape.partition,
        "bucket": shape.bucket,
        "levels": levels,
        "records": shape.records,
        "size": _format_size(sum(level.size_bytes for level in shape.levels)),
    }


def _format_blocks(count: int) -> str:
    return "▪" * count if count <= 8 else f"▪×{count}"


def _format_size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def _to_record(table: Table, shapes: list[BucketSummary]) -> dict[str, object]:
    snapshot = table.snapshot()
    return {
        "name": table.name,
        "location": table.location,
        "columns": _describe_columns(table),
        "primary_keys": list(table.primary_keys),
        "partition_keys": list(table.partition_keys),
        "options": dict(table.options),
        "snapshot": None if snapshot is None else snapshot.id,
        "records": None if snapshot is None else snapshot.total_record_count,
        "rows": count_known_rows(table, snapshot),
        "references": _describe_references(table),
        "buckets": [
            {
                "partition": s.partition,
                "bucket": s.bucket,
                "files_by_level": {str(level.level): level.files for level in s.levels},
                "bytes_by_level": {str(level.level): level.size_bytes for level in s.levels},
                "records": s.records,
            }
            for s in shapes
        ],
    }
