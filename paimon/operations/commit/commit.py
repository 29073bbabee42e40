"""Commit the messages of writers: check them, publish them as snapshots, and call the callbacks.

Invariant: written files become one snapshot, compacted files a second one with the same identifier. A commit with its
own identifier is published once. A published write is never reported as a failure.

Source: `FileStoreCommitImpl`, `TableCommitImpl`, `CommitCallback`.
"""

# A commit makes prepared files visible:
#
#     commit                 refuse -> find an earlier commit -> check files -> written files -> compacted files
#       publish_in_group     with plain additions of other threads, or alone (`group.py`)
#         publish_change     attempt -> lost: wait, attempt on the newer base -> published (`attempts.py`)
#       _publish_and_report  record, callbacks
#
# The written files are complete without the compaction. So when they are published, an error of the compacted files
# is reported in the result and not raised, unless reads would not show the rows; `plans` decides that.

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from attrs import define, evolve, field

from paimon.domain.commit.entries import Change, StatisticsFile, append_change, check_paths, compact_change
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.plan_change import Intent, SafeSnapshot, check_intent
from paimon.domain.commit.request import CommitRequest, CommitResult, check_request
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    CommitUncertain,
    PaimonError,
    Unsupported,
)
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.attempts import Published, publish_change
from paimon.operations.commit.group import publish_in_group
from paimon.operations.commit.history import (
    find_snapshots_of_commit,
    is_already_committed,
    read_newest_id,
    record_own_commit,
)
from paimon.operations.commit.prepared_files import check_prepared_files
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import CommitEvent
from paimon.ports.cancellation import shielded
from paimon.ports.engine import Engine
from paimon.ports.observer import report_event

_CALLBACKS = "commit.callbacks"


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


@define(eq=False)
class _Commit:
    """One run of `commit`: what both of its snapshots share, and the callbacks that failed."""

    context: TableContext
    request: CommitRequest
    safe: SafeSnapshot
    # the newest snapshot (0 without one) when the commit was not in the table yet; None for batch commits
    last_seen_id: int | None
    # under which its snapshots are recorded: the request, or that of its group
    recorded: CommitRequest
    failed_callbacks: list[str] = field(factory=list)


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
    # 1. Refuse what no commit can publish.
    check_request(request)
    check_paths(request.messages, context.table.roots)
    check_callbacks(context)
    # 2. Look for an earlier commit with this identifier. A process that was taken for dead may publish it after this
    #    check, and before the first attempt.
    last_seen_id = None
    if request.commit_identifier != BATCH_COMMIT_IDENTIFIER:
        last_seen_id = read_newest_id(context)
        with name_request(request):
            is_repeated = is_already_committed(
                context, request.commit_user, request.commit_identifier, request.properties
            )
        if is_repeated:
            return CommitResult(already_committed=True, failed_callbacks=call_callbacks_again(context, request))
    # 3. Check that no removal of orphans deleted the prepared files.
    check_prepared_files(context, request.messages)
    # 4. Publish the written files as one snapshot.
    this = _Commit(context, request, safe or SafeSnapshot(), last_seen_id, request)
    written = _publish_written_files(this, shares=plans is None)
    # 5. Publish the compacted files as a second one. A stop must not turn a published write into a failure.
    with shielded() if written else contextlib.nullcontext():
        visible = plans(written.snapshot) if plans and written else None
        compacted, lost = _publish_compacted_files(this, written, visible)
    # 6. Where nothing was published, nothing has shown yet that the table is there.
    if written is None and compacted is None:
        check_same_table(context)
    result = _to_result(written, compacted)
    return evolve(result, lost_compaction=lost, failed_callbacks=tuple(this.failed_callbacks))


def _publish_written_files(this: _Commit, shares: bool) -> Published | None:
    """Publish the written files, in a snapshot with others if it `shares`; None if there is nothing to publish."""
    table, request = this.context.table, this.request
    change = append_change(request.messages)
    skips_empty = request.ignore_empty and table.options.ignore_empty_commit is not False
    if change.is_empty and (request.dynamic_overwrite or (not request.replaces and skips_empty)):
        return None
    intent = Intent(table, request, change, this.safe)
    check_intent(intent)
    return _publish_and_report(this, intent, _choose_operation(request, change), shares)


