"""Adapt a change to the snapshot that it is committed on, and refuse it if the two contradict each other.

Invariant: nothing is written before the plan is made, and the plan is made again on each base. It reads of the base
only what its rules need.

Source: `FileStoreCommitImpl.tryCommitOnce`, `StrictModeChecker`.
"""

# A commit names files that were written while others committed. So a change is planned on a base, the newest snapshot
# at that moment, and planned again on the next base when another commit was first:
#
#     base 7   [a b c]      change: COMPACT a, b -> d           plan: -a -b +d          published as 8 by another: -a +e
#     base 8   [b c e]      the same change                     conflict: "a" is no longer in the table
#
# `plan_change` is a function of the change and of the base. The base is read on demand: `Base` has a member for each
# part of it, and a plain append into an unchanged table asks for the ids of the schemas and for nothing else. The
# order of the rules is therefore part of the design: cheap rules come first, and one that needs manifests only runs
# where its condition, which needs none, is true.
#
#     1. adapt        an overwrite deletes the live files of its partitions; an append drops files that are there
#     2. types        rows written under an older type of a column must fit the newest one
#     3. read state   rows computed from a snapshot: no other writer changed rows since
#     4. since        what other users committed after a snapshot that the change knows: strict mode, key index
#     5. files        new global indexes show the live values, and updates drop those that they make wrong;
#                     files to delete are live, key ranges of a level are disjoint, deletion vectors are current
#     6. buckets      the partition still has the number of buckets that the writer assumed
#     7. late rows    the rows of an append would not win against rows committed since its read: they are renumbered
#
# Two rules look at each snapshot after one that they know, and must not read them again on the next base. They are
# small state machines: `KeyIndexCheck` lives as long as one change, `SafeSnapshot` as long as one committer.

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

from attrs import Factory, evolve, field, frozen

from paimon.domain.commit.conflicts.buckets import (
    can_move_keys,
    check_bucket_counts,
    check_bucket_option,
    check_hash_index,
    check_key_index,
    has_other_bucket_count,
    make_lost_snapshot_error,
)
from paimon.domain.commit.conflicts.compactions import check_dropped_deletes, check_level_order, find_dropped_deletes
from paimon.domain.commit.conflicts.files import check_conflicts, check_vectors, drop_known, needs_check
from paimon.domain.commit.conflicts.global_indexes import check_new_indexes, drop_stale_indexes
from paimon.domain.commit.conflicts.other_commits import (
    BucketKey,
    LateRowsFound,
    can_strict_mode_refuse,
    check_read_state,
    check_strict,
    find_late_rows,
    list_numbered_files,
    make_expired_snapshot_error,
)
from paimon.domain.commit.conflicts.row_updates import check_joined_rows, check_row_updates
from paimon.domain.commit.entries import Change, find_oldest
from paimon.domain.commit.message import ReadState
from paimon.domain.commit.overwrite import PartitionFilter, build_overwrite, partitions_of_spec, partitions_written
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.manifest.type_fit import UnsafeCast
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import format_type


