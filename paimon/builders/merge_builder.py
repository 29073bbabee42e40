"""Merge a source into a table: `Table.merge` returns a builder, to which clauses are added before it runs.

Invariant: a builder is immutable; each method returns another one. Nothing is read or written before `execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

from attrs import evolve, field, frozen

from paimon.display.notebook import BuilderDisplay, given_arguments
from paimon.domain.assignment.merge_clauses import MergeAction
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import CommitConflict, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.report import CardDisplay
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.row_level.merge import (
    MergeChange,
    MergeGroup,
    MergeRequest,
    MergeSource,
    WhenClause,
    bind_merge,
    merge_source,
)
from paimon.operations.row_level.merge_source import read_source
from paimon.operations.row_level.row_id_updates import RowIdUpdates
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.results import OwnReads, find_own_reads, stamp_messages

_Change = TypeVar("_Change")
OpenSource = Callable[[TableContext, Any], MergeSource]
"""Makes the source of a merge from what the caller gave."""
_ATTEMPTS = 20
"""How often a merge is tried while other users change rows before it is committed."""


@frozen
class MergeResult(CardDisplay):
    """What a merge did.

    Attributes
    ----------
    snapshot_ids : tuple of int
        The snapshots of the commit: none if no row changed, two where files were compacted after it.
    inserted, updated, deleted : int
        The numbers of rows.
    files : int
        Data files that were added.
    lost_compaction : PaimonError, optional
        Why the compaction after the merge was not committed; see `WriteResult`.
    """

    snapshot_ids: tuple[int, ...]
    inserted: int
    updated: int
    deleted: int
    files: int
    lost_compaction: PaimonError | None = None


@frozen(eq=False, repr=False)
class MergeBuilder(BuilderDisplay):
    """A merge that has not run yet; made by `Table.merge`.

    Conditions and values are SQL text over the columns of both sides, or Python values; see `Table.merge`. Of the
    clauses of one kind, the first whose condition is true is applied to a row. `open_source` decides where the rows are
    merged; by default in this process.
    """

    context: TableContext
    source: Any
    request: MergeRequest
    open_source: OpenSource | None = None

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        clauses = [f"{clause.group.value} THEN {clause.action.value}" for clause in self.request.clauses]
        return self.context.table.table_name, given_arguments(clauses=clauses or None)

    def when_matched_update(self, set: Mapping[str, Any], condition: str | Predicate | None = None) -> Self:
        """Set columns of the rows that match.

        Parameters
        ----------
        set : mapping of str to object
            By column of the table: SQL text (``"source.amount"``), or a Python value that is not text.
        condition : str or Predicate, optional
            Only pairs of rows for which this is true.

        Returns
        -------
        MergeBuilder
            The merge with this clause.
        """
        return self._with(MergeGroup.MATCHED, MergeAction.UPDATE, condition, set)

    def when_matched_update_all(self, condition: str | Predicate | None = None) -> Self:
        """Set all columns of the rows that match to the columns of the source with the same names."""
        return self._with(MergeGroup.MATCHED, MergeAction.UPDATE, condition)

    def when_matched_delete(self, condition: str | Predicate | None = None) -> Self:
        """Delete the rows that match."""
        return self._with(MergeGroup.MATCHED, MergeAction.DELETE, condition)

    def when_not_matched_insert(self, values: Mapping[str, Any], condition: str | Predicate | None = None) -> Self:
        """Insert a row for each row of the source without a match.

        Parameters
        ----------
        values : mapping of str to object
            By column of the table: SQL text over the columns of the source, or a Python value that is not text.
            Columns that are left out get their default, or null.
        condition : str or Predicate, optional
            Only rows of the source for which this is true.

        Returns
        -------
        MergeBuilder
            The merge with this clause.
        """
        return self._with(MergeGroup.NOT_MATCHED, MergeAction.INSERT, condition, values)

    def when_not_matched_insert_all(self, condition: str | Predicate | None = None) -> Self:
        """Insert the rows of the source without a match, by the names of their columns."""
        return self._with(MergeGroup.NOT_MATCHED, MergeAction.INSERT, condition)

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Any], condition: str | Predicate | None = None
    ) -> Self:
        """Set columns of the rows of the table that no row of the source matches.

        Parameters
        ----------
        set : mapping of str to object
            By column of the table: SQL text over the columns of the table, or a Python value that is not text.
        condition : str or Predicate, optional
            Only rows of the table for which this is true.

        Returns
        -------
        MergeBuilder
            The merge with this clause.
        """
        return self._with(MergeGroup.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, condition, set)

    def when_not_matched_by_source_delete(self, condition: str | Predicate | None = None) -> Self:
        """Delete the rows of the table that no row of the source matches."""
        return self._with(MergeGroup.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE, condition)

    def _with(
        self,
        group: MergeGroup,
        action: MergeAction,
        condition: str | Predicate | None,
        values: Mapping[str, Any] | None = None,
    ) -> Self:
        clause = WhenClause(group, action, condition, values)
        return evolve(self, request=evolve(self.request, clauses=(*self.request.clauses, clause)))

    def execute(self, *, properties: Mapping[str, str] | None = None) -> MergeResult:
        """Run the merge in one commit, and again while other users change rows of the table.

        Parameters
        ----------
        properties : mapping of str to str, optional
            Text to store in the snapshot.

        Returns
        -------
        MergeResult
            The snapshots, and how many rows were inserted, updated and deleted.

        Raises
        ------
        InvalidRequest, Unsupported, MissingExtra
            The table or a clause is not possible, or two rows of the source match one row of the table. Nothing was
            changed.
        CommitConflict
            Other users changed rows each time. Nothing was changed.
        """
        # A function, and a scan of this table, are read again in each attempt, from the newest snapshot. A reader of
        # this table has only the rows of its snapshot, so there is one attempt. Other data is read once.
        open_source: OpenSource = self.open_source or partial(read_source, request=self.request)
        own: OwnReads | None = None
        again: Callable[[], Any] | None = None
        if callable(self.source):
            again = self.source
        elif own := find_own_reads(self.context.table, self.source):
            again = own.again
        once = None if again else open_source(self.context, self.source)
        user = commit_user_of(self.context, None)

        def merge() -> MergeChange:
            snapshot = latest_snapshot(self.context)  # before the source, which may be computed from this table
            rows = open_source(self.context, again()) if again else once
            assert rows is not None
            try:
                request = self.request.compute_late_inputs()
                state = own.state if own and once is not None else ReadState.of(snapshot)
                return merge_source(self.context, snapshot, rows, request, user, properties, state)
            finally:
                if rows is not once:
                    rows.drop()

        try:
            done = merge() if own and not again else retry_conflicts(merge)
        finally:
            if once is not None:
                once.drop()
        run_after_commit(self.context, done.commit.snapshot_ids)
        result = done.commit
        counts = (done.inserted, done.updated, done.deleted)
        return MergeResult(result.snapshot_ids, *counts, result.added_files, result.lost_compaction)


@frozen(eq=False, repr=False)
class PreparedMerge(MergeBuilder):
    """A merge into a table with `data-evolution.enabled` whose messages are committed later; made by `TableUpdate`."""

    updates: RowIdUpdates | None = field(default=None, repr=False, kw_only=True)
    commit_user: str = field(default="", repr=False, kw_only=True)

    def prepare_commit(self) -> list[CommitMessage]:
        """Write the changes, and return the messages to commit; in place of `execute`.

        If this fails, no file is left behind. The commit conflicts if another commit removed rows of the same files, or
        set columns that the merge reads or sets. Raises `InvalidRequest` if two source rows match one row of the table.
        """
        assert self.updates is not None
        source = self.source() if callable(self.source) else self.source
        own = find_own_reads(self.context.table, source)
        rows = read_source(self.context, source, self.request)
        try:
            merge = bind_merge(self.context, rows.fields, self.request)
            written = rows.write(self.context, self.updates.snapshot, merge, self.commit_user)
            return stamp_messages(self.context.table, written.messages, own.state if own else None)
        finally:
            rows.drop()


def retry_conflicts(change: Callable[[], _Change]) -> _Change:
    """Call a function that changes rows, and again while other writers change them before its commit.

    `change` reads the newest snapshot in each call. The `CommitConflict` of the last attempt is raised.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return change()
        except CommitConflict:
            continue
    return change()
