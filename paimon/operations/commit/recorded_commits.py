"""Record the last commit of a user before its snapshot expires, so that a repeated commit is still recognized.

A commit with an identifier of its own is recognized by its snapshot. After an expiry there would be no trace of a user
who commits seldom, and a repeated commit would add its rows again. So the expiry of this library copies the last
snapshot of such a user to ``last-commit/``, unless a later snapshot of the user stays.

Invariant: the record is written before the snapshot is deleted, and read after the snapshots were searched. So a commit
is found in one of the two. A record that is newer than a rollback is deleted by it. Other clients neither write nor
delete records: what they expire is not recognized.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.json_text import SNAPSHOT_FILE
from paimon.domain.paths import TablePaths, join_path
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.domain.snapshot.snapshot_json import snapshot_from_json, snapshot_to_json
from paimon.operations.commit.lineage import is_detached
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.table_context import TableContext

_DIRECTORY, _PREFIX = "last-commit", "commit-"


def find_recorded_commit(context: TableContext, commit_user: str) -> Snapshot | None:
    """Return the last expired commit of a user, if it was recorded."""
    path = _record_path(context.paths, commit_user)
    recorded = _read_record(context, path)
    if recorded is not None and recorded.commit_user != commit_user:
        raise CorruptTable(path, f"contains a commit of user {recorded.commit_user!r}")
    return recorded


def record_last_commits(context: TableContext, expiring: Sequence[Snapshot], first_staying: int) -> int:
    """Record the last commits of the users who have none from `first_staying` on.

    Returns the id of the first snapshot that must stay: `first_staying`, or the one whose record cannot be written.
    """
    last = {s.commit_user: s for s in expiring if s.commit_identifier != BATCH_COMMIT_IDENTIFIER}
    snapshot = latest_snapshot(context) if last else None
    while last and snapshot is not None and snapshot.id >= first_staying:
        if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            last.pop(snapshot.commit_user, None)
        snapshot = find_snapshot(context, snapshot.id - 1)
    for snapshot in sorted(last.values(), key=lambda s: s.id):
        if is_detached(context, snapshot):
            continue
        try:
            _write_record(context, snapshot)
        except StorageError as error:
            if snapshot.id > expiring[0].id:
                return snapshot.id
            raise StorageError(
                error.path,
                f"the last commit of user {snapshot.commit_user!r} cannot be recorded, so snapshot {snapshot.id} stays",
                hint="free space or repair the storage, and expire again",
            ) from error
    return first_staying


def delete_records_after(context: TableContext, snapshot_id: int) -> None:
    """Delete the records of commits that a rollback to this snapshot removes; only one to an expired tag has such."""
    for recorded in _read_records(context):
        if recorded.id > snapshot_id:
            context.files.delete([_record_path(context.paths, recorded.commit_user)])


def replace_records(source: TableContext, target: TableContext, first: int) -> None:
    """Copy the records of a branch to another one, which takes over its state from a snapshot on."""
    for recorded in _read_records(target):
        taken = find_snapshot(source, recorded.id) if recorded.id >= first else recorded
        if taken is None or not taken.is_same(recorded):
            target.files.delete([_record_path(target.paths, recorded.commit_user)])
    for recorded in _read_records(source):
        _write_record(target, recorded)


def _read_records(context: TableContext) -> list[Snapshot]:
    directory = join_path(context.paths.metadata_root, _DIRECTORY)
    names = [status.name for status in context.files.list(directory) if status.name.startswith(_PREFIX)]
    records = [_read_record(context, join_path(directory, name)) for name in names]
    return [recorded for recorded in records if recorded is not None]


def _write_record(context: TableContext, snapshot: Snapshot) -> None:
    path = _record_path(context.paths, snapshot.commit_user)
    recorded = _read_record(context, path)
    if recorded is None or recorded.time_millis <= snapshot.time_millis:
        context.files.replace(path, snapshot_to_json(snapshot))


def _read_record(context: TableContext, path: str) -> Snapshot | None:
    try:
        return snapshot_from_json(context.files.read(path, SNAPSHOT_FILE.max_bytes), path)
    except NotFound:
        return None


def _record_path(paths: TablePaths, commit_user: str) -> str:
    digest = hashlib.sha256(commit_user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return join_path(paths.metadata_root, _DIRECTORY, f"{_PREFIX}{digest}")
