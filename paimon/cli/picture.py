"""`paimon show`: a table at a glance.

Law: what is drawn is what a plan of the latest snapshot holds, unpruned.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from attrs import frozen

from paimon.cli.output import console, print_records
from paimon.domain.partition.path import partition_path
from paimon.domain.row.binary_row import deserialize
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.text import format_type
from paimon.table import Table

_MOST = 40


@frozen
class BucketShape:
    """One bucket: files and bytes of each level."""

    partition: str
    bucket: int
    files: Counter[int]
    size_bytes: Counter[int]
    rows: int


def show_table(table: Table, output: str) -> None:
    """Print schema, options, and the shape of each bucket."""
    shapes = bucket_shapes(table)
    if output == "json":
        print_records([_record(table, shapes)], "json")
        return
    screen = console()
    screen.print(f"[bold]{table.name}[/]  {table.location}")
    if table.table_schema.comment:
        screen.print(table.table_schema.comment, style="italic")
    print_records(_columns(table), "table", "columns")
    if table.options:
        print_records([{"option": k, "value": v} for k, v in sorted(table.options.items())], "table", "options")
    snapshot = table.snapshot()
    latest = "nothing was written yet" if snapshot is None else f"snapshot {snapshot.id}, {snapshot.commit_kind.value}"
    screen.print(f"{latest}; {len(shapes)} buckets; {sum(s.files.total() for s in shapes)} files")
    if shapes:
        print_records([_drawn(s) for s in shapes[:_MOST]], "table", "buckets (files: ▪ one, level by level)")
    if len(shapes) > _MOST:
        screen.print(f"… and {len(shapes) - _MOST} more buckets", style="dim")


def bucket_shapes(table: Table) -> list[BucketShape]:
    """The shape of every bucket of the latest snapshot, by partition and bucket."""
    grouped: dict[tuple[str, int], list[DataSplit]] = defaultdict(list)
    for split in table.scan().plan().splits:
        grouped[_partition_text(table, split.partition), split.bucket].append(split)
    return [_shape(partition, bucket, splits) for (partition, bucket), splits in sorted(grouped.items())]


def _shape(partition: str, bucket: int, splits: list[DataSplit]) -> BucketShape:
    files = [f for split in splits for f in split.files]
    sizes: Counter[int] = Counter()
    for file in files:
        sizes[file.level] += file.file_size
    return BucketShape(partition, bucket, Counter(f.level for f in files), sizes, sum(f.row_count for f in files))


def _partition_text(table: Table, partition: bytes) -> str:
    fields = table.table_schema.partition_fields
    if not fields:
        return ""
    options = table.definition.options
    return partition_path(deserialize(partition, [f.type for f in fields]), fields, options.partition_default_name)


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
        "rows": shape.rows,
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
        "buckets": [
            {
                "partition": s.partition,
                "bucket": s.bucket,
                "files_by_level": {str(k): v for k, v in sorted(s.files.items())},
                "bytes_by_level": {str(k): v for k, v in sorted(s.size_bytes.items())},
                "rows": s.rows,
            }
            for s in shapes
        ],
    }
