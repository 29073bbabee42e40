"""Read the state of buckets from a snapshot: their files, sequence numbers, and the bucket count of partitions.

Invariant: only manifests that may contain the requested partitions are read, and new sequence numbers are larger than
those of the bucket's files. Source: `AbstractFileStoreWrite`, `FileSystemWriteRestore`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.scan.assemble import group_by_bucket
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address

_MAX_SEQUENCE = "sequence.generation.max-sequence-number"
"""Snapshot property of newer releases: the largest sequence number of the table."""
_MAX_PRUNED_READS = 4
"""After this many reads of single partitions, all manifests are read once."""


@frozen(hash=False)
class BucketStates:
    """The state of some buckets."""

    # The first free sequence number of each bucket
    next_sequence: Mapping[Address, int] = field(factory=dict)
    # The number of buckets of each partition; partitions without files are missing
    total_buckets: Mapping[bytes, int] = field(factory=dict)
    # The live files of each bucket; empty unless they were requested
    files: Mapping[Address, tuple[DataFileMeta, ...]] = field(factory=dict)


class BucketStateReader:
    """Read the state of buckets from one snapshot on demand; `keeps_files` requests the files, too.

    A state machine that only caches. None is an empty table.
    """

    def __init__(self, context: TableContext, snapshot: Snapshot | None, keeps_files: bool) -> None:
        self._context = context
        self._snapshot = snapshot
        self._keeps_files = keeps_files
        self._reads = 0
        self._all_files: EntryColumns | None = None

    def read_states(self, addresses: Collection[Address]) -> BucketStates:
        """Return the state of these buckets in the snapshot."""
        if self._snapshot is None:
            return BucketStates(dict.fromkeys(addresses, 0))
        given = self._snapshot.properties.get(_MAX_SEQUENCE, "")
        floor = int(given) + 1 if given.isdecimal() else 0
        live = self._load_live_files({a.partition for a in addresses})
        codes = {partition: code for code, partition in enumerate(live.partition_rows)}
        totals = read_total_buckets(live)
        wanted = {(codes[a.partition], a.bucket): a for a in addresses if a.partition in codes}
        matching = live.filter(np.isin(_to_bucket_codes(live), [_to_bucket_code(*pair) for pair in wanted]))
        largest = _find_largest_sequences(matching)
        return BucketStates(
            {a: max(floor, largest.get(a, -1) + 1) for a in addresses},
            totals,
            {Address(b.partition, b.bucket): b.files for b in group_by_bucket(matching, None)}
            if self._keeps_files
            else {},
        )

    def _load_live_files(self, partitions: Collection[bytes]) -> EntryColumns:
        """Return the live files of at least these partitions."""
        assert self._snapshot is not None
        self._reads += 1
        if self._all_files is None and self._reads <= _MAX_PRUNED_READS:
            selected = _select_manifests(
                read_data_manifests(self._context, self._snapshot), self._context.table, partitions
            )
            return _drop_postponed(read_live_columns(self._context, selected))
        if self._all_files is None:
            manifests = read_data_manifests(self._context, self._snapshot)
            self._all_files = _drop_postponed(read_live_columns(self._context, manifests))
        return self._all_files


def _select_manifests(
    manifests: Collection[ManifestFileMeta], table: TableDefinition, partitions: Collection[bytes]
) -> list[ManifestFileMeta]:
    types = [f.type for f in table.schema.partition_fields]
    wanted = [deserialize(partition, types) for partition in partitions]
    return [m for m in manifests if any(may_hold_partition(m, values, types) for values in wanted)]


def _drop_postponed(live: EntryColumns) -> EntryColumns:
    """Return the files without those of the postponed bucket."""
    return live.filter(live.buckets >= 0)


def _to_bucket_code(partition: int, bucket: int) -> int:
    return partition << 31 | bucket


def _to_bucket_codes(live: EntryColumns) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return live.partitions << 31 | live.buckets


def read_total_buckets(live: EntryColumns) -> dict[bytes, int]:
    """Return the number of buckets of each partition that has one of these files."""
    found, first = np.unique(live.partitions, return_index=True)
    totals = live.total_buckets[first]
    return {live.partition_rows[p]: total for p, total in zip(found.tolist(), totals.tolist(), strict=True)}


def _find_largest_sequences(live: EntryColumns) -> dict[Address, int]:
    """Return the largest sequence number of each bucket."""
    if not len(live):
        return {}
    bucket_codes = _to_bucket_codes(live)
    order = np.argsort(bucket_codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(bucket_codes[order]) != 0])
    largest = np.maximum.reduceat(live.number("_MAX_SEQUENCE_NUMBER")[order], starts)
    partitions, buckets = (codes[order][starts].tolist() for codes in (live.partitions, live.buckets))
    rows = zip(partitions, buckets, largest.tolist(), strict=True)
    return {Address(live.partition_rows[partition], bucket): number for partition, bucket, number in rows}
