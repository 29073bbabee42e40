"""Compute the record of a manifest in its manifest list: counts and bounds of its entries.

Invariant: Bounds include all entries, also deletes. A manifest that they exclude therefore contains neither an ADD nor
a DELETE of the files that are searched. An unknown bound excludes nothing.
Source: `ManifestFile.ManifestEntryWriter`, `ManifestFileMeta`, `SimpleStatsCollector`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paimon.domain.columns.java_float_order import to_float_sort_key
from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.row.binary_row import deserialize
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats
from paimon.domain.stats.stats_codec import from_simple_stats, to_simple_stats
from paimon.domain.types.data_types import DataType


def manifest_meta(
    name: str, size_bytes: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestFileMeta:
    """Return the record of a manifest for the manifest list, with the counts and partition bounds of its entries."""
    added = sum(entry.kind is FileKind.ADD for entry in entries)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    row_ids = _row_id_range(entries)
    return ManifestFileMeta(
        file_name=name,
        file_size=size_bytes,
        num_added_files=added,
        num_deleted_files=len(entries) - added,
        partition_stats=partition_stats([entry.partition for entry in entries], partition_types),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=row_ids[0] if row_ids else None,
        max_row_id=row_ids[1] if row_ids else None,
    )


def _row_id_range(entries: Sequence[ManifestEntry]) -> tuple[int, int] | None:
    """Return the first and the last row id; None unless all files have row ids."""
    ranges = []
    for entry in entries:
        if entry.file.first_row_id is None:
            return None
        ranges.append((entry.file.first_row_id, entry.file.first_row_id + entry.file.row_count - 1))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def partition_stats(partitions: Sequence[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Return the bounds and null counts of serialized partitions, with one partition for each entry."""
    if not types:
        return EMPTY_STATS
    decoded = {partition: deserialize(partition, types) for partition in set(partitions)}
    nulls = [0] * len(types)
    for partition in partitions:
        for i, value in enumerate(decoded[partition]):
            nulls[i] += value is None
    columns = [_to_column_stats((row[i] for row in decoded.values()), nulls[i]) for i in range(len(types))]
    return to_simple_stats(columns, types)


def _to_column_stats(values: Iterable[Any], null_count: int) -> ColumnStats:
    # Java's collector skips values that are not Comparable: byte arrays.
    known = [value for value in values if value is not None and not isinstance(value, bytes)]
    if not known:
        return ColumnStats(None, None, null_count)
    return ColumnStats(min(known, key=to_java_sort_key), max(known, key=to_java_sort_key), null_count)


def to_java_sort_key(value: Any) -> Any:
    """Return the sort key of a value in Java's order: -0.0 before 0.0, NaN last."""
    if isinstance(value, float):
        return to_float_sort_key(value)
    return value


def may_hold_partition(manifest: ManifestFileMeta, values: Sequence[Any], types: Sequence[DataType]) -> bool:
    """Return whether a manifest may contain an entry of a partition: False only if its bounds exclude the partition.

    `values` are the internal values of the partition columns.
    """
    known = from_simple_stats(manifest.partition_stats, types)
    return all(_admits(stats, value) for stats, value in zip(known, values, strict=False))


def _admits(stats: ColumnStats, value: Any) -> bool:
    if value is None:
        return stats.null_count is None or stats.null_count > 0
    if stats.minimum is None or stats.maximum is None:
        return True
    return bool(to_java_sort_key(stats.minimum) <= to_java_sort_key(value) <= to_java_sort_key(stats.maximum))
