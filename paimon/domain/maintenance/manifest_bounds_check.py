"""Check the bounds of a manifest in its manifest list against its entries.

Invariant: Scan planning prunes manifests by these bounds, so a bound that excludes an entry loses rows. A bound that is
too wide or unknown is not a fault.
Source: `ManifestFileMeta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType


def find_bounds_faults(
    recorded: ManifestFileMeta, entries: EntryColumns, partition_types: Sequence[DataType]
) -> Iterator[str]:
    """Yield a text for each wrong bound that the manifest list records for a manifest (`recorded`)."""
    if not len(entries):
        return
    yield from _find_number_faults("buckets", entries.buckets, recorded.min_bucket, recorded.max_bucket)
    yield from _find_number_faults("levels", entries.number("_LEVEL"), recorded.min_level, recorded.max_level)
    rows = (deserialize(row, partition_types) for row in entries.partition_rows) if partition_types else ()
    outside = sum(not may_hold_partition(recorded, row, partition_types) for row in rows)
    if outside:
        yield f"contains {outside} partitions outside the bounds in the manifest list"


def _find_number_faults(name: str, values: Integers, low: int | None, high: int | None) -> Iterator[str]:
    first, last = int(values.min()), int(values.max())
    if (low is not None and first < low) or (high is not None and last > high):
        yield f"contains {name} {first} to {last}, but the manifest list records {low} to {high}"
