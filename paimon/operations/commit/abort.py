"""Taking back what writers prepared and nobody committed.

Law: a file is deleted only after the table was asked: one with an identifier of its own keeps all files once any
snapshot carries it; for batch identifiers, which snapshots share, each file that a snapshot of the user or the newest
snapshot names is kept. Who saw a snapshot before the files were written need not ask older ones, as long as that one
stands. Source: `TableCommitImpl.abort`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, takewhile

from paimon.domain.commit.entries import check_places, data_files, file_paths
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitNotVisible, CommitOverwritten, CommitUncertain, PaimonError
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import committed, walked_back
from paimon.operations.commit.request import CommitRequest
from paimon.operations.file_deletion import delete_files
from paimon.operations.read.deletion.index_manifest import index_path
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.ports.engine import Engine


def abort(
    engine: Engine,
    table: TableDefinition,
    messages: Sequence[CommitMessage],
    commit_user: str,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    is_before: Callable[[Snapshot], bool] | None = None,
) -> tuple[str, ...]:
    """Delete the files of messages that will never be committed.

    Not for a commit whose outcome is uncertain: that one may still take place.

    Parameters
    ----------
    is_before : callable, optional
        Knows a snapshot before which no other names the files, and which does not either; without it all snapshots
        are read, which takes long where they are many.

    Returns
    -------
    tuple of str
        The paths deleted; none where the commit took place.
    """
    check_places(messages, (table.location, *table.allowed_roots))
    if identifier != BATCH_COMMIT_IDENTIFIER and committed(engine, table, commit_user, identifier):
        return ()
    gone = prepared_paths(table, messages, _held_names(engine, table, commit_user, is_before or (lambda _: False)))
    if gone:
        delete_files(engine, gone)
    return tuple(gone)


def prepared_paths(
    table: TableDefinition, messages: Sequence[CommitMessage], kept: Collection[str] = ()
) -> list[str]:
    """Return the paths of all files that the writers of these messages made, except those of the names in `kept`."""
    paths = [
        path
        for message in messages
        for file in data_files(message)
        if file.file_name not in kept
        for path in file_paths(message, file)
    ]
    new_index = [e for m in messages for e in _new_index_files(m)]
    return paths + [index_path(table, e, "commit message") for e in new_index if e.file_name not in kept]


def is_still_needed(messages: Sequence[CommitMessage], error: PaimonError) -> bool:
    """Return whether the files of messages must stay after their commit failed with this error.

    They must where the commit took place or may have, and where `resolve` would commit them again.
    """
    if isinstance(error, (CommitUncertain, CommitNotVisible)):
        return True
    if not isinstance(error, CommitOverwritten) or not isinstance(error.request, CommitRequest):
        return False
    lost = {file.file_name for message in error.request.messages for file in data_files(message)}
    return any(file.file_name in lost for message in messages for file in data_files(message))


@contextmanager
def aborted_on_failure(
    engine: Engine, table: TableDefinition, messages: Sequence[CommitMessage], commit_user: str, seen: Snapshot
) -> Iterator[None]:
    """Take back the messages, as they stand by then, where preparing them fails inside, however it does.

    `seen` stood before the first of their files was written.
    """
    try:
        yield
    except BaseException:
        abort(engine, table, messages, commit_user, is_before=seen.is_same)
        raise


@contextmanager
def aborted_on_refusal(
    engine: Engine, table: TableDefinition, messages: Sequence[CommitMessage], commit_user: str, seen: Snapshot
) -> Iterator[None]:
    """Take back the messages where committing them inside is refused.

    An interrupt, or an error that is not of this library, may strike while the snapshot is on its way to the storage:
    then the files stay, and are orphans if it never arrives.
    """
    try:
        yield
    except PaimonError as error:
        if not is_still_needed(messages, error):
            abort(engine, table, messages, commit_user, is_before=seen.is_same)
        raise


def _new_index_files(message: CommitMessage) -> tuple[IndexManifestEntry, ...]:
    return (*message.data.new_index_files, *message.compact.new_index_files)


def _held_names(
    engine: Engine, table: TableDefinition, commit_user: str, is_before: Callable[[Snapshot], bool]
) -> set[str]:
    walk = walked_back(engine, table.paths)
    newest = next(walk, None)
    if newest is None:
        return set()
    live = CommitBase(engine, table, newest).live(lambda _: True)
    names = {e.file.file_name for e in live} | _index_names(engine, table, newest)
    for snapshot in takewhile(lambda s: not is_before(s), chain([newest], walk)):
        if snapshot.commit_user == commit_user:
            names |= _delta_names(engine, table, snapshot) | _index_names(engine, table, snapshot)
    return names


def _index_names(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> set[str]:
    return {e.file_name for e in CommitBase(engine, table, snapshot).index_files}


def _delta_names(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> set[str]:
    lists = [n for n in (snapshot.delta_manifest_list, snapshot.changelog_manifest_list) if n]
    metas = [m for name in lists for m in read_manifest_list(engine, table, name)]
    return {e.file.file_name for m in metas for e in read_manifest(engine, table, m.file_name)}
