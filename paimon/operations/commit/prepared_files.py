"""The files that writers prepared: flush them, check that they exist, and delete those that no commit published.

Source: `TableCommitImpl.abort`.
"""

# Between the end of a writer and the commit, the files of a message belong to no snapshot: none names them.
#
#     written   prepared (named by a message)        committed (named by a snapshot)
#        |------------------|------------------------------|
#               abort: the writer failed, or the commit was refused
#
# Abort deletes files of a message only after the table was read, because the commit may have been published although
# it failed for its caller. A commit with its own identifier keeps all its files once a snapshot has this identifier.
# Batch commits share one identifier, so each file that the newest snapshot, or a snapshot of the user, names is kept. A
# caller that saw a snapshot before the files were written does not read older ones.
#
# A removal of orphans deletes files that no snapshot named for a day. A commit that names such a file would be
# acknowledged, and its rows would be lost. Most commits follow their files within seconds, so one question for the
# oldest file is enough for them: its time is the storage's, whatever the clocks of the writers show.
#
# A small commit waits for the disk more than it computes. Where no caller gets the messages before the commit, the
# writer leaves the flush of small files to the commit (`CommitRequest.flushes_files`), and two waits less remain:
#
#     file > its directory > manifests and their directory > snapshot > its directory
#     files, manifests and their directories               > snapshot > its directory

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, takewhile
from operator import itemgetter
from typing import Any, cast

from attrs import define, evolve

