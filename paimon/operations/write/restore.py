"""What a writer must know of the files there are: those of its buckets, where sequence numbers go on, and how many
buckets partitions have.

Law: only manifests that may hold the partitions asked for are read; numbers go on behind the largest of the bucket's
files. Source: `AbstractFileStoreWrite`, `FileSystemWriteRestore`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from attrs import field, frozen

from paimon.domain.manifest.columns import EntryColumns
from paimon.domain.manifest.entries import DataFileMeta, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.scan.assemble import by_bucket
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import data_manifests, live_columns
from paimon.operations.write.route import Address
from paimon.ports.engine import Engine

_MAX_SEQUENCE = "sequence.generation.max-sequence-number"
"""Snapshot property of newer releases: the largest number ever given."""
_PRUNED_TIMES = 4
"""Who asks more often meets partitions one by one: from then on the whole table is looked at, once."""


@frozen(hash=False)
class Restored:
    """The state of some buckets.

    Parameters
    ----------
    next_sequence : mapping
        The first free sequence number of each bucket.
    total_buckets : mapping
        Partition -> its number of buckets; partitions without files are missing.
    files : mapping
        The live files of each bucket, where they were asked for.
    """

    next_sequence: Mapping[Address, int] = field(factory=dict)
    total_buckets: Mapping[bytes, int] = field(factory=dict)
    files: Mapping[Address, tuple[DataFileMeta, ...]] = field(factory=dict)


class Restoring:
    """Reads the state of buckets from one snapshot, as they are met: a state machine that only remembers."""

    def __init__(self, engine: Engine, table: TableDefinition, snapshot: Snapshot | None, keeps_files: bool) -> None:
        self._engine = engine
        self._table = table
        self._snapshot = snapshot
        self._keeps_files = keeps_files
        self._asked = 0
        self._whole: EntryColumns | None = None

    def state_of(self, addresses: Collection[Address]) -> Restored:
        """The state of these buckets in the snapshot."""
        if self._snapshot is None:
            return Restored(dict.fromkeys(addresses, 0))
        given = self._snapshot.properties.get(_MAX_SEQUENCE, "")
        floor = int(given) + 1 if given.isdecimal() else 0
        live = self._live({a.partition for a in addresses})
        codes = {partition: code for code, partition in enumerate(live.partition_rows)}
        totals = _totals(live)
        wanted = {(codes[a.partition], a.bucket): a for a in addresses if a.partition in codes}
        mine = live.where(np.isin(_places(live), [_place(*place) for place in wanted]))
        largest = _largest(mine)
        return Restored(
            {a: max(floor, largest.get(a, -1) + 1) for a in addresses},
            totals,
            {Address(b.partition, b.bucket): b.files for b in by_bucket(mine, None)} if self._keeps_files else {},
        )

    def _live(self, partitions: Collection[bytes]) -> EntryColumns:
        """Live files of at least these partitions."""
        assert self._snapshot is not None
        self._asked += 1
        if self._whole is None and self._asked <= _PRUNED_TIMES:
            near = _near(data_manifests(self._engine, self._table, self._snapshot), self._table, partitions)
            return _real(live_columns(self._engine, self._table, near))
        if self._whole is None:
            manifests = data_manifests(self._engine, self._table, self._snapshot)
            self._whole = _real(live_columns(self._engine, self._table, manifests))
        return self._whole


def _near(
    manifests: Collection[ManifestFileMeta], table: TableDefinition, partitions: Collection[bytes]
) -> list[ManifestFileMeta]:
    types = [f.type for f in table.schema.partition_fields]
    wanted = [deserialize(partition, types) for partition in partitions]
    return [m for m in manifests if any(may_hold_partition(m, values, types) for values in wanted)]


def _real(live: EntryColumns) -> EntryColumns:
    """Without the files of postponed buckets."""
    return live.where(live.buckets >= 0)


def _place(partition: int, bucket: int) -> int:
    return partition << 31 | bucket


def _places(live: EntryColumns) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return live.partitions << 31 | live.buckets


def _totals(live: EntryColumns) -> dict[bytes, int]:
    found, first = np.unique(live.partitions, return_index=True)
    totals = live.total_buckets[first]
    return {live.partition_rows[p]: total for p, total in zip(found.tolist(), totals.tolist(), strict=True)}


def _largest(live: EntryColumns) -> dict[Address, int]:
    """The largest sequence number of each bucket."""
    if not len(live):
        return {}
    places = _places(live)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) != 0])
    largest = np.maximum.reduceat(live.number("_MAX_SEQUENCE_NUMBER")[order], starts)
    rows = zip(live.partitions[order][starts].tolist(), live.buckets[order][starts].tolist(), largest.tolist(),
               strict=True)  # fmt: skip
    return {Address(live.partition_rows[partition], bucket): number for partition, bucket, number in rows}
