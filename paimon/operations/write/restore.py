"""What a writer must know of the files there are: where sequence numbers go on, and how many buckets partitions have.

Law: numbers go on behind the largest of the bucket's files in the latest snapshot.
Source: `AbstractFileStoreWrite`, `FileSystemWriteRestore`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from paimon.domain.manifest.columns import entry_columns
from paimon.domain.manifest.merge import live_mask
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.manifests import data_manifests, read_manifest_columns
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import Engine

_MAX_SEQUENCE = "sequence.generation.max-sequence-number"
"""Snapshot property of newer releases: the largest number ever given."""


@frozen(hash=False)
class Restored:
    """The state of a table's buckets.

    Parameters
    ----------
    next_sequence : mapping
        (partition, bucket) -> the first free sequence number; buckets without files are missing.
    total_buckets : mapping
        Partition -> its number of buckets.
    floor : int
        The first number of buckets that have no files.
    """

    next_sequence: Mapping[tuple[bytes, int], int] = field(factory=dict)
    total_buckets: Mapping[bytes, int] = field(factory=dict)
    floor: int = 0

    def sequence_of(self, partition: bytes, bucket: int) -> int:
        """The next sequence number of a bucket."""
        return max(self.floor, self.next_sequence.get((partition, bucket), 0))


NOTHING = Restored()
"""For writers that ignore what is there."""


def restore(engine: Engine, table: TableDefinition) -> Restored:
    """The state of the buckets in the latest snapshot."""
    snapshot = latest_snapshot(engine, table.paths)
    if snapshot is None:
        return NOTHING
    names = [meta.file_name for meta in data_manifests(engine, table, snapshot)]
    columns = entry_columns(read_manifest_columns(engine, table, names))
    live = columns.where(live_mask(columns) & (columns.buckets >= 0))
    given = snapshot.properties.get(_MAX_SEQUENCE, "")
    floor = int(given) + 1 if given.isdecimal() else 0
    if len(live) == 0:
        return Restored(floor=floor)
    order = np.lexsort((live.buckets, live.partitions))
    partitions, buckets = live.partitions[order], live.buckets[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(partitions) != 0) | (np.diff(buckets) != 0)])
    largest = np.maximum.reduceat(live.number("_MAX_SEQUENCE_NUMBER")[order], starts)
    totals = live.total_buckets[order][starts]
    rows = live.partition_rows
    return Restored(
        {
            (rows[partition], bucket): number + 1
            for partition, bucket, number in zip(
                partitions[starts].tolist(), buckets[starts].tolist(), largest.tolist(), strict=True
            )
        },
        {rows[p]: total for p, total in zip(partitions[starts].tolist(), totals.tolist(), strict=True)},
        floor,
    )
