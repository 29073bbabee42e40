"""What a manifest list says of a manifest: counts and bounds over its entries.

Law: bounds are over all entries, deletes included, so a manifest that they exclude holds neither an ADD nor a DELETE
of what is looked for; a bound that is not known excludes nothing. Source: `ManifestFile.ManifestEntryWriter`,
`ManifestFileMeta`, `SimpleStatsCollector`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.row.binary_row import deserialize
from paimon.domain.stats.codec import column_stats, to_simple_stats
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats
from paimon.domain.types.data_types import DataType


def manifest_meta(
    name: str, size_bytes: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestFileMeta:
    """The manifest list's record of a manifest that holds these entries (at least one)."""
    added = sum(entry.kind is FileKind.ADD for entry in entries)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    row_ids = _row_ids(entries)
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


def _row_ids(entries: Sequence[ManifestEntry]) -> tuple[int, int] | None:
    """First and last row id; None unless every file has row ids."""
    ranges = []
    for entry in entries:
        if entry.file.first_row_id is None:
            return None
        ranges.append((entry.file.first_row_id, entry.file.first_row_id + entry.file.row_count - 1))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def partition_stats(partitions: Sequence[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Bounds and null counts of serialised partitions, one an entry."""
    if not types:
        return EMPTY_STATS
    decoded = {partition: deserialize(partition, types) for partition in set(partitions)}
    nulls = [0] * len(types)
    for partition in partitions:
        for i, value in enumerate(decoded[partition]):
            nulls[i] += value is None
    columns = [_bounds((row[i] for row in decoded.values()), nulls[i]) for i in range(len(types))]
    return to_simple_stats(columns, types)


def _bounds(values: Iterable[Any], null_count: int) -> ColumnStats:
    # Java's collector leaves out what is not Comparable: byte arrays.
    known = [value for value in values if value is not None and not isinstance(value, bytes)]
    if not known:
        return ColumnStats(None, None, null_count)
    return ColumnStats(min(known, key=rank), max(known, key=rank), null_count)


def rank(value: Any) -> Any:
    """What puts values of one column in Java's order: -0.0 before 0.0, NaN last."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value))
    return value


def may_hold_partition(manifest: ManifestFileMeta, values: Sequence[Any], types: Sequence[DataType]) -> bool:
    """Whether the manifest's bounds leave room for an entry of this partition (internal values)."""
    known = column_stats(manifest.partition_stats, types)
    return all(_admits(stats, value) for stats, value in zip(known, values, strict=False))


def _admits(stats: ColumnStats, value: Any) -> bool:
    if value is None:
        return stats.null_count is None or stats.null_count > 0
    if stats.minimum is None or stats.maximum is None:
        return True
    return bool(rank(stats.minimum) <= rank(value) <= rank(stats.maximum))
