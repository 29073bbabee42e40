"""Commit the messages of writers, with callbacks and with retries of lost compactions.

Invariant: written files become one snapshot, compacted files a second one with the same identifier. A commit with its
own identifier is published once. A published write is never reported as a failure.

Source: `FileStoreCommitImpl`, `TableCommitImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import evolve

from paimon.domain.commit.entries import Change, append_change, check_paths, compact_change
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.request import CommitRequest, CommitResult, check_request
from paimon.domain.errors import CommitOverwritten, CommitUncertain, PaimonError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.operations.commit.attempt import Attempts, ChangeOn, Published, Signature
from paimon.operations.commit.callbacks import call_callbacks, check_callbacks
from paimon.operations.commit.checks import CheckedChange, SafeSnapshot, plan_append, plan_compaction, plan_overwrite
from paimon.operations.commit.history import find_snapshots_of_commit, is_already_committed, record_last_commit
from paimon.operations.commit.prepared_files import check_prepared_files
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import CommitEvent

__all__ = [
    "CommitRequest",
    "CommitResult",
    "CompactionPlans",
    "SafeSnapshot",
    "call_callbacks_again",
    "commit",
]


class CompactionPlans(Protocol):
    """Plan the compactions that must follow a published write; each call reads the newest snapshot."""

    @property
    def is_last_try(self) -> bool:
        """Whether no further plan follows, so that conflicts with other writers must not delay the compaction."""

    @property
    def planned_on(self) -> int | None:
        """The id of the newest snapshot when the last plan was made; None before the first plan."""

    def plan_next(self, messages: Sequence[CommitMessage], lost: PaimonError | None) -> Sequence[CommitMessage]:
        """Return the messages whose compactions are published next; empty if nothing is left to do.

        `messages` are those of the last try, `lost` is its error; before the first try, they are those of the request
        and None. Raise CommitNotVisible if the compactions failed too often.
        """


PlanCompactions = Callable[[Snapshot], CompactionPlans]
"""Makes the plans for a write that was published as this snapshot."""


def commit(
    context: TableContext,
    request: CommitRequest,
    safe: SafeSnapshot | None = None,
    plans: PlanCompactions | None = None,
) -> CommitResult:
    """Publish the messages: the written files, then the compacted files.

    `plans` plans a lost compaction again; without it, `CommitResult.lost_compaction` reports it. After CommitNotVisible
    the written files are published; after CommitOverwritten with `is_this_commit` they were, but were replaced. After
    CommitUncertain they may be. After TableDropped and TableReplaced the commit is not acknowledged. After all other
    errors nothing of the messages is published, and their files remain (see `abort`).
    """
    check_request(request)
    check_paths(request.messages, (context.table.location, *context.table.allowed_roots))
    check_callbacks(context)
    last_seen_id = None
    if request.commit_identifier != BATCH_COMMIT_IDENTIFIER:
        # A process that was taken for dead may publish the same commit after this check, and before the first attempt.
        latest = latest_snapshot(context)
        last_seen_id = 0 if latest is None else latest.id
        if is_already_committed(context, request.commit_user, request.commit_identifier, request.properties):
            return CommitResult(already_committed=True, failed_callbacks=call_callbacks_again(context, request))
    check_prepared_files(context, request.messages)
    publisher = _RequestPublisher(context, request, safe or SafeSnapshot(), last_seen_id)
    written = publisher.publish_written_files()
    compacted, lost = publisher.publish_compacted_files(written, plans(written.snapshot) if plans and written else None)
    if written is None and compacted is None:
        check_same_table(context)
    result = _to_result(written, compacted)
    return evolve(result, lost_compaction=lost, failed_callbacks=tuple(publisher.failed_callbacks))


def _to_result(written: Published | None, compacted: Published | None) -> CommitResult:
    published = [p for p in (written, compacted) if p is not None]
    return CommitResult(
        snapshot_ids=tuple(p.snapshot.id for p in published),
        added_rows=written.change.added_rows if written else 0,
        added_files=written.change.added_files if written else 0,
        retries=sum(p.retries for p in published),
    )


def call_callbacks_again(context: TableContext, request: CommitRequest) -> tuple[str, ...]:
    """Call the callbacks for an earlier commit, because the process that made it may have died before the call.

    Return one sentence for each callback that raised.
    """
    if not context.engine.callbacks:
        return ()
    event = CommitEvent(context.table, request.commit_user, request.commit_identifier, request.messages, repeated=True)
    committed = find_snapshots_of_commit(context, request.commit_user, request.commit_identifier)
    events = [evolve(event, snapshot=s) for s in reversed(committed)] or [event]
    return tuple(failure for event in events for failure in call_callbacks(context.engine, event))


class _RequestPublisher:
    """The two snapshots of one request; each is published, recorded as last commit, and followed by the callbacks."""

    def __init__(
        self, context: TableContext, request: CommitRequest, safe: SafeSnapshot, last_seen_id: int | None
    ) -> None:
        self._context = context
        self._last_seen_id = last_seen_id
        self._request = request
        self._safe = safe
        self.failed_callbacks: list[str] = []

    def publish_written_files(self) -> Published | None:
        """Publish the written files; None if there is nothing to publish."""
        table, request = self._context.table, self._request
        change = append_change(request.messages)
        overwrites = request.replaces
        if change.is_empty and (request.dynamic_overwrite or (not overwrites and _can_skip_empty(table, request))):
            return None
        change_on = plan_overwrite(table, request, change) if overwrites else plan_append(table, change)
        return self._publish(change_on, _choose_operation(request, change), self._safe)

    def publish_compacted_files(
        self, after: Published | None, plans: CompactionPlans | None
    ) -> tuple[Published | None, PaimonError | None]:
        """Publish the compacted files; return their snapshot, or the error that prevented it.

        `after` is the published snapshot with the written files. Without it the error is raised. CommitOverwritten is
        always raised, because then the written files were replaced.
        """
        lost: PaimonError | None = None
        messages: Sequence[CommitMessage] = self._request.messages
        messages = messages if plans is None else plans.plan_next(messages, None)
        while not (change := compact_change(messages)).is_empty:
            is_droppable = after is not None and not (plans is not None and plans.is_last_try)
            # A new plan was made on a snapshot that contains the changes of other writers until then.
            safe = self._safe if plans is None or plans.planned_on is None else SafeSnapshot(plans.planned_on)
            try:
                on_base = plan_compaction(self._context.table, change, is_droppable)
                return self._publish(on_base, None, safe), None
            except CommitOverwritten as error:  # the written files were replaced
                raise (error.as_this_commit() if error.request is self._request else error) from None
            except PaimonError as reason:
                if after is None:
                    raise
                lost = reason  # the written files are published and complete without it
            if plans is None:
                break
            messages = plans.plan_next(messages, lost)
        return None, lost

    def _publish(self, change_on: ChangeOn, operation: str | None, safe: SafeSnapshot) -> Published:
        request = self._request
        checked_change = CheckedChange(self._context, request, change_on, safe)
        signature = Signature(
            request.commit_user, request.commit_identifier, request.watermark, request.properties, operation
        )
        try:
            published = Attempts(self._context, signature, self._last_seen_id).publish(checked_change)
        except CommitUncertain as error:
            error.request = request
            raise
        record_last_commit(self._context, request, published.snapshot, checked_change.index_before)
        event = CommitEvent(
            self._context.table,
            request.commit_user,
            request.commit_identifier,
            request.messages,
            published.snapshot,
            published.change,
        )
        self.failed_callbacks += call_callbacks(self._context.engine, event)
        return published


def _can_skip_empty(table: TableDefinition, request: CommitRequest) -> bool:
    return request.ignore_empty and table.options.ignore_empty_commit is not False


def _choose_operation(request: CommitRequest, change: Change) -> str:
    if request.operation is not None:
        return request.operation
    if request.replaces:
        everything = request.partitions is None and not request.overwrite
        return "TRUNCATE" if change.is_empty and everything else "OVERWRITE"
    return "WRITE"
