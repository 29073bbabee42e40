"""Publish one change as one snapshot: attempts on the newest snapshot, until no other commit is first.

Invariant: an outcome is never guessed. The files of lost attempts are deleted, those of an unknown one stay.

Source: `FileStoreCommitImpl.tryCommit`.
"""

# The only atomic step of a commit is one put of the file snapshot-<n+1>, which fails if it exists. An attempt prepares
# it: read the base -> plan the change -> write manifests -> put the snapshot. The put has five outcomes, and each
# decides which files may be deleted:
#
#     published   the files of lost attempts are deleted, those that the snapshot names stay
#     lost        another commit has the id. The manifests of the change are used again, because they do not depend on
#                 the base; its base manifest list is deleted. Retries end by `commit.max-retries` or `commit.timeout`
#     refused     the storage says that no file was made (StorageError): all manifests are deleted
#     unknown     it is unknown whether the file was made, for instance after a broken connection. `publish` looks it
#                 up first. If that fails, too, CommitUncertain says so, and no file is deleted, now or by the caller
#     not durable the file is visible, but its directory could not be flushed: the same
#
# After CommitUncertain a caller asks `resolve_commit`, which finds the snapshot by user, identifier and uuid. A retry
# that finds the commit of another process with the same user and identifier, which was taken for dead, takes that
# snapshot for its own.
#
# The table may be dropped or replaced concurrently. So the schema files are listed before each attempt, and the first
# one is read after the put. If the table is gone, the snapshot is withdrawn (`publish.py`) and the commit fails.

from __future__ import annotations

from typing import Protocol

from attrs import define, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.plan_change import Intent, plan_change
from paimon.domain.commit.request import CommitRequest
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.commit.row_ids import assign_row_ids
from paimon.domain.commit.stream_batches import check_same_plan
from paimon.domain.errors import (
    CommitConflict,
    CorruptTable,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import check_own_commit, find_published_since
from paimon.operations.commit.manifest_writer import SnapshotFiles
from paimon.operations.commit.publish import (
    can_have_been_detached,
    check_durable,
    check_outcome,
    confirm_same_table,
    explain_failure,
    publish,
)
from paimon.operations.metadata.schemas import list_schemas_of_table
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import Stopped, shielded
from paimon.ports.observer import report_event
from paimon.ports.snapshots import PublishOutcome


@frozen(eq=False)
class Published:
    """A published snapshot with its change."""

    snapshot: Snapshot
    change: Change
    # what was committed: that of one caller, or of a group
    request: CommitRequest
    # the name of the index manifest before it
    index_before: str | None
    # number of earlier attempts, which other commits preceded
    retries: int


class ChangeSource(Protocol):
    """What is published as one snapshot: the change of one caller, or of a group."""

    @property
    def request(self) -> CommitRequest:
        """What the last plan commits."""

    def plan(self, base: CommitBase) -> Change:
        """Return the change to publish on a base; called once for each attempt. Conflicts raise."""

    def note_put(self, snapshot: Snapshot | None) -> None:
        """Note the snapshot that is put next, and None once it is certain that it was not published."""


@frozen(eq=False)
class _OneChange:
    """The change of one caller."""

    intent: Intent

    @property
    def request(self) -> CommitRequest:
        return self.intent.request

    def plan(self, base: CommitBase) -> Change:
        return plan_change(self.intent, base)

    def note_put(self, snapshot: Snapshot | None) -> None:
        return


@define(eq=False)
class _Attempts:
    """The attempts to publish one change: what the next one continues with."""

    context: TableContext
    source: ChangeSource
    # "WRITE", "DELETE", …; None for compactions
    operation: str | None
    files: SnapshotFiles
    # the commit is not in the snapshots up to this one; None if only the retries look for it
    last_seen_id: int | None


def publish_change(
    context: TableContext, intent: Intent, operation: str | None, last_seen_id: int | None = None
) -> Published:
    """Publish the change of one caller; see `publish_source`."""
    return publish_source(context, _OneChange(intent), operation, last_seen_id)


def publish_source(
    context: TableContext, source: ChangeSource, operation: str | None, last_seen_id: int | None = None
) -> Published:
    """Publish one change as one snapshot, with retries while other commits publish the next snapshot first.

    CommitConflict: the change does not fit, or other commits were first too often; its manifests are deleted. After
    CommitUncertain the snapshot may be published, and no file is deleted. After any other error it is not acknowledged.
    """
    this = _Attempts(context, source, operation, SnapshotFiles(context), last_seen_id)
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
            change = this.source.plan(base)
            # 4. Take the snapshot of another process that published the same commit concurrently.
            same_commit = _find_same_commit(this, latest, change)
            if same_commit is not None:
                files.discard_all()
                return Published(same_commit, change, this.source.request, index_before, retries)
            # 5. Give the rows their ids, if the table tracks rows, and write manifests and lists of the next snapshot.
            change, next_row_id = _assign_row_ids(this, base, change)
            snapshot = files.write_snapshot(base, change, this.source.request, this.operation, next_row_id)
    except CorruptTable:
        if latest is not None and find_snapshot(context, latest.id) is None:
            return None  # the base expired while it was read, so a missing file does not mean a corrupt table
        raise
    # 6. Publish the snapshot, and act on the outcome.
    this.source.note_put(snapshot)
    try:
        outcome = publish(context, snapshot, latest)
    except StorageError:
        this.source.note_put(None)
        files.discard_all()
        raise
    check_outcome(snapshot, outcome)
    if outcome is PublishOutcome.LOST:
        this.source.note_put(None)
        if can_have_been_detached(context, latest):
            # An expiry may have deleted its manifests as those of an expired snapshot: no snapshot names them again.
            files.discard_all()
        return None
    files.discard_unreferenced(snapshot)
    _write_latest_hint(context, snapshot.id)
    return Published(snapshot, change, this.source.request, index_before, retries)


def _find_same_commit(this: _Attempts, latest: Snapshot | None, change: Change) -> Snapshot | None:
    """Return the same commit if another process published it since the last attempt; not for batch commits.

    Raises InvalidRequest if that was a batch with another plan.
    """
    since, this.last_seen_id = this.last_seen_id, latest.id if latest else 0
    request = this.source.request
    if since is None or request.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    found = find_published_since(
        this.context, since, latest, request.commit_user, request.commit_identifier, change.kind
    )
    if found is not None:
        check_durable(this.context, found)
        check_same_plan(this.context.table.table_name, found, request.properties)
    return found


def _assign_row_ids(this: _Attempts, base: CommitBase, change: Change) -> tuple[Change, int]:
    """Return the change with row ids, if the table tracks rows, and the next free row id."""
    options = this.context.options
    if not options.row_tracking_enabled or change.kind is CommitKind.COMPACT:
        return change, base.next_row_id
    snapshot_id = base.snapshot.id + 1 if base.snapshot else 1
    return assign_row_ids(change, base.next_row_id, snapshot_id, options.row_tracking_partition_group)


def _write_latest_hint(context: TableContext, snapshot_id: int) -> None:
    # A hint that cannot be written only makes the next reader slower.
    try:
        context.files.replace(context.paths.latest_hint, str(snapshot_id).encode())
    except StorageError:
        context.engine.observer.count("commit.hint_failed", 1)
