"""Commit the messages of writers: check them, publish them as snapshots, and call the callbacks.

Invariant: written files become one snapshot, compacted files a second one with the same identifier. A commit with its
own identifier is published once. A published write is never reported as a failure.

Source: `FileStoreCommitImpl`, `TableCommitImpl`, `CommitCallback`.
"""

# A commit makes prepared files visible. The only atomic step is one put of the file snapshot-<n+1>, which fails if it
# exists. Everything else is arranged around this put:
#
#     commit                 refuse -> find an earlier commit -> check files -> written files -> compacted files
#       publish_change       attempt -> lost: wait, attempt on the newer base -> published: record, callbacks
#         _attempt           read the base -> plan the change -> write manifests -> put the snapshot
#
# The put has four outcomes, and each decides which files may be deleted:
#
#     published   the files of lost attempts are deleted, those that the snapshot names stay
#     lost        another commit has the id. The manifests of the change are used again, because they do not depend on
#                 the base; its base manifest list is deleted. Retries end by `commit.max-retries` or `commit.timeout`
#     refused     the storage says that no file was made (StorageError): all manifests are deleted
#     unknown     it is unknown whether the file was made, for instance after a broken connection. `publish` looks it
#                 up first. If that fails, too, CommitUncertain says so, and no file is deleted, now or by the caller
#
# An outcome is never guessed: after CommitUncertain a caller asks `resolve_commit`, which finds the snapshot by user,
# identifier and uuid. A retry that finds the commit of another process with the same user and identifier, which was
# taken for dead, takes that snapshot for its own.
#
# The table may be dropped or replaced concurrently. So the schema files are listed before each attempt, and the first
# one is read after the put. If the table is gone, the snapshot is withdrawn (`publish.py`) and the commit fails.
#
# The written files are complete without the compaction. So when they are published, an error of the compacted files
# is reported in the result and not raised, unless reads would not show the rows; `plans` decides that.

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import define, evolve, field, frozen

from paimon.domain.commit.entries import Change, StatisticsFile, append_change, check_paths, compact_change
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.plan_change import Intent, SafeSnapshot, check_intent, plan_change
from paimon.domain.commit.request import CommitRequest, CommitResult, check_request
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.commit.row_ids import assign_row_ids
from paimon.domain.commit.stream_batches import check_same_plan
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    CommitUncertain,
    CorruptTable,
    InvalidRequest,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
    Unsupported,
)
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import (
    check_own_commit,
    find_published_since,
    find_snapshots_of_commit,
    is_already_committed,
    read_newest_id,
    record_own_commit,
)
from paimon.operations.commit.manifest_writer import SnapshotFiles
from paimon.operations.commit.prepared_files import check_prepared_files
from paimon.operations.commit.publish import can_have_been_detached, confirm_same_table, explain_failure, publish
from paimon.operations.metadata.schemas import check_same_table, list_schemas_of_table
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import CommitEvent
from paimon.ports.cancellation import Stopped, shielded
from paimon.ports.engine import Engine
from paimon.ports.observer import report_event
from paimon.ports.snapshots import PublishOutcome

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


@frozen(eq=False)
class Published:
    """A published snapshot with its change."""

    snapshot: Snapshot
    change: Change
    # the name of the index manifest before it
    index_before: str | None
    # number of earlier attempts, which other commits preceded
    retries: int


@define(eq=False)
class _Commit:
    """One run of `commit`: what both of its snapshots share, and the callbacks that failed."""

    context: TableContext
    request: CommitRequest
    safe: SafeSnapshot
    # the newest snapshot (0 without one) when the commit was not in the table yet; None for batch commits
    last_seen_id: int | None
    failed_callbacks: list[str] = field(factory=list)


@define(eq=False)
class _Attempts:
    """The attempts to publish one change: what the next one continues with."""

    context: TableContext
    intent: Intent
    # "WRITE", "DELETE", …; None for compactions
    operation: str | None
    files: SnapshotFiles
    # the commit is not in the snapshots up to this one; None if only the retries look for it
    last_seen_id: int | None


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
        if is_already_committed(context, request.commit_user, request.commit_identifier, request.properties):
            return CommitResult(already_committed=True, failed_callbacks=call_callbacks_again(context, request))
    # 3. Check that no removal of orphans deleted the prepared files.
    check_prepared_files(context, request.messages)
    # 4. Publish the written files as one snapshot.
    this = _Commit(context, request, safe or SafeSnapshot(), last_seen_id)
    written = _publish_written_files(this)
    # 5. Publish the compacted files as a second one. A stop must not turn a published write into a failure.
    with shielded() if written else contextlib.nullcontext():
        visible = plans(written.snapshot) if plans and written else None
        compacted, lost = _publish_compacted_files(this, written, visible)
    # 6. Where nothing was published, nothing has shown yet that the table is there.
    if written is None and compacted is None:
        check_same_table(context)
    result = _to_result(written, compacted)
    return evolve(result, lost_compaction=lost, failed_callbacks=tuple(this.failed_callbacks))