from paimon.domain.commit.entries import check_paths, data_files, file_paths, new_extra_paths
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import (
    CommitConflict,
    CommitNotVisible,
    CommitOverwritten,
    CommitUncertain,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.domain.undo import undo_after, undo_on_failure
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import is_committed, iterate_snapshots
from paimon.operations.metadata.manifests import index_path, read_manifest, read_manifest_list
from paimon.operations.metadata.metadata_files import delete_empty_directories, delete_files
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import Stopped
from paimon.ports.engine import Engine
from paimon.ports.files import DeferredFlush, FileIO, ManyFiles, OutputFile

_MOST_DEFERRED = 32
"""How many files one writer leaves to its commit, which flushes them while it has the commit lock."""
_FRESH_MILLIS = 3_600_000
"""Younger files are not looked for. It is far below a day, because the local clock may differ from the storage's."""


def defer_flushes(context: TableContext) -> TableContext:
    """Return the context for a writer whose commit has `flushes_files`; the same one if the storage does not wait."""
    if not (isinstance(context.files, DeferredFlush) and isinstance(context.files, ManyFiles)):
        return context
    files = cast(FileIO, _DeferringFiles(context.files))
    return context.with_engine(evolve(context.engine, files=files))


@define(eq=False)
class _DeferringFiles:
    inner: DeferredFlush
    left: int = _MOST_DEFERRED

    def create(self, path: str) -> OutputFile:
        if self.left <= 0:
            return cast(FileIO, self.inner).create(path)
        self.left -= 1
        return self.inner.create_deferred(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def check_prepared_files(context: TableContext, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages whose files were deleted after they were prepared; each directory of old files is listed once."""
    if not _can_be_old(context, messages):
        return
    names_by_directory: dict[str, list[str]] = {}
    for path in list_prepared_paths(context.table, messages):
        directory, _, name = path.rpartition("/")
        names_by_directory.setdefault(directory, []).append(name)
    listings = context.engine.executor.map(partial(_list_names, context.engine), list(names_by_directory))
    missing = [
        name
        for names, existing in zip(names_by_directory.values(), listings, strict=True)
        for name in names
        if name not in existing
    ]
    if missing:
        check_same_table(context)
        more = f", like {len(missing) - 1} more," if missing[1:] else ""
        raise CommitConflict(
            f"Table {context.table.table_name!r}: file {missing[0]!r} of this commit{more} does not exist any more. "
            "A removal of orphan files deletes files that are not committed within a day",
            files=missing,
            hint="write the rows again",
        )


def _can_be_old(context: TableContext, messages: Sequence[CommitMessage]) -> bool:
    """Return whether some file may have been written more than an hour ago, or does not exist."""
    written = [(time, m, f) for m in messages for f in data_files(m) if (time := f.creation_time_millis) is not None]
    if written:
        created = [time for time, _, _ in written]
        if max(created) - min(created) > _FRESH_MILLIS:
            return True
        _, message, oldest = min(written, key=itemgetter(0))
        return not _is_fresh(context, file_paths(message, oldest)[0])
    if any(data_files(m) for m in messages):
        return False  # all writers that are known record the time
    return any(not _is_fresh(context, path) for path in list_prepared_paths(context.table, messages)[:1])


def _is_fresh(context: TableContext, path: str) -> bool:
    """Return whether the storage wrote a file within the last hour. Where it gives no times, no orphan is removed."""
    status = context.files.status(path)
    if status is None:
        return False
    now, modified = context.engine.clock.now_millis(), status.modified_millis
    return modified is None or abs(now - modified) <= _FRESH_MILLIS


def _list_names(engine: Engine, directory: str) -> set[str]:
    return {status.name for status in engine.files.list(directory)}


def abort(
    context: TableContext,
    messages: Sequence[CommitMessage],
    commit_user: str,
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER,
    is_before: Callable[[Snapshot], bool] | None = None,
) -> tuple[str, ...]:
    """Delete the files of messages that will never be committed; return the deleted paths.

    Do not call this for a commit whose outcome is uncertain: that commit may still be published. `is_before` identifies
    a snapshot older than the files, and ends the search for references. Without it all snapshots are read. A commit
    that was published keeps its files.
    """
    check_paths(messages, context.table.roots)
    try:
        with suppress(TableReplaced):  # the snapshots of the new table do not name these files
            if commit_identifier != BATCH_COMMIT_IDENTIFIER and is_committed(context, commit_user, commit_identifier):
                return ()
        referenced = _referenced_names(context, commit_user, is_before or (lambda _: False))
        is_dropped = False
    except TableDropped:
        referenced, is_dropped = set(), True
    paths_to_delete = list_prepared_paths(context.table, messages, referenced)
    if paths_to_delete:
        delete_files(context.engine, paths_to_delete)
    if is_dropped:  # writers made the directories again, and a rename to this name needs the place
        delete_empty_directories(context.engine, context.table.location)
    return tuple(paths_to_delete)


def list_prepared_paths(
    table: TableDefinition, messages: Sequence[CommitMessage], kept: Collection[str] = ()
) -> list[str]:
    """Return the paths of all files that the writers of these messages created, without the names in `kept`."""
    paths = [
        path
        for message in messages
        for file in data_files(message)
        if file.file_name not in kept
        for path in file_paths(message, file)
    ]
    extra = [path for m in messages for path in new_extra_paths(m) if path.rpartition("/")[2] not in kept]
    new_index = [e for m in messages for e in _new_index_files(m)]
    return paths + extra + [index_path(table, e, "commit message") for e in new_index if e.file_name not in kept]


def delete_prepared(context: TableContext, message: CommitMessage | None) -> None:
    """Delete the files of a message that its caller never got, so that no commit can name them."""
    if message is not None:
        with suppress(StorageError):  # they become orphans; what ended the tasks is raised
            delete_files(context.engine, list_prepared_paths(context.table, [message]))


def is_still_needed(messages: Sequence[CommitMessage], error: PaimonError) -> bool:
    """Return whether the files of messages must be kept after their commit failed with this error.

    They are kept if the commit was or may have been published, and if `resolve_commit` would commit them again.
    """
    if isinstance(error, (CommitUncertain, CommitNotVisible)):
        return True
    if isinstance(error, (TableDropped, TableReplaced)):
        return error.snapshot_id is not None
    if not isinstance(error, CommitOverwritten):
        return False
    if error.published_id is not None or not isinstance(error.request, CommitRequest):
        return error.published_id is not None
    lost = {file.file_name for message in error.request.messages for file in data_files(message)}
    return any(file.file_name in lost for message in messages for file in data_files(message))


@contextmanager
def abort_on_failure(
    context: TableContext, messages: Sequence[CommitMessage], commit_user: str, seen: Snapshot | None
) -> Iterator[None]:
    """Abort the messages if the block, which prepares them, fails for any reason.

    The block may append to `messages`. `seen` is a snapshot that existed before the first of their files was written.
    """
    is_before = None if seen is None else seen.is_same
    with undo_on_failure(lambda: abort(context, messages, commit_user, is_before=is_before)):
        yield


@contextmanager
def abort_on_refusal(
    context: TableContext, messages: Sequence[CommitMessage], commit_user: str, seen: Snapshot | None
) -> Iterator[None]:
    """Abort the messages if the block, which commits them, raises an error of this library, or is stopped before that.

    After an interrupt or a foreign error the files are kept, because the snapshot may still reach the storage. If it
    never does, the files are orphans. `seen` is a snapshot that existed before the first of the files was written.
    """
    try:
        yield
    except (PaimonError, Stopped) as error:
        if isinstance(error, Stopped) or not is_still_needed(messages, error):
            is_before = None if seen is None else seen.is_same
            undo_after(error, lambda: abort(context, messages, commit_user, is_before=is_before))
        raise


def _new_index_files(message: CommitMessage) -> tuple[IndexManifestEntry, ...]:
    return (*message.data.new_index_files, *message.compact.new_index_files)


def _referenced_names(context: TableContext, commit_user: str, is_before: Callable[[Snapshot], bool]) -> set[str]:
    history = iterate_snapshots(context)
    newest = next(history, None)
    if newest is None:
        return set()
    live = CommitBase(context, newest).read_live_files(lambda _: True)
    names = {name for e in live for name in e.file.stored_names} | _index_names(context, newest)
    for snapshot in takewhile(lambda s: not is_before(s), chain([newest], history)):
        if snapshot.commit_user == commit_user:
            names |= _delta_names(context, snapshot) | _index_names(context, snapshot)
    return names


def _index_names(context: TableContext, snapshot: Snapshot) -> set[str]:
    return {e.file_name for e in CommitBase(context, snapshot).index_files}


def _delta_names(context: TableContext, snapshot: Snapshot) -> set[str]:
    lists = [n for n in (snapshot.delta_manifest_list, snapshot.changelog_manifest_list) if n]
    metas = [m for name in lists for m in read_manifest_list(context, name)]
    return {name for m in metas for e in read_manifest(context, m.file_name) for name in e.file.stored_names}
