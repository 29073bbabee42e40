"""Compute the record of a manifest in its manifest list: counts and bounds of its entries.

Invariant: Bounds include all entries, also deletes. A manifest that they exclude therefore contains neither an ADD nor
a DELETE of the files that are searched. An unknown bound excludes nothing.
Source: `ManifestFile.ManifestEntryWriter`, `ManifestFileMeta`, `SimpleStatsCollector`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from paimon.domain.columns.java_float_order import to_float_sort_key
from paimon.domain.manifest.checked_columns import to_integers, to_mask
from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers
from paimon.domain.row.binary_row import deserialize
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, SimpleStats, from_simple_stats, to_simple_stats
from paimon.domain.types.data_types import DataType


def manifest_meta(
    name: str, size_bytes: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestFileMeta:
    """Return the record of a manifest for the manifest list, with the counts and partition bounds of its entries."""
    files = [entry.file for entry in entries]
    first_ids = None if None in (ids := [f.first_row_id for f in files]) else np.array(ids, np.int64)
    return _to_meta(
        ManifestFileMeta(name, size_bytes, 0, 0, partition_stats([e.partition for e in entries], partition_types)),
        np.array([int(entry.kind) for entry in entries]),
        np.array([entry.bucket for entry in entries]),
        tuple(np.array([getattr(f, name) for f in files]) for name in ("level", "schema_id", "row_count")),
        first_ids,
    )


def manifest_meta_of_columns(
    name: str, size_bytes: int, entries: EntryColumns, rows: Integers, partition_types: Sequence[DataType]
) -> ManifestFileMeta:
    """Return the same as `manifest_meta` for the entries at these positions."""
    counts = np.bincount(entries.partitions[rows], minlength=len(entries.partition_rows)).tolist()
    partitions = {row: count for row, count in zip(entries.partition_rows, counts, strict=True) if count}
    ids = entries.files.field("_FIRST_ROW_ID")
    first_ids = None if ids.null_count else to_integers(ids)[rows]
    if ids.null_count and bool(to_mask(ids.is_valid())[rows].all()):
        first_ids = to_integers(ids)[rows]
    return _to_meta(
        ManifestFileMeta(name, size_bytes, 0, 0, _bound_partitions(partitions, partition_types)),
        entries.kinds[rows],
        entries.buckets[rows],
        tuple(entries.number(name)[rows] for name in ("_LEVEL", "_SCHEMA_ID", "_ROW_COUNT")),
        first_ids,
    )


def _to_meta(
    meta: ManifestFileMeta, kinds: Integers, buckets: Integers, files: tuple[Integers, ...], first_ids: Integers | None
) -> ManifestFileMeta:
    """Add the counts and bounds; `files` has levels, schema ids and row counts. Unless all have row ids, it is None."""
    levels, schema_ids, rows = files
    added = int((kinds == int(FileKind.ADD)).sum())
    return evolve(
        meta,
        num_added_files=added,
        num_deleted_files=len(kinds) - added,
        schema_id=int(schema_ids.max()),
        min_bucket=int(buckets.min()),
        max_bucket=int(buckets.max()),
        min_level=int(levels.min()),
        max_level=int(levels.max()),
        min_row_id=None if first_ids is None else int(first_ids.min()),
        max_row_id=None if first_ids is None else int((first_ids + rows - 1).max()),
    )


def partition_stats(partitions: Iterable[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Return the bounds and null counts of serialized partitions, with one partition for each entry."""
    return _bound_partitions(Counter(partitions), types)


def _bound_partitions(counts: Mapping[bytes, int], types: Sequence[DataType]) -> SimpleStats:
    """Return the bounds and null counts of partitions, which have these numbers of entries."""
    if not types:
        return EMPTY_STATS
    rows = [deserialize(partition, types) for partition in counts]
    columns = [
        _to_column_stats(values, sum(n for value, n in zip(values, counts.values(), strict=True) if value is None))
        for values in zip(*rows, strict=True)
    ]
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
