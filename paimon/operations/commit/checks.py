"""Check a change against the base of each attempt: what it removes there, and whether it conflicts with it.

Invariant: the change is checked again on each base, and nothing is written before all checks pass. A check reads only
what it needs: a commit that no other commit preceded reads almost nothing.

Source: `FileStoreCommitImpl.tryCommitOnce`, `StrictModeChecker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from paimon.domain.commit.conflicts.bucket_count import (
    check_bucket_counts,
    check_bucket_option,
    has_other_bucket_count,
)
from paimon.domain.commit.conflicts.dropped_deletes import check_dropped_deletes, find_dropped_deletes
from paimon.domain.commit.conflicts.files import check_conflicts, drop_known, needs_check
from paimon.domain.commit.conflicts.hash_index import check_hash_index
from paimon.domain.commit.conflicts.key_index import can_move_keys, check_key_index, lost_snapshot_error
from paimon.domain.commit.conflicts.late_rows import BucketKey, find_late_rows
from paimon.domain.commit.conflicts.level_order import check_level_order
from paimon.domain.commit.conflicts.read_snapshot import check_read_state
from paimon.domain.commit.conflicts.row_updates import check_row_updates
from paimon.domain.commit.conflicts.strict import can_refuse, check_strict, expired_snapshot_error
from paimon.domain.commit.conflicts.vectors import check_vectors
from paimon.domain.commit.entries import Change, find_oldest
from paimon.domain.commit.message import ReadState
from paimon.domain.commit.overwrite import PartitionFilter, build_overwrite, partitions_of_spec, partitions_written
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.commit.attempt import ChangeOn
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import check_last_commit
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.table_context import TableContext


class KeyIndexCheck:
    """Check one commit against each base; it continues after the last base that it checked. A state machine."""

    def __init__(self, context: TableContext, commit_user: str) -> None:
        self._context = context
        self._commit_user = commit_user
        self._key_types = [f.type for f in context.schema.key_fields]
        self._checked: ReadState | None = None

    def check(self, latest: Snapshot | None, change: Change) -> None:
        """Raise KeyIndexConflict if a commit after the snapshot of the key index may have added the same keys.

        The key ranges of files are compared. A commit whose snapshot no longer exists refuses the change, too.
        """
        if change.key_index is None:
            return
        known = self._checked or change.key_index
        if latest is None:
            if known.snapshot_id:
                raise lost_snapshot_error(known.snapshot_id)
            return
        self._check_lineage(known, latest)
        for snapshot_id in range(known.snapshot_id + 1, latest.id + 1):
            snapshot = self._find(snapshot_id, latest)
            if snapshot is None:
                raise lost_snapshot_error(snapshot_id)
            if can_move_keys(snapshot, self._commit_user):
                check_key_index(snapshot, self._read_delta(snapshot), change, self._key_types)
        self._checked = ReadState.of(latest)

    def _check_lineage(self, known: ReadState, latest: Snapshot) -> None:
        """Refuse a base that does not continue the snapshot of the index, because the table was rolled back."""
        if known.snapshot_id:
            snapshot = self._find(known.snapshot_id, latest)
            # An expired snapshot was in the history: rollback would have removed all later ones, too.
            is_expired = snapshot is None and known.snapshot_id < latest.id
            if not is_expired and (snapshot is None or not known.is_state_of(snapshot)):
                raise lost_snapshot_error(known.snapshot_id)

    def _find(self, snapshot_id: int, latest: Snapshot) -> Snapshot | None:
        if snapshot_id == latest.id:
            return latest
        return find_snapshot(self._context, snapshot_id)

    def _read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        metas = read_manifest_list(self._context, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(self._context, meta.file_name)]


class SafeSnapshot:
    """The last snapshot that a committer has checked; it advances with each check.

    It starts at the id `seen` of a snapshot on which the whole change was planned, if given.
    """

    def __init__(self, seen: int | None = None) -> None:
        self._last_checked_id = seen

    def check(self, context: TableContext, latest: Snapshot | None, change: Change, commit_user: str) -> None:
        """Raise CommitConflict if a snapshot after the safe one contradicts the change, or expired unchecked.

        Snapshots of `commit_user` are safe.
        """
        option = context.options.commit_strict_mode_last_safe_snapshot
        if option is None or latest is None:
            return
        safe = max(option, -1 if self._last_checked_id is None else self._last_checked_id)
        # With -1 the first commit does not check the earlier snapshots.
        for snapshot_id in range(safe + 1, latest.id + 1) if safe >= 0 else ():
            snapshot = latest if snapshot_id == latest.id else _load_unexpired(context, snapshot_id)
            if can_refuse(snapshot, change, commit_user):
                check_strict(snapshot, _read_delta(context, snapshot), _read_index_changes(context, snapshot), change)
        self._last_checked_id = latest.id


def _load_unexpired(context: TableContext, snapshot_id: int) -> Snapshot:
    """Read a snapshot that must be checked; raise CommitConflict if it has expired."""
    snapshot = find_snapshot(context, snapshot_id)
    if snapshot is None:
        raise expired_snapshot_error(snapshot_id)
    return snapshot


def _read_delta(context: TableContext, snapshot: Snapshot) -> list[ManifestEntry]:
    metas = read_manifest_list(context, snapshot.delta_manifest_list)
    return [entry for meta in metas for entry in read_manifest(context, meta.file_name)]


def _read_index_changes(context: TableContext, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
    """Return the index files that a snapshot added or removed; all its index files if the previous snapshot expired."""
    before = find_snapshot(context, snapshot.id - 1) if snapshot.id > 1 else None
    name = before.index_manifest if before else None
    if snapshot.index_manifest == name:
        return ()
    now, then = (read_index_manifest(context, n) if n else () for n in (snapshot.index_manifest, name))
    common = {e.file_name for e in now} & {e.file_name for e in then}
    return [e for e in (*now, *then) if e.file_name not in common]


class LateRowsFound(Exception):
    """Raised before a commit whose rows would lose; `first_numbers` are free sequence numbers of their buckets."""

    def __init__(self, first_numbers: Mapping[BucketKey, int]) -> None:
        super().__init__("written rows have sequence numbers of rows that others committed first")
        self.first_numbers = first_numbers


def check_late_rows(context: TableContext, base: CommitBase, request: CommitRequest, change: Change) -> None:
    """Raise LateRowsFound if the rows of an append would lose against rows that were committed before it."""
    if not request.renumbers or change.kind is not CommitKind.APPEND or base.snapshot is None:
        return
    read = find_oldest(m.numbered_after for m in request.messages)
    if read is None or read.is_state_of(base.snapshot):
        return
    written = {
        (m.partition, m.bucket): files for m in request.messages if (files := list_numbered_files(m.data.new_files))
    }
    added = _list_added_files(context, base, change, read.snapshot_id)
    found = find_late_rows(written, added, [f.type for f in context.schema.key_fields])
    if found:
        raise LateRowsFound(found)


def list_numbered_files(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files of level 0, which a writer numbers."""
    return [file for file in files if file.level == 0]


