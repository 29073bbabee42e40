"""Assign rows to the dynamic buckets of their partitions, and write the hash index files of new keys.

Invariant: a partition is loaded from the index files of one snapshot, and followed by the changes of this assigner. Its
index files replace exactly those that it was loaded from. A state machine. Source: `HashBucketAssigner`,
`DynamicBucketIndexMaintainer`.
"""

# In a table with dynamic buckets, a key stays in the bucket that its first row got. A hash index file of each bucket
# has the hashes of its keys, so the bucket of a known key is found by its hash, and a new key gets a bucket with room:
#
#     index of bucket 0   h1 h4 h7      rows h4 h9 h9   ->   bucket 0 (known), 1 (new, bucket 0 is full), 1
#     index of bucket 1   h2            new index file of bucket 1: h2 h9, which replaces the one with h2
#
# An index file is complete: it replaces the one before it. So two writers that both add keys to a partition would each
# drop the keys of the other. The commit therefore names the index files by which the rows were assigned, and is refused
# if others are live by then (`paimon.domain.commit.conflicts.buckets`).
#
# A partition is loaded with its first row: the index files of one snapshot, sorted into one array of hashes. Between
# two commits of a stream, the assigner looks which index files the newest snapshot has. If they are those that it wrote
# or knows, it goes on; otherwise the partition is loaded again. The hashes of all partitions share a part of the
# memory budget; partitions that are not used are dropped first.

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from paimon.domain.bucket.hash_assigner_columnar import AssignmentRules, DynamicBuckets
from paimon.domain.bucket.hash_index import MAX_DYNAMIC_BUCKETS
from paimon.domain.bucket.key_hashes import BucketNumbers, Hashes
from paimon.domain.commit.message import HashIndexBase
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.schema.rules.layout import option_error
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.buckets.hash_index_files import read_hash_entries, read_hashes, write_hashes
from paimon.operations.data_files.deletion_vectors import IndexChange, delete_index_files
from paimon.operations.metadata.manifests import index_path
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext

_MEMORY_SHARE = 4
"""The part of the memory budget (1/n) for the hashes of partitions."""
_LOAD_HASHES = 8 * 1024 * 1024
"""So many hashes of index files are sorted together."""
_ARITY_BYTES = 4
"""A serialized row begins with its number of fields, which is not part of the hash."""


@define(eq=False)
class _PartitionState:
    """The hash index of one partition during a write."""

    # the index files that the next ones replace, by bucket
    base: dict[int, IndexManifestEntry]
    # the loaded hashes; None while they are not in memory
    buckets: DynamicBuckets | None = None
    # new hashes and their buckets, which no index file contains yet
    added: list[tuple[Hashes, BucketNumbers]] = field(factory=list)
    # rows were assigned since the last commit messages
    is_used: bool = False
    # the index files of the snapshot that `base` continues, by bucket
    published: dict[int, IndexManifestEntry] = field(factory=dict)


@frozen(eq=False)
class PreparedIndex:
    """What a writer commits about the hash indexes of its partitions."""

    # new and replaced index files by partition and bucket; only buckets with new keys
    changes: Mapping[tuple[bytes, int], IndexChange] = field(factory=dict)
    # names of the index files before, by partition and bucket; partitions without rows are missing
    bases: Mapping[bytes, Mapping[int, str]] = field(factory=dict)

    def get_base(self, partition: bytes, bucket: int) -> HashIndexBase | None:
        """Return the index files that rows of a bucket were assigned by; None if no row was assigned."""
        names = self.bases.get(partition)
        if names is None:
            return None
        has_new_keys = any(changed == partition for changed, _ in self.changes)
        return HashIndexBase(names.values() if has_new_keys else [names[bucket]], has_new_keys)