def _publish_compacted_files(
    this: _Commit, after: Published | None, plans: CompactionPlans | None
) -> tuple[Published | None, PaimonError | None]:
    """Publish the compacted files; return their snapshot, or the error that prevented it.

    `after` is the published snapshot with the written files. Without it the error is raised. CommitOverwritten is
    always raised, because then the written files were replaced.
    """
    lost: PaimonError | None = None
    messages: Sequence[CommitMessage] = this.request.messages
    messages = messages if plans is None else plans.plan_next(messages, None)
    while not (change := compact_change(messages)).is_empty:
        is_droppable = after is not None and not (plans is not None and plans.is_last_try)
        # A new plan was made on a snapshot that contains the changes of other writers until then.
        safe = this.safe if plans is None or plans.planned_on is None else SafeSnapshot(plans.planned_on)
        try:
            intent = Intent(this.context.table, this.request, change, safe, is_droppable)
            return _publish_and_report(this, intent, None), None
        except CommitOverwritten as error:
            if error.request is this.recorded:  # the written files were replaced
                raise error.as_this_commit() from None
            error.published_id = None if after is None else after.snapshot.id
            raise
        except PaimonError as reason:
            if after is None:
                raise
            lost = reason  # the written files are published and complete without it
        if plans is None:
            break
        messages = plans.plan_next(messages, lost)
    return None, lost


def _publish_and_report(this: _Commit, intent: Intent, operation: str | None, shares: bool = False) -> Published:
    """Publish one snapshot, record it as the last commit of this process, and call the callbacks."""
    context, request = this.context, this.request
    try:
        publish = publish_in_group if shares and request.shares_snapshot else publish_change
        with name_request(request):
            published = publish(context, intent, operation, this.last_seen_id)
    except CommitConflict as error:
        report_event(context.engine.observer, "conflict", context.table.location, reason=error.message)
        raise
    if published.request is request:
        record_own_commit(context, this.recorded, published.snapshot, published.index_before)
    else:  # the leader of the group did it
        this.recorded = published.request
    names = request.commit_user, request.commit_identifier, request.messages
    event = CommitEvent(context.table, *names, published.snapshot, published.change)
    this.failed_callbacks += call_callbacks(context.engine, event)
    return published


@contextlib.contextmanager
def name_request(request: CommitRequest) -> Iterator[None]:
    """Give the request to an uncertain outcome, under the user of the snapshot, which may be that of a group."""
    try:
        yield
    except CommitUncertain as error:
        error.request = evolve(request, commit_user=error.commit_user)
        raise


def commit_statistics(context: TableContext, request: CommitRequest, file: StatisticsFile) -> Snapshot:
    """Publish a statistics file, which is written, as a snapshot that changes no row; errors are those of `commit`."""
    check_callbacks(context)
    this = _Commit(context, request, SafeSnapshot(), None, request)
    change = Change(CommitKind.ANALYZE, statistics=file)
    return _publish_and_report(this, Intent(context.table, request, change, this.safe), None).snapshot


def _to_result(written: Published | None, compacted: Published | None) -> CommitResult:
    published = [p for p in (written, compacted) if p is not None]
    return CommitResult(
        snapshot_ids=tuple(p.snapshot.id for p in published),
        added_rows=written.change.added_rows if written else 0,
        added_files=written.change.added_files if written else 0,
        retries=sum(p.retries for p in published),
    )


def _choose_operation(request: CommitRequest, change: Change) -> str:
    if request.operation is not None:
        return request.operation
    if request.replaces:
        everything = request.partitions is None and not request.overwrite
        return "TRUNCATE" if change.is_empty and everything else "OVERWRITE"
    return "WRITE"


def check_callbacks(context: TableContext) -> None:
    """Raise Unsupported if the engine lacks a callable for a name in `commit.callbacks`."""
    listed = (name.strip() for name in (context.options.get(_CALLBACKS) or "").split(","))
    missing = sorted({name for name in listed if name and name not in context.engine.callbacks})
    if missing:
        names = ", ".join(map(repr, missing))
        raise Unsupported(
            f"option {_CALLBACKS!r} of table {context.table.table_name!r} without a callable for {names}",
            hint="register one with table.with_callbacks({name: callable}), or clear the option with "
            "table.with_options({'commit.callbacks': ''})",
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


@shielded()
def call_callbacks(engine: Engine, event: CommitEvent) -> tuple[str, ...]:
    """Call all callbacks of the engine for one event.

    A callback that raises does not fail the commit: it causes a warning, whose text is returned. No stop ends the
    calls, because the commit is published.
    """
    failures: list[str] = []
    for name, callback in engine.callbacks.items():
        try:
            callback(event)
        except Exception as error:  # code of the caller may raise anything; the commit is published
            failures.append(_format_failure(name, event, error))
    for failure in failures:
        engine.observer.count("commit.callback_failed", 1)
        with contextlib.suppress(RuntimeWarning):  # raised if warnings are errors
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
    return tuple(failures)


def _format_failure(name: str, event: CommitEvent, error: Exception) -> str:
    what = f"Snapshot {event.snapshot.id}" if event.snapshot else f"Commit {event.identifier}"
    reason = f"{type(error).__name__}: {error}"
    return f"{what} of table {event.table.table_name!r} is committed, but callback {name!r} failed: {reason}"