def _list_added_files(context: TableContext, base: CommitBase, change: Change, read_id: int) -> Iterable[ManifestEntry]:
    """Return at least the files that were added since a snapshot, and are live in the base."""
    assert base.snapshot is not None
    numbers = range(read_id + 1, base.snapshot.id + 1)
    try:
        snapshots = [_find(context, base.snapshot, number) for number in numbers]
        metas = [m for s in snapshots if s is not None for m in read_manifest_list(context, s.delta_manifest_list)]
        added = [e for m in metas for e in read_manifest(context, m.file_name) if e.kind is FileKind.ADD]
    except CorruptTable:
        if all(_find(context, base.snapshot, number) for number in numbers):
            raise
        snapshots = [None]  # one of them expired during the read
    if None in snapshots or not snapshots:  # a rollback, too, leaves the live files
        return base.read_live_files(change.partitions.__contains__)
    return added


def _find(context: TableContext, latest: Snapshot, number: int) -> Snapshot | None:
    return latest if number == latest.id else find_snapshot(context, number)


def check_read_snapshot(context: TableContext, latest: Snapshot | None, state: ReadState, commit_user: str) -> None:
    """Raise ReadConflict if another user changed rows since, or the snapshot is gone; see `check_read_state`."""
    check_read_state(
        state, _iterate_history(context, latest, max(1, state.snapshot_id)), commit_user, context.table.table_name
    )


def _iterate_history(
    context: TableContext, latest: Snapshot | None, first_id: int
) -> Iterator[tuple[int, Snapshot | None]]:
    """Yield the ids up to the newest snapshot with their snapshots; the newest one is not read again."""
    if latest is not None:
        yield from ((i, find_snapshot(context, i)) for i in range(first_id, latest.id))
        if latest.id >= first_id:
            yield latest.id, latest


