"""Write the changelogs of snapshots that are about to expire as files of their own (decoupled changelogs).

Invariant: an id without a changelog file is not necessarily new. A process can stall between reading a snapshot and
writing its changelog; other processes may have written and expired that changelog since then. So each write is followed
by a check whether the snapshot still exists. If it does, the changelog is valid. If it does not, the changelog is
deleted only if it has certainly expired before (`_delete_if_expired`).

Source: `ExpireSnapshotsImpl`, which has no such check.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.paths import join_path
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.operations.metadata.metadata_files import check_flushed, flush_found
from paimon.operations.metadata.snapshots import find_snapshot, write_hint
from paimon.operations.read.changes.history import (
    earliest_changelog_hint_path,
    find_changelog,
    is_manifest_list_deleted,
    read_earliest_changelog_hint,
)
from paimon.operations.table_context import TableContext
from paimon.ports.files import PutOutcome

_ATTEMPTS = 5


class ChangelogNotWritten(StorageError):
    """Raised when the changelog of a snapshot cannot be written, so that neither it nor later ones may expire."""

    def __init__(self, snapshot_id: int, cause: StorageError) -> None:
        super().__init__(
            cause.path,
            f"{cause.reason}. Snapshot {snapshot_id} stays, because its changelog cannot be written",
            hint="free some space, or expire without decoupled changelogs: set 'changelog.num-retained.max' to that of "
            "'snapshot.num-retained.max'",
        )
        self.snapshot_id = snapshot_id


def decouple_changelogs(
    context: TableContext, expiring: Sequence[Snapshot]
) -> tuple[list[Snapshot], ChangelogNotWritten | None]:
    """Write the decoupled changelogs of snapshots; a repeated call finds those of the first call.

    Returns the snapshots that still exist and have their changelogs, and the error that stopped the call at the next
    one. Another process has expired the others. Raises `CorruptTable` if a changelog file belongs to another snapshot.
    """
    first = read_earliest_changelog_hint(context) if expiring else None
    kept: list[Snapshot] = []
    failure = None
    for snapshot in expiring:
        try:
            if _write_changelog(context, snapshot):
                kept.append(snapshot)
        except StorageError as error:
            failure = ChangelogNotWritten(snapshot.id, error)
            break
    _write_hints(context, first, kept)
    return kept, failure


def _write_hints(context: TableContext, first: int | None, kept: Sequence[Snapshot]) -> None:
    if kept and first is not None and kept[0].id < first:  # a rollback by Java leaves the hint ahead
        write_hint(context, earliest_changelog_hint_path(context.paths), kept[0].id)
    if kept:
        write_hint(context, join_path(context.paths.changelogs, "LATEST"), kept[-1].id)


def _write_changelog(context: TableContext, snapshot: Snapshot) -> bool:
    """Write one changelog; return whether its snapshot existed after that."""
    path = context.paths.changelog(snapshot.id)
    for _ in range(_ATTEMPTS):
        outcome = context.files.put_if_absent(path, snapshot_to_json(snapshot))
        check_flushed(path, outcome)
        if not _is_unchanged(context, snapshot):  # also after EXISTS: the file may be that of an earlier attempt
            _delete_if_expired(context, snapshot)
            return False
        if outcome is PutOutcome.CREATED:
            return True
        found = find_changelog(context, snapshot.id)
        if found is not None and found.is_same(snapshot):
            with suppress(NotFound):  # another process expired it
                flush_found(context.files, path)
                return True
            continue
        if found is not None:
            raise CorruptTable(
                path,
                "belongs to another snapshot of this id",
                hint="a rollback may have left it: delete the file, and expire again",
            )
    raise StorageError(path, "can be neither created nor found", hint="expire again")


def _is_unchanged(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether the snapshot exists with its changelog; a rollback to a tag restores it without."""
    found = find_snapshot(context, snapshot.id)
    if found is None or not found.is_same(snapshot):
        return False
    return found.changelog_manifest_list == snapshot.changelog_manifest_list


def _delete_if_expired(context: TableContext, snapshot: Snapshot) -> None:
    """Delete the changelog of an expired snapshot if the changelog has expired too.

    Otherwise another expirer may rely on the changelog that this process wrote, and have deleted the snapshot
    because of it. An expired changelog is below the EARLIEST hint, which is written before its file is deleted. Java
    writes the hint afterwards; then the missing manifest list shows the expiry. A crash before this call leaves an
    unreferenced changelog.
    """
    found = find_changelog(context, snapshot.id)
    if found is None or not found.is_same(snapshot):
        return
    first = read_earliest_changelog_hint(context)
    if (first is not None and snapshot.id < first) or is_manifest_list_deleted(context, found):
        context.files.delete([context.paths.changelog(snapshot.id)])
