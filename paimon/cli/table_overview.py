"""The command `paimon show`: schema, options, consumers, tags, branches, and the files of each bucket.

Invariant: all live files of the latest snapshot are counted, also those that batch reads skip.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa
from attrs import frozen

from paimon.cli.output import print_records
from paimon.cli.terminal import print_styled
from paimon.display.column_texts import to_plain_texts
from paimon.domain.errors import PaimonError
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.markup import format_count
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.type_text import format_type
from paimon.operations.expire.retention_reasons import read_references
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.plan import count_rows_from_metadata
from paimon.operations.read.system.partitions_and_buckets import format_partition_name
from paimon.table import Table
from paimon.verbs.reference_verbs import format_utc

_SHOWN_BUCKETS = 40


@frozen
class BucketSummary:
    """Size of one bucket."""

    partition: str
    bucket: int
    # number of files by level
    files: Counter[int]
    # bytes of the files by level
    size_bytes: Counter[int]
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
        format_count(sum(shape.files.total() for shape in shapes), "file"),
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
    grouped: dict[tuple[str, int], list[DataFileMeta]] = defaultdict(list)
    with report_expired(context, snapshot.id):
        entries = read_live_entries(context, read_data_manifests(context, snapshot))
    for entry in entries:
        grouped[format_partition_name(context.table, entry.partition), entry.bucket].append(entry.file)
    return [_summarize_bucket(partition, bucket, files) for (partition, bucket), files in sorted(grouped.items())]


def _summarize_bucket(partition: str, bucket: int, files: list[DataFileMeta]) -> BucketSummary:
    sizes: Counter[int] = Counter()
    for file in files:
        sizes[file.level] += file.file_size
    return BucketSummary(partition, bucket, Counter(f.level for f in files), sizes, sum(f.row_count for f in files))


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
    levels = "  ".join(f"L{level} {_format_blocks(count)}" for level, count in sorted(shape.files.items()))
    return {
        "partition": shape.partition,
        "bucket": shape.bucket,
        "levels": levels,
        "records": shape.records,
        "size": _format_size(shape.size_bytes.total()),
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
                "files_by_level": {str(k): v for k, v in sorted(s.files.items())},
                "bytes_by_level": {str(k): v for k, v in sorted(s.size_bytes.items())},
                "records": s.records,
            }
            for s in shapes
        ],
    }
