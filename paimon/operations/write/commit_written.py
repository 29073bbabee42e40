"""Committing what writers prepared, until reads show it: what every verb that writes rows goes through.

Invariant: where reads skip level 0 (deletion vectors, first-row), a commit is acknowledged only once no row of it lies
there; see `visible_rows`. Elsewhere a lost compaction is reported, and its files are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import (
    CommitOverwritten,
    CommitUncertain,
    CorruptTable,
    InvalidRequest,
    PaimonError,
    Unsupported,
)
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.commit import SafeSnapshot, commit, tell_again
from paimon.operations.commit.history import snapshots_of
from paimon.operations.commit.lineage import lies_astray
from paimon.operations.commit.request import CommitRequest, CommitResult
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot
from paimon.operations.write.route import Address
from paimon.operations.write.visible_rows import (
    HiddenFiles,
    VisibleRows,
    discard_compactions,
    must_show_rows,
    written_level_0,
)
from paimon.ports.engine import Engine


def commit_written(
    engine: Engine, table: TableDefinition, request: CommitRequest, safe: SafeSnapshot | None = None
) -> CommitResult:
    """Commit what writers prepared, and return once reads show it.

    Parameters
    ----------
    safe : SafeSnapshot, optional
        What a committer that lives on has looked at already in strict mode.

    Raises
    ------
    CommitNotVisible
        The rows are committed, but their compaction failed too often.
    CommitConflict, CommitOverwritten, CommitUncertain, InvalidRequest, CorruptTable, Unsupported
        See `commit`.
    """
    if not must_show_rows(table):
        done = commit(engine, table, request, safe)
        if done.lost_compaction is not None and not isinstance(done.lost_compaction, CommitUncertain):
            discard_compactions(engine, table, request.messages, request.commit_user, min(done.snapshot_ids))
        return done

    def plans(published: Snapshot) -> VisibleRows:
        return VisibleRows(engine, table, request, written_level_0(request.messages), published)

    done = commit(engine, table, request, safe, plans)
    if done.already_committed:
        show_rows(engine, table, request)
    return done


def repeat_commit(engine: Engine, table: TableDefinition, request: CommitRequest) -> tuple[str, ...]:
    """Do what may be left to do for a commit that took place before: call its callbacks, and make reads show its rows.

    Returns
    -------
    tuple of str
        What went wrong with callbacks.

    Raises
    ------
    CommitNotVisible
        The rows are committed, but their compaction failed too often.
    """
    show_rows(engine, table, request)
    return tell_again(engine, table, request)


def show_rows(
    engine: Engine, table: TableDefinition, request: CommitRequest, hidden: HiddenFiles | None = None
) -> None:
    """Compact the level-0 files of a commit that took place before, where reads do not show them yet.

    Its process may have died between its two snapshots. What is compacted is published under the batch identifier:
    under that of the commit, identifiers of the user might not rise any more.

    Parameters
    ----------
    hidden : mapping, optional
        The level-0 files that the commit brought; by default they are looked up in its snapshots.

    Raises
    ------
    CommitNotVisible
        The compaction failed too often.
    """
    if not must_show_rows(table):
        return
    hidden = _level_0_of(engine, table, request) if hidden is None else hidden
    if not hidden:
        return
    plans = VisibleRows(engine, table, request, hidden)
    messages: Sequence[CommitMessage] = plans.plan_next((), None)
    while messages:
        try:
            commit(engine, table, CommitRequest(messages, request.commit_user))
            return
        except (CommitOverwritten, InvalidRequest, Unsupported):
            raise
        except PaimonError as lost:
            messages = plans.plan_next(messages, lost)


def _level_0_of(engine: Engine, table: TableDefinition, request: CommitRequest) -> dict[Address, set[str]]:
    """Return the level-0 files that the snapshots of a commit added, by bucket."""
    found: dict[Address, set[str]] = {}
    for snapshot in _written_snapshots(engine, table, request):
        for entry in _delta(engine, table, snapshot):
            if entry.kind is FileKind.ADD and entry.file.level == 0:
                found.setdefault(Address(entry.partition, entry.bucket), set()).add(entry.file.file_name)
    return found


def _delta(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> list[ManifestEntry]:
    try:
        metas = read_manifest_list(engine, table, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(engine, table, meta.file_name)]
    except CorruptTable:
        if find_snapshot(engine, table.paths, snapshot.id) is not None:
            raise
        return []  # it expired while it was read


def _written_snapshots(engine: Engine, table: TableDefinition, request: CommitRequest) -> Iterator[Snapshot]:
    """Yield the snapshots, other than compactions, of a commit; identifiers of a user rise."""
    wanted, batch = request.identifier, request.identifier == BATCH_COMMIT_IDENTIFIER
    its = snapshots_of(engine, table.paths, request.commit_user, batch=batch)
    for snapshot in takewhile(lambda s: batch or s.commit_identifier >= wanted, its):
        is_its_own = snapshot.commit_identifier == wanted and snapshot.commit_kind is not CommitKind.COMPACT
        if is_its_own and not lies_astray(engine, table, snapshot):
            yield snapshot
