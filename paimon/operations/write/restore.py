"""Read the state of buckets from a snapshot, and follow the files of a writer's buckets from snapshot to snapshot.

Invariant: only manifests that may contain the requested partitions are read, and new sequence numbers are larger than
those of the bucket's files. Source: `AbstractFileStoreWrite`, `FileSystemWriteRestore`, `Levels` (which assumes that no
other process writes).
"""

# A writer must know the files of its buckets: new sequence numbers follow theirs, and inline compaction picks among
# them. Other processes commit concurrently, so what a writer knows is a snapshot plus its own changes:
#
#     known        files in snapshot 7                        read once for each bucket, then followed
#     + prepared   messages that were returned, uncommitted   until a snapshot contains them or shows that they are lost
#     + current    files of the writer since                  in `buckets.py`
#
# `BucketStateReader` reads the buckets of one snapshot on demand, and only manifests that may have their partitions;
# after a few such reads, all manifests are read once. `CommittedFiles` moves from snapshot to snapshot: it applies the
# deltas of the new ones in between, or, if they are many, expired, or of another history, reads the newest one anew.
# Commits are in order. So when a snapshot contains one of the prepared messages, the earlier ones were published or
# lost before, and are dropped, too.
#
# A program that makes many small writes has a new writer for each. So the files of the last buckets are kept in the
# cache of the engine, with their snapshot, and the next writer applies the deltas since then to them (`KnownBuckets`).
# An overwrite, or a snapshot that does not continue the known one, makes it read the manifests.

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from paimon.domain.commit.increments import files_after
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import (
    DataFileMeta,
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    count_statistics_bytes,
)
from paimon.domain.manifest.entry_columns import EntryColumns
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.scan.assemble import group_by_bucket
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_live_columns,
    read_manifest,
    read_manifest_list,
)
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address

_MAX_SEQUENCE = "sequence.generation.max-sequence-number"
"""Snapshot property of newer releases: the largest sequence number of the table."""
_PLAIN_KINDS = {CommitKind.APPEND, CommitKind.COMPACT}
"""Other snapshots can change the number of buckets of a partition."""
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
    """Reads the state of buckets of a snapshot (None: empty), with files if `keeps_files`; caches."""

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
        floor = _find_first_sequence(self._snapshot)
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


def _find_first_sequence(snapshot: Snapshot) -> int:
    """Return the first sequence number that no row of the table has, as far as the snapshot records it."""
    given = snapshot.properties.get(_MAX_SEQUENCE, "")
    return int(given) + 1 if given.isdecimal() else 0


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


_MAX_STEPS = 32
"""If more snapshots than these are new, reading the newest one completely costs less."""


@frozen(eq=False)
class PreparedMessages:
    """Commit messages that were prepared together, by bucket."""

    messages: dict[Address, CommitMessage]

    def is_shown_by(self, added: Collection[tuple[str, int]]) -> bool:
        """Return whether a snapshot with these added files (name, level) contains the messages."""
        return any(
            (f.file_name, f.level) in added
            for message in self.messages.values()
            for f in (*message.data.new_files, *message.compact.compact_after)
        )


_KNOWN = "bucket files"
_MAX_KNOWN = 1_000
"""More buckets and files are not kept, because each small write would copy their references."""
_MAX_KNOWN_STEPS = 8
"""Reading the deltas of more snapshots costs about as much as reading all manifests by columns."""
_FILE_BYTES = 1_000


