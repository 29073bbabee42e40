"""List the snapshots that a stream scan reads: existing snapshots, and before them decoupled changelogs.

Invariant: the list has no gaps. An id that is neither a snapshot nor a changelog raises an error, because its changes
are lost. An unreferenced changelog, which was written again after its expiry, does not count. Source:
`SnapshotManager`, `ChangelogManager`, `NextSnapshotFetcher`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.paths import TablePaths, join_path
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
    list_ids,
    read_hint,
    read_snapshot_file,
)
from paimon.operations.table_context import TableContext

_PREFIX = "changelog-"


def list_changelog_ids(context: TableContext) -> tuple[int, ...]:
    """List the ids of all decoupled changelogs, ascending, without unreferenced ones."""
    ids = list_changelog_file_ids(context)
    unreferenced = find_unreferenced_changelogs(context, ids)
    return tuple(i for i in ids if i not in unreferenced)


def list_changelog_file_ids(context: TableContext) -> tuple[int, ...]:
    """List the ids of all changelog files, ascending, including unreferenced ones."""
    return list_ids(context.engine, context.paths.changelogs, _PREFIX)


def find_unreferenced_changelogs(context: TableContext, ids: Sequence[int]) -> frozenset[int]:
    """Find the unreferenced changelogs among these ids. Usually one read of the hint shows that there is none."""
    first = read_earliest_changelog_hint(context) if ids else None
    below = [i for i in ids if first is not None and i < first]
    return frozenset(i for i in below if is_unreferenced(context, i))


def is_unreferenced(context: TableContext, changelog_id: int) -> bool:
    """Return whether a changelog below the EARLIEST hint was written again after its expiry.

    True only if its snapshot and its own manifest list are both deleted. A stalled expiry may find an id free that
    other processes have used: they wrote that changelog and let it expire. If the stalled process dies before its
    check, its changelog remains, but the files that it names are deleted.

    A valid changelog is never unreferenced. An expiry writes the hint before it deletes the first changelog (in Java:
    after the last). A process that writes a new changelog below the hint lowers the hint. The manifest list is deleted
    after the changelog file.
    """
    if context.files.status(context.paths.snapshot(changelog_id)) is not None:
        return False
    found = find_changelog(context, changelog_id)
    return found is not None and is_manifest_list_deleted(context, found)


def is_manifest_list_deleted(context: TableContext, changelog: Snapshot) -> bool:
    """Return whether a changelog's own manifest list is deleted; shared ones may be deleted before it."""
    name = changelog.changelog_manifest_list
    return name is not None and context.files.status(context.paths.manifest(name)) is None


def read_earliest_changelog_hint(context: TableContext) -> int | None:
    """Read the EARLIEST hint of changelogs; lower ids have expired or are about to. None if there is no hint."""
    return read_hint(context.engine, earliest_changelog_hint_path(context.paths))


def earliest_changelog_hint_path(paths: TablePaths) -> str:
    """Return the path of the EARLIEST hint of changelogs."""
    return join_path(paths.changelogs, "EARLIEST")


def find_changelog(context: TableContext, snapshot_id: int) -> Snapshot | None:
    """Read the decoupled changelog of an expired snapshot; None if the file does not exist."""
    return read_snapshot_file(context.engine, context.paths.changelog(snapshot_id), snapshot_id)


def list_history(context: TableContext, after: int | None = None, through: int | None = None) -> tuple[Snapshot, ...]:
    """List snapshots after `after` through `through`, ascending; a changelog represents an expired one."""
    latest = latest_snapshot(context)
    if latest is None:
        return _empty_history(after, through)
    first = find_first_id(context) if after is None else after + 1
    last = latest.id if through is None else through
    _check_range(first, last, after, latest.id)
    return tuple(_load_any(context, snapshot_id) for snapshot_id in range(first, last + 1))


def find_first_id(context: TableContext) -> int:
    """Return the id of the first snapshot whose changes can be read: a snapshot, or a decoupled changelog before it."""
    first = earliest_snapshot_id(context) or 1
    kept = set(list_changelog_ids(context))
    while first - 1 in kept:
        first -= 1
    return first


def _check_range(first: int, last: int, after: int | None, latest: int) -> None:
    if last > latest:
        raise InvalidRequest(f"Snapshot {last} does not exist yet", subject="through", hint=f"the latest is {latest}")
    if first > last + 1 or (after is not None and after < 0):
        raise InvalidRequest(
            f"Changes after {after} through {last} are not a range",
            subject="after",
            hint="'after' must be below 'through'",
        )


def _empty_history(after: int | None, through: int | None) -> tuple[Snapshot, ...]:
    if (after or 0) > 0 or (through or 0) > 0:
        raise InvalidRequest(
            "The table has no snapshot yet, so a range of changes cannot be read",
            subject="after" if after else "through",
            hint="leave out 'after' and 'through', or write to the table first",
        )
    return ()


def find_snapshot_or_changelog(context: TableContext, snapshot_id: int) -> Snapshot | None:
    """Find a snapshot or its decoupled changelog, also if it expires meanwhile; None without either."""
    for find in (find_snapshot, _find_valid_changelog, find_snapshot):
        found = find(context, snapshot_id)
        if found is not None:
            return found
    return None


def _find_valid_changelog(context: TableContext, snapshot_id: int) -> Snapshot | None:
    found = find_changelog(context, snapshot_id)
    return None if found is None or find_unreferenced_changelogs(context, [snapshot_id]) else found


def _load_any(context: TableContext, snapshot_id: int) -> Snapshot:
    found = find_snapshot_or_changelog(context, snapshot_id)
    if found is None:
        hint = f"it has expired; the first available changes are those of {find_first_id(context)}"
        raise NotFound("snapshot or changelog", str(snapshot_id), hint=hint)
    return found
