"""Committing what writers prepared.

Law: what was written becomes one snapshot, what was compacted a second one of the same identifier; a commit with an
identifier of its own happens once; a published write is never reported as a failure. Source: `FileStoreCommitImpl`,
`TableCommitImpl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from paimon.domain.commit.conflicts.files import check_conflicts, check_strict, needs_check, without_known
from paimon.domain.commit.conflicts.overtaken import check_overtaken, forgotten_through
from paimon.domain.commit.conflicts.vectors import check_vectors
from paimon.domain.commit.entries import Change, check_places, compacted, written
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.overwrite import PartitionFilter, overwriting, partitions_of_spec, partitions_written
from paimon.domain.errors import CommitUncertain, PaimonError
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.commit.attempt import Attempts, ChangeOn, Published, Signature
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import committed, happened
from paimon.operations.commit.strict import since_safe
from paimon.ports.engine import Engine

__all__ = ["CommitRequest", "CommitResult", "commit", "committed"]


def _messages(values: Iterable[CommitMessage]) -> tuple[CommitMessage, ...]:
    return tuple(values)


@frozen(hash=False)
class CommitRequest:
    """What to commit.

    Parameters
    ----------
    messages : tuple of CommitMessage
        What the writers of this job prepared.
    commit_user : str
        Who commits; identifiers count for this user.
    identifier : int
        Rises with each commit of the user; `BATCH_COMMIT_IDENTIFIER` for jobs that commit once.
    overwrite : mapping, optional
        Static partition spec to replace; ``{}`` is the whole table; with no messages this drops them.
    dynamic_overwrite : bool
        Replace the partitions that the messages hold files of.
    partitions : frozenset of bytes, optional
        Replace exactly these partitions (serialised rows); with no messages this drops them.
    watermark : int, optional
        Event time in epoch milliseconds.
    properties : mapping
        Kept in the snapshot.
    ignore_empty : bool
        Make no snapshot where the messages hold nothing.
    check_conflicts : bool
        Check also what cannot conflict unless somebody errs (plain appends).
    operation : str, optional
        What the snapshot says it was (``"DELETE"``, ``"UPDATE"`` …); by default WRITE, OVERWRITE or TRUNCATE.
    """

    messages: tuple[CommitMessage, ...] = field(converter=_messages)
    commit_user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    partitions: frozenset[bytes] | None = None
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    ignore_empty: bool = True
    check_conflicts: bool = False
    operation: str | None = None

    @property
    def replaces(self) -> bool:
        """Whether partitions are replaced, rather than files added."""
        return self.overwrite is not None or self.dynamic_overwrite or self.partitions is not None


@frozen(eq=False)
class CommitResult:
    """What a commit did.

    `snapshot_ids` are those it made, in order (none: nothing to do, or done before); `lost_compaction` says why what
    was compacted could not be published although what was written was: its files are not in the table, and the data
    are whole without them.
    """

    snapshot_ids: tuple[int, ...] = ()
    added_rows: int = 0
    added_files: int = 0
    retries: int = 0
    already_committed: bool = False
    lost_compaction: PaimonError | None = None


def commit(engine: Engine, table: TableDefinition, request: CommitRequest) -> CommitResult:
    """Publish the messages.

    Raises
    ------
    CommitConflict
        Nothing of the messages was published; their data files are still there (see `abort`).
    CommitUncertain
        Nobody can tell whether a part was published; nothing was deleted.
    InvalidRequest
        The messages do not fit the table or the partitions to be replaced, or the identifier is below one that the user
        committed and no snapshot tells of it.
    CorruptTable
        The snapshot to build on cannot be read; nothing was published.
    """
    check_places(request.messages, (table.location, *table.allowed_roots))
    once = request.identifier != BATCH_COMMIT_IDENTIFIER
    if once and happened(engine, table, request.commit_user, request.identifier):
        return CommitResult(already_committed=True)
    first = _publish_written(engine, table, request)
    second, lost = _publish_compacted(engine, table, request, after=first)
    done = [p for p in (first, second) if p is not None]
    return CommitResult(
        snapshot_ids=tuple(p.snapshot.id for p in done),
        added_rows=first.change.added_rows if first else 0,
        added_files=first.change.added_files if first else 0,
        retries=sum(p.retries for p in done),
        lost_compaction=lost,
    )


def _publish_written(engine: Engine, table: TableDefinition, request: CommitRequest) -> Published | None:
    change = written(request.messages)
    overwrites = request.replaces
    if change.is_empty and (request.dynamic_overwrite or (not overwrites and _ignores_empty(table, request))):
        return None
    change_on = _overwrite_on(table, request, change) if overwrites else _append_on(table, change)
    signature = Signature(
        request.commit_user, request.identifier, request.watermark, request.properties, _operation(request, change)
    )
    return Attempts(engine, table, signature).publish(_checked(engine, table, request, change_on))


def _publish_compacted(
    engine: Engine, table: TableDefinition, request: CommitRequest, after: Published | None
) -> tuple[Published | None, PaimonError | None]:
    change = compacted(request.messages)
    if change.is_empty:
        return None, None
    signature = Signature(request.commit_user, request.identifier, request.watermark, request.properties)
    try:
        change_on = _compact_on(change, inline=after is not None)
        return Attempts(engine, table, signature).publish(_checked(engine, table, request, change_on)), None
    except CommitUncertain:
        raise
    except PaimonError as reason:
        if after is None:
            raise
        return None, reason  # what was written is published, and whole without it


def _checked(engine: Engine, table: TableDefinition, request: CommitRequest, change_on: ChangeOn) -> ChangeOn:
    """The change, after all checks that its kind asks for."""
    key_types = [f.type for f in table.schema.key_fields]

    def on(base: CommitBase) -> Change:
        change = change_on(base)
        for snapshot, touched in since_safe(engine, table, base.snapshot):
            check_strict(snapshot, touched, change, request.commit_user)
        if needs_check(change, request.check_conflicts):
            live = base.live_beside(change)
            check_conflicts(live, change, key_types)
            check_vectors(live, base.index_files, change, table.is_bucketed)
        return change

    return on


def _append_on(table: TableDefinition, change: Change) -> ChangeOn:
    if not table.options.commit_discard_duplicate_files:
        return lambda _: change

    def on(base: CommitBase) -> Change:
        return evolve(change, entries=without_known(change.entries, base.live_beside(change)))

    return on


def _compact_on(change: Change, inline: bool) -> ChangeOn:
    """A writer's own compaction can be lost without harm; one apart, beside many writers, is not held up."""
    if not inline or not forgotten_through(change):
        return lambda _: change

    def on(base: CommitBase) -> Change:
        check_overtaken(base.live(change.partitions.__contains__), change)
        return change

    return on


def _overwrite_on(table: TableDefinition, request: CommitRequest, change: Change) -> ChangeOn:
    dynamic = request.dynamic_overwrite
    if request.partitions is not None:
        meant = PartitionFilter(table.schema.partition_fields, only=request.partitions)
    else:
        meant = partitions_written(change) if dynamic else partitions_of_spec(table, request.overwrite or {})
    meant.check_holds(change)
    postpone = table.options.bucket == POSTPONED
    return lambda base: overwriting(change, base.live(meant), base.index_files, meant, postpone)


def _ignores_empty(table: TableDefinition, request: CommitRequest) -> bool:
    return request.ignore_empty and table.options.ignore_empty_commit is not False


def _operation(request: CommitRequest, change: Change) -> str:
    if request.operation is not None:
        return request.operation
    if request.replaces:
        everything = request.partitions is None and not request.overwrite
        return "TRUNCATE" if change.is_empty and everything else "OVERWRITE"
    return "WRITE"