def _publish_written_files(this: _Commit) -> Published | None:
    """Publish the written files; None if there is nothing to publish."""
    table, request = this.context.table, this.request
    change = append_change(request.messages)
    skips_empty = request.ignore_empty and table.options.ignore_empty_commit is not False
    if change.is_empty and (request.dynamic_overwrite or (not request.replaces and skips_empty)):
        return None
    intent = Intent(table, request, change, this.safe)
    check_intent(intent)
    return _publish_and_tell(this, intent, _choose_operation(request, change))


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
            return _publish_and_tell(this, intent, None), None
        except CommitOverwritten as error:  # the written files were replaced
            raise (error.as_this_commit() if error.request is this.request else error) from None
        except PaimonError as reason:
            if after is None:
                raise
            lost = reason  # the written files are published and complete without it
        if plans is None:
            break
        messages = plans.plan_next(messages, lost)
    return None, lost


def _publish_and_tell(this: _Commit, intent: Intent, operation: str | None) -> Published:
    """Publish one snapshot, record it as the last commit of this process, and call the callbacks."""
    context, request = this.context, this.request
    try:
        published = publish_change(context, intent, operation, this.last_seen_id)
    except CommitUncertain as error:
        error.request = request
        raise
    except CommitConflict as error:
        report_event(context.engine.observer, "conflict", context.table.location, reason=error.message)
        raise
    record_own_commit(context, request, published.snapshot, published.index_before)
    names = request.commit_user, request.commit_identifier, request.messages
    event = CommitEvent(context.table, *names, published.snapshot, published.change)
    this.failed_callbacks += call_callbacks(context.engine, event)
    return published


def commit_statistics(context: TableContext, request: CommitRequest, file: StatisticsFile) -> Snapshot:
    """Publish a statistics file, which is written, as a snapshot that changes no row; errors are those of `commit`."""
    check_callbacks(context)
    this = _Commit(context, request, SafeSnapshot(), None)
    change = Change(CommitKind.ANALYZE, statistics=file)
    return _publish_and_tell(this, Intent(context.table, request, change, this.safe), None).snapshot


def publish_change(
    context: TableContext, intent: Intent, operation: str | None, last_seen_id: int | None = None
) -> Published:
    """Publish one change as one snapshot, with retries while other commits publish the next snapshot first.

    CommitConflict: the change does not fit, or other commits were first too often; its manifests are deleted. After
    CommitUncertain the snapshot may be published, and no file is deleted. After any other error it is not acknowledged.
    """
    this = _Attempts(context, intent, operation, SnapshotFiles(context), last_seen_id)
    policy, clock, retries = RetryPolicy.of(context.options), context.engine.clock, 0
    started = clock.now_millis()
    while True:
        try:
            # 1. Make an attempt on the newest snapshot, under the lock of the storage if it has one.
            #    A stop waits until the attempt ends, and whether the snapshot is published is known.
            with context.engine.snapshots.lock(context.paths), shielded():
                published = _attempt(this, retries)
            # 2. Confirm that the table is still the one that was opened; otherwise the snapshot is withdrawn.
            if published is not None:
                with shielded():
                    confirm_same_table(context, published.snapshot)
                    _report_published(context, published, published.snapshot.time_millis - started)
                return published
        except Stopped:
            this.files.discard_all()
            raise
        except PaimonError as error:
            reason = explain_failure(context, error)
            if isinstance(reason, (TableDropped, TableReplaced)) and reason.snapshot_id is None:
                this.files.discard_all()
            if reason is error:
                raise
            raise reason from error
        # 3. Another commit was first: give up, or wait and try again on the newer base.
        this.files.discard_unshared()
        elapsed = clock.now_millis() - started
        if policy.gives_up(retries, elapsed):
            this.files.discard_all()
            others = "1 concurrent commit was" if retries == 0 else f"{retries + 1} concurrent commits were"
            raise CommitConflict(
                f"Commit failed: {others} published first ({elapsed} ms)",
                hint="retry, or raise 'commit.max-retries' and 'commit.timeout'",
            )
        wait = policy.wait_millis(retries, context.engine.random.uniform())
        report_event(
            context.engine.observer, "retry", context.table.location, retry=retries + 1, wait_millis=round(wait)
        )
        with undo_on_failure(this.files.discard_all):
            clock.sleep_millis(wait)
        retries += 1


def _report_published(context: TableContext, published: Published, millis: int) -> None:
    kind, change = published.snapshot.commit_kind, published.change
    report_event(
        context.engine.observer,
        "compaction" if kind is CommitKind.COMPACT else "commit",
        context.table.location,
        snapshot_id=published.snapshot.id,
        kind=kind.value,
        rows=change.added_rows,
        files=change.added_files,
        retries=published.retries,
        millis=max(0, millis),
    )


