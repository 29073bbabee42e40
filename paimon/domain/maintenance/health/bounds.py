"""What a manifest list says of a manifest, against what the manifest holds.

Law: plans pass over manifests by these bounds, so a bound that leaves out an entry loses rows; one that is too wide, or
not known, does no harm. Source: `ManifestFileMeta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paimon.domain.manifest.columns import EntryColumns
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.types.data_types import DataType


def bounds_faults(
    told: ManifestFileMeta, held: EntryColumns, partition_types: Sequence[DataType]
) -> Iterator[str]:
    """What the list says wrongly."""
    if not len(held):
        return
    levels = held.number("_LEVEL")
    for what, values, low, high in (
        ("bucket", held.buckets, told.min_bucket, told.max_bucket),
        ("level", levels, told.min_level, told.max_level),
    ):
        first, last = int(values.min()), int(values.max())
        if (low is not None and first < low) or (high is not None and last > high):
            yield f"holds {what}s {first} to {last}, its list says {low} to {high}"
    rows = (deserialize(row, partition_types) for row in held.partition_rows) if partition_types else ()
    outside = sum(not may_hold_partition(told, row, partition_types) for row in rows)
    if outside:
        yield f"holds {outside} partitions outside the bounds that its list says"
