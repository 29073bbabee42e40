"""One change made into one snapshot: check, write, publish, and again after a lost race.

Law: data files, delta manifests and their lists are made once, for what lies between the look at the head and the
publishing is what others can win by; a lost attempt's base list goes; an unknown outcome deletes nothing.
Source: `FileStoreCommitImpl.tryCommit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.next_snapshot import SnapshotContent, Stamp, WrittenList, delta_rows, next_snapshot
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.commit.row_ids import with_row_ids
from paimon.domain.errors import CommitConflict, CommitUncertain, CorruptTable, StorageError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import published_since
from paimon.operations.commit.lineage import may_have_stood_astray
from paimon.operations.commit.manifests import ManifestWriter
from paimon.operations.commit.merging import BaseMerge
from paimon.operations.commit.publish import publish
from paimon.operations.read.schemas import schema_ids
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.ports.engine import Engine
from paimon.ports.snapshots import PublishOutcome

ChangeOn = Callable[[CommitBase], Change]
"""The change as seen from a base; it raises CommitConflict where it does not fit."""


@frozen(hash=False)
class Signature:
    """What a snapshot says of its commit."""

    commit_user: str
    identifier: int
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    operation: str | None = None
    statistics: str | None = None


@frozen(eq=False)
class Published:
    """A snapshot that stands, the change that it made, and how often the race was lost before."""

    snapshot: Snapshot
    change: Change
    retries: int


@frozen(eq=False)
class _Delta:
    """What is stored of a change alone, on whatever base it is published; `names` are all of its files."""

    change: Change
    added: WrittenList
    changelog: WrittenList | None
    names: frozenset[str]


class Attempts:
    """The attempts to publish one change; keeps what the next attempt can use again."""

    def __init__(self, engine: Engine, table: TableDefinition, signature: Signature) -> None:
        self._engine = engine
        self._table = table
        self._signature = signature
        self._writer = ManifestWriter(engine, table)
        self._merge = BaseMerge(engine, table, self._writer)
        self._delta: _Delta | None = None
        self._seen: int | None = None

    def publish(self, change_on: ChangeOn) -> Published:
        """Publish the change, trying again while the race is lost.

        Raises
        ------
        CommitConflict
            The change does not fit (any more), or the race was lost too often; what was written for it is gone.
        CommitUncertain
            See there.
        """
        policy = retry_policy(self._table)
        started = self._engine.clock.now_millis()
        retries = 0
        while True:
            with self._engine.snapshots.turn(self._table.paths):
                published = self._once(change_on, retries)
            if published is not None:
                return published
            self._writer.discard(keep=self._reusable())
            elapsed = self._engine.clock.now_millis() - started
            if policy.gives_up(retries, elapsed):
                self._writer.discard()
                raise CommitConflict(
                    f"the commit lost the race for the next snapshot {retries + 1} times in {elapsed} ms",
                    hint="commit again, or raise commit.max-retries and commit.timeout",
                )
            self._engine.clock.sleep_millis(policy.wait_millis(retries, self._engine.random.uniform()))
            retries += 1

    def _once(self, change_on: ChangeOn, retries: int) -> Published | None:
        schema_id = max(schema_ids(self._engine, self._table.paths), default=self._table.schema.id)
        latest = latest_snapshot(self._engine, self._table.paths)
        try:
            base = CommitBase(self._engine, self._table, latest)
            change = change_on(base)
            done = self._done_by_twin(latest, change)
            if done is not None:
                self._start_anew()
                return Published(done, change, retries)
            change, next_row_id = self._tracked(base, change)
            with self._writer.together():
                snapshot = self._written(base, change, next_row_id, schema_id)
        except BaseException as error:
            self._start_anew()
            if isinstance(error, CorruptTable) and self._expired(latest):
                return None
            raise
        try:
            outcome = publish(self._engine, self._table, snapshot, latest)
        except StorageError:
            self._start_anew()
            raise
        if outcome is PublishOutcome.UNKNOWN:
            signature = self._signature
            raise CommitUncertain(
                signature.commit_user, signature.identifier, f"whether snapshot {snapshot.id} stands cannot be told",
                snapshot_id=snapshot.id, identity=snapshot.identity,
            )  # fmt: skip
        if outcome is PublishOutcome.LOST:
            if may_have_stood_astray(self._engine, self._table, latest):
                # An expirer may have taken its manifests for those of a snapshot that expired: they must not be named
                # again.
                self._start_anew()
            return None
        self._writer.discard(keep=self._used(snapshot))
        self._hint(snapshot.id)
        return Published(snapshot, change, retries)

    def _done_by_twin(self, latest: Snapshot | None, change: Change) -> Snapshot | None:
        """The same commit, published by another process since the last attempt (batch identifiers tell nothing)."""
        since, self._seen = self._seen, latest.id if latest else 0
        signature = self._signature
        if since is None or signature.identifier == BATCH_COMMIT_IDENTIFIER:
            return None
        return published_since(
            self._engine, self._table, since, latest, signature.commit_user, signature.identifier, change.kind
        )

    def _start_anew(self) -> None:
        """Take away all that was written, and forget it: the next attempt must not count on it."""
        self._writer.discard()
        self._delta = None
        self._merge = BaseMerge(self._engine, self._table, self._writer)

    def _expired(self, base: Snapshot | None) -> bool:
        """Whether the base went while it was read: others were faster, and its files are missing for a good reason."""
        return base is not None and find_snapshot(self._engine, self._table.paths, base.id) is None

    def _tracked(self, base: CommitBase, change: Change) -> tuple[Change, int]:
        """The change as it goes into manifests: with row ids, where the table's rows have them."""
        options = self._table.options
        if not options.row_tracking_enabled or change.kind is CommitKind.COMPACT:
            return change, base.next_row_id
        snapshot_id = base.snapshot.id + 1 if base.snapshot else 1
        return with_row_ids(change, base.next_row_id, snapshot_id, options.row_tracking_partition_group)

    def _written(self, base: CommitBase, change: Change, next_row_id: int, schema_id: int) -> Snapshot:
        signature = self._signature
        delta = self._delta_of(change)
        content = SnapshotContent(
            kind=change.kind,
            base_list=self._writer.manifest_list(self._merge.merged(base.manifests)),
            delta_list=delta.added,
            delta_rows=delta_rows(change.entries),
            changelog_list=delta.changelog,
            changelog_rows=sum(e.file.row_count for e in change.changelog),
            index_manifest=base.index_manifest_after(change, self._writer),
            statistics=signature.statistics,
            watermark=signature.watermark,
            properties=signature.properties,
            next_row_id=next_row_id,
            operation=signature.operation,
        )
        stamp = Stamp(
            signature.commit_user,
            signature.identifier,
            schema_id,
            self._engine.ids.uuid(),
            self._engine.clock.now_millis(),
        )
        return next_snapshot(base.snapshot, content, stamp)

    def _delta_of(self, change: Change) -> _Delta:
        if self._delta is None or self._delta.change != change:
            added, changelog = self._writer.manifests(change.entries), self._writer.manifests(change.changelog)
            lists = self._writer.manifest_list(added), self._writer.manifest_list(changelog) if changelog else None
            names = {m.file_name for m in (*added, *changelog)} | {written.name for written in lists if written}
            self._delta = _Delta(change, *lists, frozenset(names))
        return self._delta

    def _used(self, snapshot: Snapshot) -> set[str]:
        """What the published snapshot names: the rest was made for attempts that lost."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
        return {name for name in (*lists, snapshot.index_manifest) if name} | self._reusable()

    def _reusable(self) -> set[str]:
        return {*(self._delta.names if self._delta else ()), *self._merge.made}

    def _hint(self, snapshot_id: int) -> None:
        # A hint that cannot be written only makes the next reader slower.
        try:
            self._engine.files.replace(self._table.paths.latest_hint, str(snapshot_id).encode())
        except StorageError:
            self._engine.observer.count("commit.hint_failed", 1)


def retry_policy(table: TableDefinition) -> RetryPolicy:
    """What the table's `commit.*` options say about retries."""
    options = table.options
    return RetryPolicy(
        options.commit_max_retries,
        options.commit_timeout_millis,
        options.commit_min_retry_wait_millis,
        options.commit_max_retry_wait_millis,
    )