def _attempt(this: _Attempts, retries: int) -> Published | None:
    """Make one attempt; None if another commit published the next snapshot first."""
    context, files = this.context, this.files
    # 1. Read the newest schema and snapshot, and check that the table is there.
    schema_id = max(list_schemas_of_table(context), default=context.schema.id)
    latest = latest_snapshot(context)
    base = CommitBase(context, latest, schema_id)
    index_before = latest.index_manifest if latest else None
    try:
        with undo_on_failure(files.discard_all):
            # 2. Check once that the last commit of this process is still in the table.
            if retries == 0:
                check_own_commit(context, latest)
            # 3. Adapt the change to the base; conflicts raise.
            change = plan_change(this.intent, base)
            # 4. Take the snapshot of another process that published the same commit concurrently.
            same_commit = _find_same_commit(this, latest, change)
            if same_commit is not None:
                files.discard_all()
                return Published(same_commit, change, index_before, retries)
            # 5. Give the rows their ids, if the table tracks rows, and write manifests and lists of the next snapshot.
            change, next_row_id = _assign_row_ids(this, base, change)
            snapshot = files.write_snapshot(base, change, this.intent.request, this.operation, next_row_id)
    except CorruptTable:
        if latest is not None and find_snapshot(context, latest.id) is None:
            return None  # the base expired while it was read, so a missing file does not mean a corrupt table
        raise
    # 6. Publish the snapshot, and act on the outcome.
    try:
        outcome = publish(context, snapshot, latest)
    except StorageError:
        files.discard_all()
        raise
    if outcome is PublishOutcome.UNKNOWN:
        raise _uncertain_error(snapshot)
    if outcome is PublishOutcome.LOST:
        if can_have_been_detached(context, latest):
            # An expiry may have deleted its manifests as those of an expired snapshot: no snapshot names them again.
            files.discard_all()
        return None
    files.discard_unreferenced(snapshot)
    _write_latest_hint(context, snapshot.id)
    return Published(snapshot, change, index_before, retries)


def _find_same_commit(this: _Attempts, latest: Snapshot | None, change: Change) -> Snapshot | None:
    """Return the same commit if another process published it since the last attempt; not for batch commits.

    Raises InvalidRequest if that was a batch with another plan.
    """
    since, this.last_seen_id = this.last_seen_id, latest.id if latest else 0
    request = this.intent.request
    if since is None or request.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    found = find_published_since(
        this.context, since, latest, request.commit_user, request.commit_identifier, change.kind
    )
    if found is not None:
        check_same_plan(this.context.table.table_name, found, request.properties)
    return found


def _assign_row_ids(this: _Attempts, base: CommitBase, change: Change) -> tuple[Change, int]:
    """Return the change with row ids, if the table tracks rows, and the next free row id."""
    options = this.context.options
    if not options.row_tracking_enabled or change.kind is CommitKind.COMPACT:
        return change, base.next_row_id
    snapshot_id = base.snapshot.id + 1 if base.snapshot else 1
    return assign_row_ids(change, base.next_row_id, snapshot_id, options.row_tracking_partition_group)


def _uncertain_error(snapshot: Snapshot) -> CommitUncertain:
    return CommitUncertain(
        snapshot.commit_user,
        snapshot.commit_identifier,
        f"the storage does not show whether snapshot {snapshot.id} was published",
        snapshot_id=snapshot.id,
        identity=snapshot.identity,
    )


def _write_latest_hint(context: TableContext, snapshot_id: int) -> None:
    # A hint that cannot be written only makes the next reader slower.
    try:
        context.files.replace(context.paths.latest_hint, str(snapshot_id).encode())
    except StorageError:
        context.engine.observer.count("commit.hint_failed", 1)


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


def commit_user_of(
    context: TableContext, commit_user: str | None, commit_identifier: int = BATCH_COMMIT_IDENTIFIER
) -> str:
    """Return the commit user that was given, else a new one with the prefix of `commit.user-prefix`.

    Raises InvalidRequest if the user is an empty text, or if it is missing although there is an identifier.
    """
    if commit_user is None and commit_identifier != BATCH_COMMIT_IDENTIFIER:
        raise missing_user_error("identifier")
    if commit_user == "":
        raise InvalidRequest("'commit_user' is empty.", subject="commit_user", hint="give a name, or leave it out")
    if commit_user is not None:
        return commit_user
    prefix = context.options.get("commit.user-prefix")
    user = context.engine.ids.uuid()
    return f"{prefix}_{user}" if prefix else user


def missing_user_error(argument: str) -> InvalidRequest:
    """Return the error for a commit identifier without a user: with a new user, no repeated commit is recognized."""
    return InvalidRequest(
        f"Argument {argument!r} has no effect without a commit user.",
        subject=argument,
        hint=f"name the job with 'commit_user', or leave {argument!r} out",
    )
