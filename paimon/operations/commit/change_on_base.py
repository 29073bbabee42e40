"""Adapt a change to the base of each attempt: what it removes there, and whether it conflicts with it.

Invariant: the change is checked again on each base, and nothing is written before all checks pass.

Source: `FileStoreCommitImpl.tryCommitOnce`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.commit.conflicts.bucket_count import (
    check_bucket_counts,
    check_bucket_option,
    has_other_bucket_count,
)
from paimon.domain.commit.conflicts.dropped_deletes import check_dropped_deletes, find_dropped_deletes
from paimon.domain.commit.conflicts.files import check_conflicts, drop_known, needs_check
from paimon.domain.commit.conflicts.hash_index import check_hash_index
from paimon.domain.commit.conflicts.level_order import check_level_order
from paimon.domain.commit.conflicts.row_updates import check_row_updates
from paimon.domain.commit.conflicts.vectors import check_vectors
from paimon.domain.commit.entries import Change
from paimon.domain.commit.overwrite import PartitionFilter, build_overwrite, partitions_of_spec, partitions_written
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.attempt import ChangeOn
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.key_index_check import KeyIndexCheck
from paimon.operations.commit.last_commits import check_last_commit
from paimon.operations.commit.late_rows import check_late_rows
from paimon.operations.commit.read_snapshot import check_read_snapshot
from paimon.operations.commit.request import CommitRequest
from paimon.operations.commit.strict_mode import SafeSnapshot
from paimon.operations.table_context import TableContext


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
