"""Committing what writers prepared.

Law: what was written becomes one snapshot, what was compacted a second one of the same identifier; a commit with an
identifier of its own happens once; a published write is never reported as a failure. Source: `FileStoreCommitImpl`,
`TableCommitImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import evolve

from paimon.domain.commit.entries import Change, check_places, compacted, written
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitOverwritten, CommitUncertain, PaimonError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.operations.commit.after.callbacks import check_callbacks, tell
from paimon.operations.commit.after.remembered import remember
from paimon.operations.commit.attempt import Attempts, ChangeOn, Published, Signature
from paimon.operations.commit.checks.on_base import Fitting, appended, compacted_beside, overwritten
from paimon.operations.commit.checks.strict import SafeSnapshot
from paimon.operations.commit.history import committed, happened, made_by
from paimon.operations.commit.request import CommitRequest, CommitResult, check_request
from paimon.ports.callbacks import CommitEvent
from paimon.ports.engine import Engine

__all__ = ["CommitRequest", "CommitResult", "CompactionPlans", "SafeSnapshot", "commit", "committed", "tell_again"]


class CompactionPlans(Protocol):
    """Plans the compactions that must follow a published write: each call sees the newest snapshot."""

    @property
    def is_last_try(self) -> bool:
        """Whether no other plan follows, so that the compaction must not be held up by other writers."""

    @property
    def planned_on(self) -> int | None:
        """The id of the newest snapshot when the last plan was made; None before the first."""

    def plan_next(self, messages: Sequence[CommitMessage], lost: PaimonError | None) -> Sequence[CommitMessage]:
        """Return the messages whose compactions are to be published next; empty where nothing is left to do.

        Parameters
        ----------
        messages : sequence of CommitMessage
            Those of the last try, or those of the request.
        lost : PaimonError, optional
            What the last try failed with; None before the first try.

        Raises
        ------
        CommitNotVisible
            The compactions failed too often.
        """


PlanCompactions = Callable[[Snapshot], CompactionPlans]
"""Makes the plans for a write that was published as this snapshot."""


def commit(
    engine: Engine,
    table: TableDefinition,
    request: CommitRequest,
    safe: SafeSnapshot | None = None,
    plans: PlanCompactions | None = None,
) -> CommitResult:
    """Publish the messages.

    Parameters
    ----------
    safe : SafeSnapshot, optional
        What a committer that lives on has looked at already in strict mode.
    plans : callable, optional
        Makes what plans a lost compaction again; without it, a lost compaction is reported and no more.

    Raises
    ------
    CommitConflict
        Nothing of the messages was published; their data files are still there (see `abort`).
    CommitOverwritten
        An earlier commit of this process is not in the table any more; nothing of the messages was published. Where
        `is_this_commit` is true: what was written was published, and replaced before what was compacted.
    CommitNotVisible
        What was written is published; what `plans` planned failed too often.
    CommitUncertain
        Nobody can tell whether what was written was published; nothing was deleted.
    InvalidRequest
        The messages do not fit the table or the partitions to be replaced, or the identifier is below one that the user
        committed and no snapshot tells of it.
    CorruptTable
        The snapshot to build on cannot be read; nothing was published.
    StorageError
        The storage refused; nothing was published.
    Unsupported
        The table wants callbacks that the engine does not have; nothing was published.
    """
    check_request(request)
    check_places(request.messages, (table.location, *table.allowed_roots))
    check_callbacks(engine, table)
    if request.identifier != BATCH_COMMIT_IDENTIFIER and happened(
        engine, table, request.commit_user, request.identifier
    ):
        return CommitResult(already_committed=True, failed_callbacks=tell_again(engine, table, request))
    parts = _Parts(engine, table, request, safe or SafeSnapshot())
    first = parts.write()
    second, lost = parts.compact(first, plans(first.snapshot) if plans and first else None)
    done = [p for p in (first, second) if p is not None]
    return CommitResult(
        snapshot_ids=tuple(p.snapshot.id for p in done),
        added_rows=first.change.added_rows if first else 0,
        added_files=first.change.added_files if first else 0,
        retries=sum(p.retries for p in done),
        lost_compaction=lost,
        failed_callbacks=tuple(parts.failed_callbacks),
    )


def tell_again(engine: Engine, table: TableDefinition, request: CommitRequest) -> tuple[str, ...]:
    """Call the callbacks for a commit that took place before: whoever made it may have died before the call."""
    if not engine.callbacks:
        return ()
    event = CommitEvent(table, request.commit_user, request.identifier, request.messages, repeated=True)
    made = made_by(engine, table, request.commit_user, request.identifier)
    events = [evolve(event, snapshot=s) for s in reversed(made)] or [event]
    return tuple(failure for event in events for failure in tell(engine, event))


class _Parts:
    """The snapshots of one request: each is published, remembered and told."""

    def __init__(self, engine: Engine, table: TableDefinition, request: CommitRequest, safe: SafeSnapshot) -> None:
        self._engine = engine
        self._table = table
        self._request = request
        self._safe = safe
        self.failed_callbacks: list[str] = []

    def write(self) -> Published | None:
        """Publish what was written; None where there is nothing to say."""
        table, request = self._table, self._request
        change = written(request.messages)
        overwrites = request.replaces
        if change.is_empty and (request.dynamic_overwrite or (not overwrites and _ignores_empty(table, request))):
            return None
        change_on = overwritten(table, request, change) if overwrites else appended(table, change)
        return self._publish(change_on, _operation(request, change), self._safe)

    def compact(
        self, after: Published | None, plans: CompactionPlans | None
    ) -> tuple[Published | None, PaimonError | None]:
        """Publish what was compacted, or say what kept it from being so where the writing before it stands."""
        lost: PaimonError | None = None
        messages: Sequence[CommitMessage] = self._request.messages
        messages = messages if plans is None else plans.plan_next(messages, None)
        while not (change := compacted(messages)).is_empty:
            strict = after is not None and not (plans is not None and plans.is_last_try)
            # What was planned again knows what others did until then.
            safe = self._safe if plans is None or plans.planned_on is None else SafeSnapshot(plans.planned_on)
            try:
                return self._publish(compacted_beside(change, inline=strict), None, safe), None
            except CommitOverwritten as error:  # what was written before is gone again
                raise (error.as_this_commit() if error.request is self._request else error) from None
            except PaimonError as reason:
                if after is None:
                    raise
                lost = reason  # what was written is published, and whole without it
            if plans is None:
                break
            messages = plans.plan_next(messages, lost)
        return None, lost

    def _publish(self, change_on: ChangeOn, operation: str | None, safe: SafeSnapshot) -> Published:
        request = self._request
        fitting = Fitting(self._engine, self._table, request, change_on, safe)
        signature = Signature(request.commit_user, request.identifier, request.watermark, request.properties, operation)
        try:
            published = Attempts(self._engine, self._table, signature).publish(fitting)
        except CommitUncertain as doubt:
            doubt.request = request
            raise
        remember(self._engine, self._table, request, published.snapshot, fitting.index_before)
        event = CommitEvent(
            self._table, request.commit_user, request.identifier, request.messages, published.snapshot, published.change
        )
        self.failed_callbacks += tell(self._engine, event)
        return published


def _ignores_empty(table: TableDefinition, request: CommitRequest) -> bool:
    return request.ignore_empty and table.options.ignore_empty_commit is not False


def _operation(request: CommitRequest, change: Change) -> str:
    if request.operation is not None:
        return request.operation
    if request.replaces:
        everything = request.partitions is None and not request.overwrite
        return "TRUNCATE" if change.is_empty and everything else "OVERWRITE"
    return "WRITE"