class Base(Protocol):
    """What a plan can ask of the snapshot that it is made on; each part is read when it is asked for."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot; None if the table has none."""

    @property
    def schema_id(self) -> int:
        """The id of the newest schema."""

    @property
    def index_files(self) -> tuple[IndexManifestEntry, ...]:
        """The live index files."""

    def read_live_files(self, is_wanted: Callable[[bytes], bool]) -> list[ManifestEntry]:
        """Return the live files of the wanted partitions."""

    def read_live_files_near(self, change: Change) -> list[ManifestEntry]:
        """Return the live files that may conflict with the change."""

    def read_bucket_options(self) -> tuple[int, ...]:
        """Return the option `bucket` of the schemas since that of the writer; the last one is the newest."""

    def find_unsafe_cast(self, files: Iterable[DataFileMeta]) -> UnsafeCast | None:
        """Return a column of a file whose values may not fit the newest schema."""

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of an id up to that of the base; None if it does not exist."""

    def read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the entries that a snapshot added."""

    def read_index_changes(self, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
        """Return the index files that a snapshot added or removed."""

    def read_added_since(self, snapshot_id: int, partitions: Container[bytes]) -> Iterable[ManifestEntry]:
        """Return at least the live files of the partitions that were added after a snapshot."""


class KeyIndexCheck:
    """Check one change against each base; it continues after the last base that it checked. A state machine."""

    def __init__(self) -> None:
        self._checked: ReadState | None = None

    def check(self, base: Base, change: Change, commit_user: str, key_types: Sequence[DataType]) -> None:
        """Raise KeyIndexConflict if a commit after the snapshot of the key index may have added the same keys.

        The key ranges of files are compared. A commit whose snapshot no longer exists refuses the change, too.
        """
        if change.key_index is None:
            return
        known, latest = self._checked or change.key_index, base.snapshot
        if latest is None:
            if known.snapshot_id:
                raise make_lost_snapshot_error(known.snapshot_id)
            return
        _check_lineage(base, known, latest)
        for snapshot_id in range(known.snapshot_id + 1, latest.id + 1):
            snapshot = base.find_snapshot(snapshot_id)
            if snapshot is None:
                raise make_lost_snapshot_error(snapshot_id)
            if can_move_keys(snapshot, commit_user):
                check_key_index(snapshot, base.read_delta(snapshot), change, key_types)
        self._checked = ReadState.of(latest)


def _check_lineage(base: Base, known: ReadState, latest: Snapshot) -> None:
    """Refuse a base that does not continue the snapshot of the index, because the table was rolled back."""
    if known.snapshot_id:
        snapshot = base.find_snapshot(known.snapshot_id)
        # An expired snapshot was in the history: rollback would have removed all later ones, too.
        is_expired = snapshot is None and known.snapshot_id < latest.id
        if not is_expired and (snapshot is None or not known.is_state_of(snapshot)):
            raise make_lost_snapshot_error(known.snapshot_id)


class SafeSnapshot:
    """The last snapshot checked in strict mode, from `seen` on: a state machine that advances."""

    def __init__(self, seen: int | None = None) -> None:
        self._last_checked_id = seen

    def check(self, base: Base, change: Change, commit_user: str, option: int | None) -> None:
        """Raise CommitConflict if a snapshot after the safe one contradicts the change, or expired unchecked.

        `option` is `commit.strict-mode.last-safe-snapshot`; None checks nothing. Snapshots of `commit_user` are safe.
        """
        latest = base.snapshot
        if option is None or latest is None:
            return
        safe = max(option, -1 if self._last_checked_id is None else self._last_checked_id)
        # With -1 the first commit does not check the earlier snapshots.
        for snapshot_id in range(safe + 1, latest.id + 1) if safe >= 0 else ():
            snapshot = base.find_snapshot(snapshot_id)
            if snapshot is None:
                raise make_expired_snapshot_error(snapshot_id)
            if can_strict_mode_refuse(snapshot, change, commit_user):
                check_strict(snapshot, base.read_delta(snapshot), base.read_index_changes(snapshot), change)
        self._last_checked_id = latest.id


@frozen(eq=False)
class Intent:
    """What one snapshot is to change, before it is adapted to a base."""

    table: TableDefinition
    request: CommitRequest
    # the change as the writers prepared it
    change: Change
    safe: SafeSnapshot
    # a compaction may be dropped without loss, because the rows that it compacts are published
    is_droppable: bool = False
    key_index: KeyIndexCheck = field(default=Factory(KeyIndexCheck))

    @property
    def key_types(self) -> list[DataType]:
        """The types of the primary key without partition columns; empty if it does not order the files."""
        return self.table.sorted_key_types


def plan_change(intent: Intent, base: Base) -> Change:
    """Return the change on this base: CommitConflict if it does not fit, LateRowsFound to renumber first."""
    table, request = intent.table, intent.request
    change = _adapt_change(intent, base)
    _check_statistics(base, change)
    _check_types(base, change)
    _check_reads(intent, base, change)
    intent.safe.check(base, change, request.commit_user, table.options.commit_strict_mode_last_safe_snapshot)
    intent.key_index.check(base, change, request.commit_user, intent.key_types)
    if change.index or change.index_bases:
        check_hash_index(base.index_files, change)
    _check_files(intent, base, change)
    bucket_options = base.read_bucket_options()
    check_bucket_option(request.bucket_option, bucket_options[-1])
    if has_other_bucket_count(change, bucket_options):
        check_bucket_counts(base.read_live_files_near(change), change, bucket_options[-1])
    _check_late_rows(intent, base, change)
    return change


def check_intent(intent: Intent) -> None:
    """Raise InvalidRequest if a new file of an overwrite is outside the partitions that the request replaces."""
    if intent.request.replaces and intent.change.kind is not CommitKind.COMPACT:
        _select_partitions(intent).check_holds(intent.change)


def _adapt_change(intent: Intent, base: Base) -> Change:
    """Return the change with what it removes from the base, and without what the base contains already."""
    change, table = intent.change, intent.table
    if change.kind is CommitKind.COMPACT:
        _check_compaction(intent, base)
        return change
    if any(e.kind is FileKind.ADD and e.file.first_row_id is not None for e in change.entries):
        change = drop_stale_indexes(change, base.index_files, table.schema, table.options.global_index_update_action)
    if intent.request.replaces:
        selected = _select_partitions(intent)
        postpone = table.options.bucket == POSTPONED
        return build_overwrite(change, base.read_live_files(selected), base.index_files, selected, postpone)
    if _drops_known_files(table, change):
        return evolve(change, entries=drop_known(change.entries, base.read_live_files_near(change)))
    return change


def _check_compaction(intent: Intent, base: Base) -> None:
    """Refuse a compaction that other writers contradict, if it may be dropped without loss.

    Their files may have rows that need a delete that it removed, or that a lookup would take for older ones. A
    dedicated compaction runs concurrently with many writers, and is not checked, so that they do not delay it.
    """
    change, needs_lookup = intent.change, intent.table.options.needs_lookup
    if intent.is_droppable and find_dropped_deletes(change):
        check_dropped_deletes(base.read_live_files(change.partitions.__contains__), change, intent.key_types)
    if intent.is_droppable and needs_lookup:
        check_level_order(base.read_live_files_near(change), change, intent.key_types)


def _select_partitions(intent: Intent) -> PartitionFilter:
    """Return the partitions that an overwrite replaces."""
    request = intent.request
    if request.partitions is not None:
        return PartitionFilter(intent.table.schema.partition_fields, only=request.partitions)
    if request.dynamic_overwrite:
        return partitions_written(intent.change)
    return partitions_of_spec(intent.table, request.overwrite or {})


def _check_statistics(base: Base, change: Change) -> None:
    """Refuse statistics of columns that changed since; the snapshot would have them under its new schema."""
    if change.statistics is not None and change.statistics.schema_id != base.schema_id:
        raise CommitConflict(
            f"The columns changed from schema {change.statistics.schema_id} to {base.schema_id} during ANALYZE",
            hint="analyze the table again",
        )


def _check_types(base: Base, change: Change) -> None:
    """Refuse new rows whose column changed its type since the files were written, if they may not fit the new type.

    The statistics of a file must show that all values fit. Compacted files have no new rows.
    """
    added = [e.file for e in change.entries if e.kind is FileKind.ADD and e.file.schema_id != base.schema_id]
    cast = base.find_unsafe_cast(added) if added and change.kind is not CommitKind.COMPACT else None
    if cast is not None:
        wanted = format_type(cast.change.wanted.with_nullable(True))
        raise CommitConflict(
            f"Column {cast.change.name!r} became {wanted}, but {cast.describe()}",
            files=[cast.file_name],
            hint="open the table again, and write the rows under its new schema",
        )


def _check_reads(intent: Intent, base: Base, change: Change) -> None:
    """Refuse rows that were computed from a snapshot after which others changed rows; see `check_read_state`."""
    latest = base.snapshot
    for state in (intent.request.read_state, change.read_state):
        if state is not None and change.kind is not CommitKind.COMPACT:
            ids = range(max(1, state.snapshot_id), 1 if latest is None else latest.id + 1)
            history = ((i, base.find_snapshot(i)) for i in ids)
            check_read_state(state, history, intent.request.commit_user, intent.table.table_name)


def _check_files(intent: Intent, base: Base, change: Change) -> None:
    """Refuse a change whose files, deletion vectors or updates by row id do not fit the live files."""
    table = intent.table
    required = _drops_known_files(table, change) or _sets_bucket_counts(table, change)
    if needs_check(change, intent.request.check_conflicts or required):
        live = base.read_live_files_near(change)
        check_conflicts(live, change, intent.key_types, table.options.pk_clustering_override)
        check_vectors(live, base.index_files, change, table.is_bucketed)
    if any(e.global_index is not None and e.kind is FileKind.ADD for e in change.index):
        live = base.read_live_files({e.partition for e in change.index}.__contains__)
        check_new_indexes(live, base.index_files, change, table.schema)
    if change.kind is CommitKind.COMPACT and table.options.data_evolution_enabled:
        check_joined_rows(base.read_live_files(change.partitions.__contains__), change)
    if change.row_base is not None:
        check_row_updates(base.read_live_files(change.partitions.__contains__), base.index_files, change)


def _drops_known_files(table: TableDefinition, change: Change) -> bool:
    return table.options.commit_discard_duplicate_files and change.kind is CommitKind.APPEND


def _sets_bucket_counts(table: TableDefinition, change: Change) -> bool:
    """Return whether the change may give a partition its number of buckets, as another writer may do concurrently."""
    return table.options.bucket == POSTPONED and any(e.bucket >= 0 for e in change.entries)


def _check_late_rows(intent: Intent, base: Base, change: Change) -> None:
    """Raise LateRowsFound if the rows of an append would lose against rows that were committed before it."""
    read = find_numbered_after(intent.request)
    if change.kind is not CommitKind.APPEND or base.snapshot is None or read is None or read.is_state_of(base.snapshot):
        return
    added = base.read_added_since(read.snapshot_id, change.partitions)
    found = find_late_rows(list_written_files(intent.request), added, intent.key_types)
    if found:
        raise LateRowsFound(found)


def find_numbered_after(request: CommitRequest) -> ReadState | None:
    """Return the oldest snapshot after whose rows those of a request are numbered; None if the order does not count."""
    return find_oldest(m.numbered_after for m in request.messages) if request.renumbers else None


def list_written_files(request: CommitRequest) -> dict[BucketKey, list[DataFileMeta]]:
    """Return the numbered files of a request by bucket."""
    return {
        (m.partition, m.bucket): files for m in request.messages if (files := list_numbered_files(m.data.new_files))
    }