@frozen(eq=False)
class KnownBuckets:
    """The files of some buckets in one snapshot, by name, and the number of buckets of their partitions."""

    snapshot: Snapshot
    files: Mapping[Address, Mapping[str, DataFileMeta]]
    total_buckets: Mapping[bytes, int]

    def select_states(self, addresses: Collection[Address]) -> BucketStates | None:
        """Return the state of these buckets; None if one of them is not known."""
        if not all(address in self.files for address in addresses):
            return None
        floor = _find_first_sequence(self.snapshot)
        files = {a: tuple(self.files[a].values()) for a in addresses}
        return BucketStates(
            {a: max([floor, *(f.max_sequence_number + 1 for f in files[a])]) for a in addresses},
            self.total_buckets,
            files,
        )

    def with_states(self, states: BucketStates) -> KnownBuckets:
        """Return these buckets and others of the same snapshot; only the others if all were too many."""
        files = {a: {f.file_name: f for f in states.files.get(a, ())} for a in states.next_sequence}
        read = {a.partition for a in files}
        totals = {p: total for p, total in states.total_buckets.items() if p in read}
        both = {**self.files, **files}
        others = {p: total for p, total in self.total_buckets.items() if p not in read}
        known = KnownBuckets(self.snapshot, both, others | totals)
        return known if known.count <= _MAX_KNOWN else KnownBuckets(self.snapshot, files, totals)

    @property
    def count(self) -> int:
        """The number of buckets and files."""
        return len(self.files) + sum(map(len, self.files.values()))

    @property
    def bytes(self) -> int:
        """About how many bytes the values have in memory."""
        files = (file for named in self.files.values() for file in named.values())
        return _FILE_BYTES * (1 + self.count) + count_statistics_bytes(files)

    def apply(self, newest: Snapshot, entries: Iterable[ManifestEntry]) -> KnownBuckets:
        """Return the same buckets in a later snapshot, by the entries that were added since."""
        files, totals = dict(self.files), dict(self.total_buckets)
        partitions, changed = {a.partition for a in files}, dict[Address, dict[str, DataFileMeta]]()
        for entry in entries:
            address = Address(entry.partition, entry.bucket)
            if entry.partition in partitions and entry.bucket >= 0:
                totals[entry.partition] = entry.total_buckets
            if address in files:
                _apply_entry(changed.setdefault(address, dict(files[address])), entry)
        files |= changed
        # A partition without files may get another number of buckets, so empty buckets are read again.
        return KnownBuckets(newest, {a: f for a, f in files.items() if f}, totals)


def _apply_entry(files: dict[str, DataFileMeta], entry: ManifestEntry) -> None:
    """Add or remove one file; a file that moves to another level is deleted on the old one, before or after."""
    known = files.get(entry.file.file_name)
    if entry.kind is FileKind.ADD:
        files[entry.file.file_name] = entry.file
    elif known is not None and known.level == entry.file.level:
        del files[entry.file.file_name]