class CheckedChange:
    """The change with all checks of its kind; `Attempts.publish` calls it with each base."""

    def __init__(self, context: TableContext, request: CommitRequest, change_on: ChangeOn, safe: SafeSnapshot) -> None:
        self._context = context
        self._request = request
        self._change_on = change_on
        self._safe = safe
        self._key_types = [f.type for f in context.schema.key_fields]
        self._key_index = KeyIndexCheck(context, request.commit_user)
        self._is_last_commit_checked = False
        self.index_before: str | None = None

    def __call__(self, base: CommitBase) -> Change:
        """Return the change to publish on this base; raise CommitConflict if it does not fit.

        Raise CommitOverwritten if the last commit of this process is no longer in the table.
        """
        context, request = self._context, self._request
        if not self._is_last_commit_checked:
            check_last_commit(context, base.snapshot)
            self._is_last_commit_checked = True
        change = self._change_on(base)
        base.check_types(change)
        for state in (request.read_state, change.read_state):
            if state is not None and change.kind is not CommitKind.COMPACT:
                check_read_snapshot(context, base.snapshot, state, request.commit_user)
        self._safe.check(context, base.snapshot, change, request.commit_user)
        self._key_index.check(base.snapshot, change)
        if change.index or change.index_bases:
            check_hash_index(base.index_files, change)
        required = _drops_known_files(context.table, change) or _sets_bucket_counts(context.table, change)
        if needs_check(change, request.check_conflicts or required):
            live = base.read_live_files_near(change)
            check_conflicts(live, change, self._key_types)
            check_vectors(live, base.index_files, change, context.table.is_bucketed)
        if change.row_base is not None:
            check_row_updates(base.read_live_files(change.partitions.__contains__), base.index_files, change)
        bucket_options = base.read_bucket_options()
        check_bucket_option(request.bucket_option, bucket_options[-1])
        if has_other_bucket_count(change, bucket_options):
            check_bucket_counts(base.read_live_files_near(change), change, bucket_options[-1])
        check_late_rows(context, base, request, change)
        self.index_before = base.snapshot.index_manifest if base.snapshot else None
        return change


def plan_append(table: TableDefinition, change: Change) -> ChangeOn:
    """Return the change of an append for each base."""
    if not _drops_known_files(table, change):
        return lambda _: change

    def change_on_base(base: CommitBase) -> Change:
        """Return the change without the files that the base contains already."""
        return evolve(change, entries=drop_known(change.entries, base.read_live_files_near(change)))

    return change_on_base


def _drops_known_files(table: TableDefinition, change: Change) -> bool:
    return table.options.commit_discard_duplicate_files and change.kind is CommitKind.APPEND


def _sets_bucket_counts(table: TableDefinition, change: Change) -> bool:
    """Return whether the change may give a partition its number of buckets, as another writer may do concurrently."""
    return table.options.bucket == POSTPONED and any(e.bucket >= 0 for e in change.entries)


def plan_compaction(table: TableDefinition, change: Change, inline: bool) -> ChangeOn:
    """Return the change of a compaction for each base.

    A compaction is `inline` if a writer made it and the written files are published, so it may be dropped without loss.
    It is refused if files of another writer contain rows that need a delete that it removed. It is also refused if
    another writer compacted files that a lookup would take for older ones. A dedicated compaction runs concurrently
    with many writers and is not checked, so that they do not delay it.
    """
    drops_deletes = bool(find_dropped_deletes(change))
    if not inline or not (drops_deletes or table.options.needs_lookup):
        return lambda _: change
    key_types = [f.type for f in table.schema.key_fields]

    def change_on_base(base: CommitBase) -> Change:
        """Return the change if files of other writers do not contradict it."""
        if drops_deletes:
            check_dropped_deletes(base.read_live_files(change.partitions.__contains__), change, key_types)
        if table.options.needs_lookup:
            check_level_order(base.read_live_files_near(change), change, key_types)
        return change

    return change_on_base


def plan_overwrite(table: TableDefinition, request: CommitRequest, change: Change) -> ChangeOn:
    """Return the change of an overwrite for each base: its new files, and the removal of the live files they replace.

    Raise InvalidRequest if a new file is outside the partitions that the request replaces.
    """
    partition_filter = _select_partitions(table, request, change)
    partition_filter.check_holds(change)
    postpone = table.options.bucket == POSTPONED
    return lambda base: build_overwrite(
        change, base.read_live_files(partition_filter), base.index_files, partition_filter, postpone
    )


def _select_partitions(table: TableDefinition, request: CommitRequest, change: Change) -> PartitionFilter:
    """Return the partitions that an overwrite replaces."""
    if request.partitions is not None:
        return PartitionFilter(table.schema.partition_fields, only=request.partitions)
    if request.dynamic_overwrite:
        return partitions_written(change)
    return partitions_of_spec(table, request.overwrite or {})
