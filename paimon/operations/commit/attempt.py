"""Publish one change as one snapshot: check it, write its manifests, publish, and retry after another commit was first.

Invariant: delta manifests and their lists are written once, because other commits are published between the read of
the newest snapshot and the put of the next one. The base manifest list of a lost attempt is deleted. After an unknown
outcome no file is deleted.

Source: `FileStoreCommitImpl.tryCommit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.next_snapshot import SnapshotContent, Stamp, WrittenList, delta_rows, next_snapshot
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.commit.row_ids import assign_row_ids
from paimon.domain.commit.stream_batches import check_same_plan
from paimon.domain.errors import (
    CommitConflict,
    CommitUncertain,
    CorruptTable,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import find_published_since
from paimon.operations.commit.manifest_writer import BaseMerge, ManifestWriter
from paimon.operations.commit.publish import can_have_been_detached, confirm_same_table, explain_failure, publish
from paimon.operations.metadata.schemas import list_schemas_of_table
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.snapshots import PublishOutcome

ChangeOn = Callable[[CommitBase], Change]
"""The change as seen from a base; it raises CommitConflict where it does not fit."""


@frozen(hash=False)
class Signature:
    """What a snapshot records about its commit, apart from the files."""

    commit_user: str
    commit_identifier: int
    # Event time in epoch milliseconds
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    # "WRITE", "DELETE", …; None for compactions
    operation: str | None = None
    # Name of the statistics file
    statistics: str | None = None


@frozen(eq=False)
class Published:
    """A published snapshot with its change."""

    snapshot: Snapshot
    change: Change
    # Number of earlier attempts, which other commits preceded
    retries: int


@frozen(eq=False)
class _Delta:
    """The manifests of a change, which do not depend on the base; `names` are the names of all these files."""

    change: Change
    added: WrittenList
    changelog: WrittenList | None
    names: frozenset[str]


class Attempts:
    """The attempts to publish one change, with the files that the next attempt can use again.

    `last_seen_id` is the id of the newest snapshot (0 without one) when the commit was not in the table yet. The first
    attempt looks for the commit in later snapshots; without it, only the retries do.
    """

    def __init__(self, context: TableContext, signature: Signature, last_seen_id: int | None = None) -> None:
        self._context = context
        self._signature = signature
        self._writer = ManifestWriter(context)
        self._base_merge = BaseMerge(context, self._writer)
        self._delta: _Delta | None = None
        self._last_seen_id = last_seen_id

    def publish(self, change_on: ChangeOn) -> Published:
        """Publish the change, with retries while other commits publish the next snapshot first.

        CommitConflict: the change does not fit, or other commits were first too often; its manifests are deleted. After
        CommitUncertain the snapshot may be published, and no file is deleted. After any other error it is not
        acknowledged.
        """
        policy = build_retry_policy(self._context.table)
        started = self._context.engine.clock.now_millis()
        retries = 0
        while True:
            published = self._try_on_same_table(change_on, retries)
            if published is not None:
                return published
            self._writer.discard(keep=self._list_reusable_names())
            elapsed = self._context.engine.clock.now_millis() - started
            if policy.gives_up(retries, elapsed):
                self._writer.discard()
                others = "1 concurrent commit was" if retries == 0 else f"{retries + 1} concurrent commits were"
                raise CommitConflict(
                    f"Commit failed: {others} published first ({elapsed} ms)",
                    hint="retry, or raise 'commit.max-retries' and 'commit.timeout'",
                )
            self._context.engine.clock.sleep_millis(policy.wait_millis(retries, self._context.engine.random.uniform()))
            retries += 1

    def _try_on_same_table(self, change_on: ChangeOn, retries: int) -> Published | None:
        """Make one attempt, and confirm its snapshot; nothing remains of one in a table that is gone."""
        try:
            with self._context.engine.snapshots.lock(self._context.paths):
                published = self._try_once(change_on, retries)
            if published is not None:
                confirm_same_table(self._context, published.snapshot)
        except PaimonError as error:
            reason = explain_failure(self._context, error)
            if isinstance(reason, (TableDropped, TableReplaced)) and reason.snapshot_id is None:
                self._discard_all()
            if reason is error:
                raise
            raise reason from error
        return published

    def _try_once(self, change_on: ChangeOn, retries: int) -> Published | None:
        """Make one attempt; None if another commit published the next snapshot first."""
        schema_id = max(list_schemas_of_table(self._context), default=self._context.schema.id)
        latest = latest_snapshot(self._context)
        try:
            base = CommitBase(self._context, latest, schema_id)
            change = change_on(base)
            same_commit = self._find_same_commit(latest, change)
            if same_commit is not None:
                self._discard_all()
                return Published(same_commit, change, retries)
            change, next_row_id = self._assign_row_ids(base, change)
            with self._writer.batch_small_files():
                snapshot = self._write_snapshot(base, change, next_row_id, schema_id)
        except BaseException as error:
            self._discard_all()
            if isinstance(error, CorruptTable) and self._has_expired(latest):
                return None
            raise
        try:
            outcome = publish(self._context, snapshot, latest)
        except StorageError:
            self._discard_all()
            raise
        if outcome is PublishOutcome.UNKNOWN:
            signature = self._signature
            raise CommitUncertain(
                signature.commit_user,
                signature.commit_identifier,
                f"the storage does not show whether snapshot {snapshot.id} was published",
                snapshot_id=snapshot.id,
                identity=snapshot.identity,
            )
        if outcome is PublishOutcome.LOST:
            if can_have_been_detached(self._context, latest):
                # An expiry may have deleted its manifests as those of an expired snapshot, so no snapshot may name them
                # again.
                self._discard_all()
            return None
        self._writer.discard(keep=self._list_referenced_names(snapshot))
        self._write_latest_hint(snapshot.id)
        return Published(snapshot, change, retries)

    def _find_same_commit(self, latest: Snapshot | None, change: Change) -> Snapshot | None:
        """Return the same commit if another process published it since the last attempt; not for batch commits.

        Raises InvalidRequest if that was a batch with another plan.
        """
        since, self._last_seen_id = self._last_seen_id, latest.id if latest else 0
        signature = self._signature
        if since is None or signature.commit_identifier == BATCH_COMMIT_IDENTIFIER:
            return None
        found = find_published_since(
            self._context, since, latest, signature.commit_user, signature.commit_identifier, change.kind
        )
        if found is not None:
            check_same_plan(self._context.table.table_name, found, signature.properties)
        return found

    def _discard_all(self) -> None:
        """Delete all files that were written, so that the next attempt names none of them."""
        self._writer.discard()
        self._delta = None
        self._base_merge = BaseMerge(self._context, self._writer)

    def _has_expired(self, base: Snapshot | None) -> bool:
        """Return whether the base expired while it was read, so that its missing files do not mean a corrupt table."""
        return base is not None and find_snapshot(self._context, base.id) is None

    def _assign_row_ids(self, base: CommitBase, change: Change) -> tuple[Change, int]:
        """Return the change with row ids, if the table tracks rows, and the next free row id."""
        options = self._context.options
        if not options.row_tracking_enabled or change.kind is CommitKind.COMPACT:
            return change, base.next_row_id
        snapshot_id = base.snapshot.id + 1 if base.snapshot else 1
        return assign_row_ids(change, base.next_row_id, snapshot_id, options.row_tracking_partition_group)

    def _write_snapshot(self, base: CommitBase, change: Change, next_row_id: int, schema_id: int) -> Snapshot:
        """Write the manifests and lists of the next snapshot, and return the snapshot."""
        signature = self._signature
        delta = self._write_delta(change)
        content = SnapshotContent(
            kind=change.kind,
            base_list=self._writer.write_manifest_list(self._base_merge.merge_manifests(base.manifests)),
            delta_list=delta.added,
            delta_rows=delta_rows(change.entries),
            changelog_list=delta.changelog,
            changelog_rows=sum(e.file.row_count for e in change.changelog),
            index_manifest=base.write_index_manifest_after(change, self._writer),
            statistics=signature.statistics,
            watermark=signature.watermark,
            properties=signature.properties,
            next_row_id=next_row_id,
            operation=signature.operation,
        )
        stamp = Stamp(
            signature.commit_user,
            signature.commit_identifier,
            schema_id,
            self._context.engine.ids.uuid(),
            self._context.engine.clock.now_millis(),
        )
        return next_snapshot(base.snapshot, content, stamp)

    def _write_delta(self, change: Change) -> _Delta:
        """Write the manifests of a change, unless they exist from an earlier attempt."""
        if self._delta is None or self._delta.change != change:
            added, changelog = (
                self._writer.write_manifests(change.entries),
                self._writer.write_manifests(change.changelog),
            )
            lists = (
                self._writer.write_manifest_list(added),
                self._writer.write_manifest_list(changelog) if changelog else None,
            )
            names = {m.file_name for m in (*added, *changelog)} | {written.name for written in lists if written}
            self._delta = _Delta(change, *lists, frozenset(names))
        return self._delta

    def _list_referenced_names(self, snapshot: Snapshot) -> set[str]:
        """Return the names of the files that the published snapshot needs; the others belong to lost attempts."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
        return {name for name in (*lists, snapshot.index_manifest) if name} | self._list_reusable_names()

    def _list_reusable_names(self) -> set[str]:
        """Return the names of the files that the next attempt can use again."""
        return {*(self._delta.names if self._delta else ()), *self._base_merge.new_manifest_names}

    def _write_latest_hint(self, snapshot_id: int) -> None:
        # A hint that cannot be written only makes the next reader slower.
        try:
            self._context.files.replace(self._context.paths.latest_hint, str(snapshot_id).encode())
        except StorageError:
            self._context.engine.observer.count("commit.hint_failed", 1)


def build_retry_policy(table: TableDefinition) -> RetryPolicy:
    """Return the retry policy that the table's `commit.*` options set."""
    options = table.options
    return RetryPolicy(
        options.commit_max_retries,
        options.commit_timeout_millis,
        options.commit_min_retry_wait_millis,
        options.commit_max_retry_wait_millis,
    )