class CommittedFiles:
    """Follow the table from snapshot to snapshot: a state machine.

    `snapshot` is the newest one that was read; None before the first read and for an empty table. Without
    `keeps_files`, only sequence numbers and numbers of buckets are read, from the first snapshot.
    """

    def __init__(self, context: TableContext, keeps_files: bool) -> None:
        self._context = context
        self._keeps_files = keeps_files
        self._restorer: BucketStateReader | None = None
        self._files: dict[Address, dict[str, DataFileMeta]] = {}
        self._prepared: list[PreparedMessages] = []
        self.snapshot: Snapshot | None = None

    def restore(self, addresses: Sequence[Address]) -> BucketStates:
        """Return the state of buckets that are new to the writer, and track their files from now on."""
        found = self._find_files(addresses)
        if self._keeps_files:
            self._files |= {a: {f.file_name: f for f in found.files.get(a, ())} for a in addresses}
        return found

    def stop_tracking(self, address: Address) -> bool:
        """Stop tracking this bucket. Return False if it must be tracked, because its state cannot be read again."""
        if not self._keeps_files or self.is_awaiting_commit(address):
            return False
        self._files.pop(address, None)
        return True

    def advance(self) -> None:
        """Read snapshots up to the newest; expiry is no error, damage of an existing one is CorruptTable."""
        if self._restorer is None:
            return
        newest = latest_snapshot(self._context)
        if newest == self.snapshot:
            return
        steps = self._find_steps(newest, self.snapshot)
        if steps is None:
            self._restart(newest)
            return
        added: set[tuple[str, int]] = set()
        try:
            for entry in [entry for step in steps for entry in self._read_delta(step)]:
                self._apply(entry, added)
        except CorruptTable:
            if all(self._exists(step) for step in steps):
                raise
            self._restart(latest_snapshot(self._context))
            return
        self._set_snapshot(newest)
        self._drop_published(added)

    def record_prepared(self, messages: Iterable[CommitMessage]) -> None:
        """Record commit messages that the writer returned; they count until a snapshot contains them."""
        by_bucket = {Address(m.partition, m.bucket): m for m in messages}
        if by_bucket and self._keeps_files:
            self._prepared.append(PreparedMessages(by_bucket))

    def drop_prepared(self) -> None:
        """Drop all recorded commit messages."""
        self._prepared.clear()

    def get_committed_names(self, address: Address) -> Collection[str]:
        """Return the names of the files of a bucket in the newest known snapshot."""
        return self._files.get(address, {}).keys()

    def is_awaiting_commit(self, address: Address) -> bool:
        """Return whether a commit message of this bucket is in no known snapshot yet."""
        return any(address in handed.messages for handed in self._prepared)

    def get_files(self, address: Address) -> dict[str, DataFileMeta]:
        """Return the files of a bucket by name, including recorded commit messages."""
        files = self._files.get(address, {})
        for handed in self._prepared:
            if message := handed.messages.get(address):
                files = files_after(files, message.data, message.compact)
        return files

    def _find_files(self, addresses: Sequence[Address]) -> BucketStates:
        if self._restorer is None:
            self._set_snapshot(latest_snapshot(self._context))
        known = self._find_known()
        if known is not None and (states := known.select_states(addresses)) is not None:
            return states
        while True:
            assert self._restorer is not None
            try:
                states = self._restorer.read_states(addresses)
                self._cache_known(known, states)
                return states
            except CorruptTable:
                if self.snapshot is None or self._exists(self.snapshot):
                    raise
            # The snapshot expired during the read: continue with a newer one.
            self._restart(latest_snapshot(self._context))

    def _find_known(self) -> KnownBuckets | None:
        """Return what an earlier writer of this process knew, in the snapshot of this writer."""
        engine, path = self._context.engine, self._context.paths.snapshots
        known = engine.cache.get(path, _KNOWN) if self._keeps_files else None
        if not isinstance(known, KnownBuckets) or self.snapshot is None:
            return None
        if known.snapshot.identity == self.snapshot.identity:
            return known
        is_near = self.snapshot.id <= known.snapshot.id + _MAX_KNOWN_STEPS
        steps = self._find_steps(self.snapshot, known.snapshot) if is_near else None
        if steps is None or not all(s.commit_kind in _PLAIN_KINDS for s in steps):
            return None
        try:
            known = known.apply(self.snapshot, [e for step in steps for e in self._read_delta(step)])
        except CorruptTable:  # it is read again, and raised if the snapshots exist
            return None
        self._put_known(known)
        return known

    def _cache_known(self, known: KnownBuckets | None, states: BucketStates) -> None:
        if self._keeps_files and self.snapshot is not None:
            if known is None or known.snapshot.identity != self.snapshot.identity:
                known = KnownBuckets(self.snapshot, {}, {})
            self._put_known(known.with_states(states))

    def _put_known(self, known: KnownBuckets) -> None:
        if known.count <= _MAX_KNOWN:
            self._context.engine.cache.put(self._context.paths.snapshots, known, known.bytes, _KNOWN)

    def _exists(self, snapshot: Snapshot) -> bool:
        return find_snapshot(self._context, snapshot.id) == snapshot

    def _set_snapshot(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self._restorer = BucketStateReader(self._context, snapshot, self._keeps_files)

    def _find_steps(self, newest: Snapshot | None, known: Snapshot | None) -> list[Snapshot] | None:
        """Return the snapshots after the known one up to the newest; None if they do not continue the known one."""
        if newest is None or known is None or not known.id < newest.id <= known.id + _MAX_STEPS:
            return None
        found = [find_snapshot(self._context, i) for i in range(known.id, newest.id)]
        chain = [s for s in found if s is not None]
        if len(chain) < len(found) or chain[0].identity != known.identity:
            return None
        return [*chain[1:], newest]

    def _read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        metas = read_manifest_list(self._context, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(self._context, meta.file_name)]

    def _apply(self, entry: ManifestEntry, added: set[tuple[str, int]]) -> None:
        files = self._files.get(Address(entry.partition, entry.bucket))
        if entry.kind is FileKind.ADD:
            added.add((entry.file.file_name, entry.file.level))
        if files is not None:
            _apply_entry(files, entry)

    def _drop_published(self, added: Collection[tuple[str, int]]) -> None:
        """Drop messages up to the last published; commits are in order, so the rest before it is lost."""
        shown = [i for i, handed in enumerate(self._prepared) if handed.is_shown_by(added)]
        if shown:
            del self._prepared[: shown[-1] + 1]

    def _restart(self, newest: Snapshot | None) -> None:
        self._set_snapshot(newest)
        assert self._restorer is not None
        known = list(self._files)
        self.restore(known)
        names = {(f.file_name, f.level) for files in self._files.values() for f in files.values()}
        self._drop_published(names)
