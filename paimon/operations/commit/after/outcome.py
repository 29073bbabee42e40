"""Finding out later what became of a commit, and settling it.

Law: "not committed" is said only on evidence. A commit is made again only where it does not stand, under the same user
and identifier, with the same files, so that of the old try and the new one at most one counts.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.commit.entries import data_files
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.publishing import Fate, Place, Seen, fate_at, fate_of_identifier
from paimon.domain.errors import CommitConflict, CommitOverwritten, CommitUncertain, InvalidRequest, NotFound
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.abort import prepared_paths
from paimon.operations.commit.history import snapshots_of
from paimon.operations.commit.lineage import lies_astray, place_of
from paimon.operations.commit.publish import read_standing
from paimon.operations.commit.request import CommitRequest, CommitResult
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.operations.write.commit_written import commit_written, show_rows
from paimon.operations.write.visible_rows import written_level_0
from paimon.ports.engine import Engine


@frozen
class CommitFate:
    """What became of a commit; `snapshot_ids` are those that it made, oldest first."""

    fate: Fate
    snapshot_ids: tuple[int, ...] = ()

    @property
    def committed(self) -> bool | None:
        """True or False where it is certain, else None."""
        return {Fate.COMMITTED: True, Fate.NOT_COMMITTED: False}.get(self.fate)


def fate_of(
    engine: Engine,
    table: TableDefinition,
    commit_user: str,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    snapshot_id: int | None = None,
    identity: str | None = None,
) -> CommitFate:
    """What became of a commit of this user and identifier; changes nothing.

    Parameters
    ----------
    snapshot_id, identity
        The snapshot that it was to become, and its uuid, as `CommitUncertain` tells them; batch commits of a user that
        makes several cannot be told apart without.

    Raises
    ------
    InvalidRequest
        The user made several batch commits, and the snapshot was not named.
    """
    if snapshot_id is not None and identity is not None:
        fate = _at(engine, table, snapshot_id, identity)
        if fate is not Fate.UNKNOWN:
            return CommitFate(fate, (snapshot_id,) if fate is Fate.COMMITTED else ())
    batch = identifier == BATCH_COMMIT_IDENTIFIER
    made = list(snapshots_of(engine, table.paths, commit_user, batch=batch))
    astray = {s.id for s in made if s.commit_identifier >= identifier and lies_astray(engine, table, s)}
    made = [s for s in made if s.id not in astray]
    its = tuple(sorted(s.id for s in made if s.commit_identifier == identifier))
    if batch and snapshot_id is not None:
        return CommitFate(Fate.UNKNOWN)
    if batch and sum(s.commit_kind is not CommitKind.COMPACT for s in made if s.id in its) > 1:
        hint = "name the snapshot and its uuid, as CommitUncertain tells them"
        raise InvalidRequest(f"user {commit_user!r} made several batch commits", subject="snapshot", hint=hint)
    return CommitFate(fate_of_identifier(identifier, (s.commit_identifier for s in made)), its)


def resolve(engine: Engine, table: TableDefinition, error: CommitUncertain | CommitOverwritten) -> CommitResult:
    """Find out what became of the commit that the error tells of, and make it again unless it stands.

    Returns
    -------
    CommitResult
        With `already_committed` where it took place at the first try.

    Raises
    ------
    CommitUncertain
        Still nobody can tell; nothing was changed.
    NotFound
        It has to be made again, but its files are gone: write the rows again.
    CommitConflict, InvalidRequest
        It cannot be made again: see `commit`.
    StorageError
        The storage refused to make it again; ask again.
    """
    request = error.request
    if not isinstance(request, CommitRequest):
        raise InvalidRequest("the error does not tell what was to be committed", subject="error")
    if isinstance(error, CommitUncertain):
        told = fate_of(engine, table, error.commit_user, error.identifier, error.snapshot_id, error.identity)
        if told.fate is Fate.COMMITTED:
            show_rows(engine, table, request, written_level_0(request.messages))
            return CommitResult(told.snapshot_ids, already_committed=True)
        if told.fate is Fate.UNKNOWN:
            raise error
    messages = [_with_files_there(engine, table, message) for message in request.messages]
    try:
        return commit_written(engine, table, evolve(request, messages=messages, check_conflicts=True))
    except CommitConflict:  # perhaps with itself: made again before, or just landed
        twin = _twin(engine, table, request)
        if twin is None:
            raise
        show_rows(engine, table, request, written_level_0(request.messages))
        return CommitResult((twin.id,), already_committed=True)


def _twin(engine: Engine, table: TableDefinition, request: CommitRequest) -> Snapshot | None:
    """The snapshot that brought the files of the request; files are written once, so their names tell."""
    names = {file.file_name for message in request.messages for file in data_files(message)}
    for snapshot in snapshots_of(engine, table.paths, request.commit_user, batch=True):
        metas = read_manifest_list(engine, table, snapshot.delta_manifest_list)
        added = {e.file.file_name for m in metas for e in read_manifest(engine, table, m.file_name)}
        if names & added:
            return None if lies_astray(engine, table, snapshot) else snapshot
    return None


def _at(engine: Engine, table: TableDefinition, snapshot_id: int, identity: str) -> Fate:
    standing = read_standing(engine, table.paths, snapshot_id)
    if isinstance(standing, Snapshot) and standing.identity == identity:
        base = find_snapshot(engine, table.paths, snapshot_id - 1) if snapshot_id > 1 else None
        where = Place.IN_HISTORY if base is not None else place_of(engine, table, standing, None)
        return fate_at(Seen.MINE, False, where)
    if standing is not None:
        return fate_at(Seen.ANOTHERS if isinstance(standing, Snapshot) else Seen.UNREADABLE, False, Place.UNKNOWN)
    latest = latest_snapshot(engine, table.paths)
    return fate_at(Seen.NOTHING, latest is None or latest.id < snapshot_id, Place.UNKNOWN)


def _with_files_there(engine: Engine, table: TableDefinition, message: CommitMessage) -> CommitMessage:
    """Return what can be committed again: without a compaction whose files were removed, as they are once it is lost.

    Raises
    ------
    NotFound
        A file of rows is gone.
    """
    rows = evolve(message, compact=CompactIncrement())
    for path in prepared_paths(table, [rows]):
        if engine.files.status(path) is None:
            raise NotFound("file", path, hint="it was removed since it was written; write the rows again")
    is_whole = all(engine.files.status(path) is not None for path in prepared_paths(table, [message]))
    return message if is_whole else rows
