"""Check that the files of a commit still exist, if they were written long before it.

A removal of orphan files deletes files that no snapshot references for a day. A commit that names such a file would be
acknowledged, and its rows would be lost. Most commits follow their files within seconds, so one question for the oldest
file is enough for them: its time is the storage's, whatever the clocks of the writers show.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from paimon.domain.commit.entries import data_files, file_paths
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitConflict
from paimon.operations.commit.abort import list_prepared_paths
from paimon.operations.metadata.table_identity import check_same_table
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_FRESH_MILLIS = 3_600_000
"""Younger files are not looked for. It is far below a day, because the local clock may differ from the storage's."""


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
