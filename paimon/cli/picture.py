"""`paimon show`: a table at a glance.

Law: what is drawn is every live file of the latest snapshot, also those that batch reads hide.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from attrs import frozen

from paimon.cli.output import console, print_records, quantity
from paimon.domain.errors import PaimonError
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.text import format_type
from paimon.operations.read.manifests import data_manifests, live_entries
from paimon.operations.read.row_count import known_row_count
from paimon.operations.read.system.groups import partition_name
from paimon.table import Table

_MOST = 40


@frozen
class BucketShape:
    """One bucket: files and bytes of each level."""

    partition: str
    bucket: int
    files: Counter[int]
    size_bytes: Counter[int]
    records: int


def show_table(table: Table, output: str) -> None:
    """Print schema, options, and the shape of each bucket."""
    shapes = bucket_shapes(table)
    if output == "json":
        print_records([_record(table, shapes)], "json")
        return
    screen = console()
    screen.print(table.name, style="bold", markup=False, highlight=False)
    screen.print(table.location, markup=False, highlight=False)
    if table.table_schema.comment:
        screen.print(table.table_schema.comment, style="italic", markup=False)
    print_records(_columns(table), "table", "columns")
    if table.options:
        print_records([{"option": k, "value": v} for k, v in sorted(table.options.items())], "table", "options")
    snapshot = table.snapshot()
    if snapshot is None:
        screen.print("nothing was written yet")
    else:
        files = sum(shape.files.total() for shape in shapes)
        rows = known_rows(table, snapshot)
        counts = (
            quantity(len(shapes), "bucket"),
            quantity(files, "file"),
            quantity(sum(shape.records for shape in shapes), "stored record")
            + (", not all merged" if rows is None else f", {quantity(rows, 'row')}"),
        )
        screen.print(f"snapshot {snapshot.id}, {snapshot.commit_kind.value}; {'; '.join(counts)}", highlight=False)
    if shapes:
        print_records([_drawn(s) for s in shapes[:_MOST]], "table", "buckets (files: ▪ one, level by level)")
    if len(shapes) > _MOST:
        screen.print(f"… and {len(shapes) - _MOST} more buckets", style="dim")


def known_rows(table: Table, snapshot: Snapshot | None) -> int | None:
    """The rows of a snapshot, where they are known; None also where its manifests cannot be read."""
    try:
        return known_row_count(table.engine, table.definition, snapshot)
    except PaimonError:
        return None


def bucket_shapes(table: Table) -> list[BucketShape]:
    """The shape of every bucket of the latest snapshot, by partition and bucket."""
    snapshot = table.snapshot()
    if snapshot is None:
        return []
    engine, definition = table.engine, table.definition
    grouped: dict[tuple[str, int], list[DataFileMeta]] = defaultdict(list)
    for entry in live_entries(engine, definition, data_manifests(engine, definition, snapshot)):
        grouped[partition_name(definition, entry.partition), entry.bucket].append(entry.file)
    return [_shape(partition, bucket, files) for (partition, bucket), files in sorted(grouped.items())]


def _shape(partition: str, bucket: int, files: list[DataFileMeta]) -> BucketShape:
    sizes: Counter[int] = Counter()
    for file in files:
        sizes[file.level] += file.file_size
    return BucketShape(partition, bucket, Counter(f.level for f in files), sizes, sum(f.row_count for f in files))


def _columns(table: Table) -> list[dict[str, object]]:
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


def _drawn(shape: BucketShape) -> dict[str, object]:
    levels = "  ".join(f"L{level} {_blocks(count)}" for level, count in sorted(shape.files.items()))
    return {
        "partition": shape.partition,
        "bucket": shape.bucket,
        "levels": levels,
        "records": shape.records,
        "size": _size(shape.size_bytes.total()),
    }


def _blocks(count: int) -> str:
    return "▪" * count if count <= 8 else f"▪×{count}"


def _size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def _record(table: Table, shapes: list[BucketShape]) -> dict[str, object]:
    snapshot = table.snapshot()
    return {
        "name": table.name,
        "location": table.location,
        "columns": _columns(table),
        "primary_keys": list(table.primary_keys),
        "partition_keys": list(table.partition_keys),
        "options": dict(table.options),
        "snapshot": None if snapshot is None else snapshot.id,
        "records": None if snapshot is None else snapshot.total_record_count,
        "rows": known_rows(table, snapshot),
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
