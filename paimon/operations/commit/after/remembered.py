"""What this process committed last, and whether it still stands.

Law: looked at by the next commit of the process, for one read at most while nothing is wrong. A snapshot that was
replaced, and whose files no later one holds, is said; what cannot be told is not. Kept in the engine's cache: a process
that starts anew remembers nothing, and asks for its identifiers instead.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from paimon.domain.commit.publishing import overwritten
from paimon.domain.errors import CommitOverwritten, CorruptTable, NotFound, StorageError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.commit.lineage import descends_from
from paimon.operations.commit.request import CommitRequest
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine

_LAST_COMMIT = "last commit"
_FILE_BYTES = 2_000
"""What the memory of one file weighs, roughly."""


@frozen(eq=False)
class LastCommit:
    """The snapshots of one request, each with the index manifest that held before it."""

    request: CommitRequest
    snapshots: tuple[tuple[Snapshot, str | None], ...] = field(factory=tuple)


def remember(
    engine: Engine, table: TableDefinition, request: CommitRequest, snapshot: Snapshot, index_before: str | None
) -> None:
    """Keep what was just published, beside what the same request published before."""
    last = _recalled(engine, table)
    if last is None or last.request is not request:
        last = LastCommit(request)
    kept = evolve(last, snapshots=(*last.snapshots, (snapshot, index_before)))
    files = sum(len(m.data.new_files) + len(m.compact.compact_before) for m in request.messages)
    engine.cache.put(table.paths.snapshots, kept, _FILE_BYTES * (files + 2), _LAST_COMMIT)


def check_still_there(engine: Engine, table: TableDefinition, latest: Snapshot | None) -> None:
    """Say what was overwritten of the last commit; afterwards it is forgotten.

    Raises
    ------
    CommitOverwritten
        Rows of it are not in the table.
    """
    last = _recalled(engine, table)
    if last is None:
        return
    newest = last.snapshots[-1][0]
    if latest is None or latest.id < newest.id:  # rolled back
        forget(engine, table)
        return
    lost = _lost_certainly(engine, table, last, latest)
    if not lost:
        return
    forget(engine, table)
    written = [pair for pair in lost if pair[0].commit_kind is not CommitKind.COMPACT]
    if not written:
        engine.observer.count("commit.compaction_overwritten", len(lost))
        return
    mine, other = written[0]
    error = CommitOverwritten(mine.id, mine.commit_user, mine.commit_identifier, other.commit_user)
    error.request = last.request
    raise error


def _lost_certainly(
    engine: Engine, table: TableDefinition, last: LastCommit, latest: Snapshot
) -> list[tuple[Snapshot, Snapshot]]:
    try:
        return _lost(engine, table, last, latest)
    except (CorruptTable, StorageError, NotFound):  # what matters to the new commit is read there
        return []


def _lost(
    engine: Engine, table: TableDefinition, last: LastCommit, latest: Snapshot
) -> list[tuple[Snapshot, Snapshot]]:
    """Lost snapshots with what stands in their place, oldest first; those below one that stands are part of it."""
    lost: list[tuple[Snapshot, Snapshot]] = []
    for mine, index_before in reversed(last.snapshots):
        standing = latest if latest.id == mine.id else find_snapshot(engine, table.paths, mine.id)
        if standing is not None and standing.is_same(mine):
            break
        following = find_snapshot(engine, table.paths, mine.id + 1) if latest.id > mine.id else None
        held = None if following is None else descends_from(engine, table, following, mine, index_before)
        if standing is not None and overwritten(is_head=latest.id == mine.id, held_by_next=held):
            lost.insert(0, (mine, standing))
    return lost


def _recalled(engine: Engine, table: TableDefinition) -> LastCommit | None:
    found = engine.cache.get(table.paths.snapshots, _LAST_COMMIT)
    return found if isinstance(found, LastCommit) else None


def forget(engine: Engine, table: TableDefinition) -> None:
    """Expect nothing of what was committed before: for whoever takes snapshots away on purpose."""
    engine.cache.drop([table.paths.snapshots])
