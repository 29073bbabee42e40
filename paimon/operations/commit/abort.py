"""Taking back what writers prepared and nobody committed.

Law: a file is deleted only after the table was asked: one with an identifier of its own keeps all files once any
snapshot carries it; for batch identifiers, which snapshots share, each file that a snapshot of the user or the newest
snapshot names is kept. Source: `TableCommitImpl.abort`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from paimon.domain.commit.entries import check_places, data_files, file_paths
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitUncertain
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import committed, snapshots_of
from paimon.operations.read.deletion.index_manifest import index_path
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import Engine


def abort(
    engine: Engine,
    table: TableDefinition,
    messages: Sequence[CommitMessage],
    commit_user: str,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
) -> tuple[str, ...]:
    """Delete the files of messages that will never be committed.

    Not for a commit whose outcome is uncertain: that one may still take place.

    Returns
    -------
    tuple of str
        The paths deleted; none where the commit took place.
    """
    check_places(messages, (table.location, *table.allowed_roots))
    if identifier != BATCH_COMMIT_IDENTIFIER and committed(engine, table, commit_user, identifier):
        return ()
    kept = _held_names(engine, table, commit_user)
    gone = [
        path
        for message in messages
        for file in data_files(message)
        if file.file_name not in kept
        for path in file_paths(message, file)
    ]
    new_index = [e for m in messages for e in _new_index_files(m)]
    gone += [index_path(table, e, "commit message") for e in new_index if e.file_name not in kept]
    if gone:
        engine.files.delete(gone)
    return tuple(gone)


@contextmanager
def aborted_on_failure(
    engine: Engine, table: TableDefinition, messages: Sequence[CommitMessage], commit_user: str
) -> Iterator[None]:
    """Take back the messages, as they stand by then, where preparing or committing them fails inside."""
    try:
        yield
    except CommitUncertain:
        raise  # the files may be the table's by now
    except BaseException:
        abort(engine, table, messages, commit_user)
        raise


def _new_index_files(message: CommitMessage) -> tuple[IndexManifestEntry, ...]:
    return (*message.data.new_index_files, *message.compact.new_index_files)


def _held_names(engine: Engine, table: TableDefinition, commit_user: str) -> set[str]:
    newest = CommitBase(engine, table, latest_snapshot(engine, table.paths))
    names = {e.file.file_name for e in newest.live(lambda _: True)} | {e.file_name for e in newest.index_files}
    for snapshot in snapshots_of(engine, table.paths, commit_user, batch=True):
        names |= _delta_names(engine, table, snapshot)
        names |= {e.file_name for e in CommitBase(engine, table, snapshot).index_files}
    return names


def _delta_names(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> set[str]:
    lists = [n for n in (snapshot.delta_manifest_list, snapshot.changelog_manifest_list) if n]
    metas = [m for name in lists for m in read_manifest_list(engine, table, name)]
    return {e.file.file_name for m in metas for e in read_manifest(engine, table, m.file_name)}