class BucketAssigner:
    """Assign rows to dynamic buckets; `ignore_previous` is for overwrites, whose commit removes the index."""

    def __init__(self, context: TableContext, *, ignore_previous: bool) -> None:
        self._context = context
        self._ignores = ignore_previous
        self._rules = build_rules(context.options)
        self._limit_bytes = context.engine.memory.bytes // _MEMORY_SHARE
        self._snapshot: Snapshot | None = None
        self._entries: Mapping[bytes, dict[int, IndexManifestEntry]] | None = {} if ignore_previous else None
        self._states: dict[bytes, _PartitionState] = {}
        self._is_prepared = False

    def assign(self, partition: bytes, hashes: Hashes) -> BucketNumbers:
        """Return a bucket for each key hash of a partition; InvalidRequest if all are full, and no more allowed."""
        if self._is_prepared:
            self._advance()
        state = self._load(partition)
        assert state.buckets is not None
        state.is_used = True
        start = int(self._context.engine.random.uniform() * (1 << 30)) if self._rules.max_buckets > 0 else 0
        found, new, new_buckets = state.buckets.assign(hashes, start)
        if len(new):
            state.added.append((new, new_buckets))
        return found

    def find_tasks(self, partition: bytes, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Return the number of the parallel task that writes each row of a partition; nothing is assigned."""
        buckets = self._load(partition).buckets
        assert buckets is not None
        return self._rules.find_tasks(hashes, buckets.find(hashes), _hash_partition(partition))

    def prepare(self) -> PreparedIndex:
        """Write the indexes of buckets with new keys, and name those replaced and those used for assignment."""
        changes: dict[tuple[bytes, int], IndexChange] = {}
        with undo_on_failure(lambda: delete_index_files(self._context, [e for c in changes.values() for e in c.new])):
            for partition in [p for p, state in self._states.items() if state.added]:
                self._write_partition(partition, changes)
        used = {} if self._ignores else {p: s for p, s in self._states.items() if s.is_used}
        bases = {p: {b: e.file_name for b, e in s.base.items()} for p, s in used.items()}
        for (partition, bucket), change in changes.items():
            self._states[partition].base[bucket] = change.new[0]
        for state in self._states.values():
            state.is_used = False
            state.added.clear()
        self._is_prepared = not self._ignores
        return PreparedIndex(changes, bases)

    def discard(self) -> None:
        """Drop the assignments that no index file contains."""
        for state in self._states.values():
            state.is_used = False
            if state.added:
                state.added.clear()
                state.buckets = None

    def _write_partition(self, partition: bytes, changes: dict[tuple[bytes, int], IndexChange]) -> None:
        state = self._load(partition)
        assert state.buckets is not None
        for bucket in sorted({int(bucket) for _, buckets in state.added for bucket in np.unique(buckets)}):
            name = f"index-{self._context.engine.ids.uuid()}-0"
            entry = write_hashes(self._context, partition, bucket, state.buckets.select(bucket), name)
            changes[partition, bucket] = IndexChange([entry], [state.base[bucket]] if bucket in state.base else [])

    def _advance(self) -> None:
        """Continue from the newest snapshot after others' index changes; keep prepared files not given up."""
        self._is_prepared = False
        newest = latest_snapshot(self._context)
        if newest == self._snapshot and all(s.base == s.published for s in self._states.values()):
            return
        self._entries = None
        entries = self._find_entries()
        for partition, state in list(self._states.items()):
            live = entries.get(partition, {})
            if live != state.base and (live != state.published or not self._has_files(state)):
                del self._states[partition]
            else:
                state.published = dict(live)

    def _has_files(self, state: _PartitionState) -> bool:
        """Return whether the index files exist that were prepared and are in no snapshot yet."""
        for bucket, entry in state.base.items():
            if state.published.get(bucket) != entry:
                try:
                    self._context.files.open(index_path(self._context.table, entry, "commit message")).close()
                except NotFound:
                    return False
        return True

    def _load(self, partition: bytes) -> _PartitionState:
        """Return the state of a partition with its hashes in memory."""
        state = self._states.pop(partition, None)
        if state is None:
            live = self._find_entries().get(partition, {})
            state = _PartitionState(dict(live), published=dict(live))
        self._states[partition] = state  # the last one is the one that was used last
        if state.buckets is None:
            self._evict()
            state.buckets = self._read_buckets(partition, state)
        return state

    def _evict(self) -> None:
        """Drop the hashes of the partitions that were used least recently until the rest fits into the memory."""
        held = sum(s.buckets.held_bytes for s in self._states.values() if s.buckets is not None)
        for state in self._states.values():
            if held <= self._limit_bytes:
                return
            if state.buckets is not None:
                held -= state.buckets.held_bytes
                state.buckets = None

    def _read_buckets(self, partition: bytes, state: _PartitionState) -> DynamicBuckets:
        buckets = DynamicBuckets(self._rules, _hash_partition(partition))
        waiting: list[tuple[Hashes, BucketNumbers]] = []
        for bucket, entry in sorted(state.base.items()):
            hashes = read_hashes(self._context, entry)
            waiting.append((hashes, np.full(len(hashes), bucket, np.int16)))
            if sum(len(h) for h, _ in waiting) >= _LOAD_HASHES:
                _load_all(buckets, waiting)
        _load_all(buckets, [*waiting, *state.added])
        return buckets

    def _find_entries(self) -> Mapping[bytes, dict[int, IndexManifestEntry]]:
        """Return the index files of the newest snapshot, read once."""
        while self._entries is None:
            self._snapshot = latest_snapshot(self._context)
            try:
                self._entries = read_hash_entries(self._context, self._snapshot)
            except CorruptTable:
                if self._snapshot is None or self._exists(self._snapshot):
                    raise
        return self._entries

    def _exists(self, snapshot: Snapshot) -> bool:
        return find_snapshot(self._context, snapshot.id) == snapshot


def _hash_partition(partition: bytes) -> int:
    return hash_bytes(partition[_ARITY_BYTES:])


def build_rules(options: TableOptions) -> AssignmentRules:
    """Return the rules that the `dynamic-bucket.*` options set; by default there is one assigner."""
    channels = options.dynamic_bucket_assigner_parallelism or 1
    assigners = min(channels, options.dynamic_bucket_initial_buckets or channels)
    target, most = options.dynamic_bucket_target_row_num, options.dynamic_bucket_max_buckets
    for key, value in (("assigner-parallelism", channels), ("initial-buckets", assigners), ("target-row-num", target)):
        if value < 1:
            raise option_error(f"dynamic-bucket.{key}", f"is {value}", "use a positive number")
    if most != -1 and not 1 <= most <= MAX_DYNAMIC_BUCKETS:
        raise option_error("dynamic-bucket.max-buckets", f"is {most}", f"use 1 to {MAX_DYNAMIC_BUCKETS}, or -1")
    if 0 < most < assigners:
        assigners = most
    return AssignmentRules(target, most, channels, assigners)


def _load_all(buckets: DynamicBuckets, waiting: list[tuple[Hashes, BucketNumbers]]) -> None:
    if waiting:
        buckets.load(np.concatenate([h for h, _ in waiting]), np.concatenate([b for _, b in waiting]))
        waiting.clear()
