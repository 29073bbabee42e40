"""The snapshots that a follower walks through: those that still exist, and before them the long-lived changelogs.

Law: the walk is without gaps: an id that is neither a snapshot nor a changelog ends the call with an error, because
its changes are lost. Source: `SnapshotManager`, `ChangelogManager`, `NextSnapshotFetcher`.
"""

from __future__ import annotations

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    ids_in,
    latest_snapshot,
    stored_snapshot,
)
from paimon.ports.engine import Engine

_PREFIX = "changelog-"


def changelog_ids(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """Ids of all long-lived changelogs, ascending, by listing."""
    return ids_in(engine, paths.changelogs, _PREFIX)


def find_changelog(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    """The long-lived changelog of an expired snapshot; None where its file does not exist."""
    return stored_snapshot(engine, paths.changelog(snapshot_id), snapshot_id)


def history(
    engine: Engine, paths: TablePaths, after: int | None = None, through: int | None = None
) -> tuple[Snapshot, ...]:
    """The snapshots after `after`, which does not count, through `through`, which does; all that can be had by default.

    Raises
    ------
    InvalidRequest
        `through` lies before `after`, or after the latest snapshot.
    NotFound
        A snapshot in between has expired.
    """
    latest = latest_snapshot(engine, paths)
    if latest is None:
        return _nothing(after, through)
    first = first_id(engine, paths) if after is None else after + 1
    last = latest.id if through is None else through
    _check_range(first, last, after, latest.id)
    return tuple(_any(engine, paths, snapshot_id) for snapshot_id in range(first, last + 1))


def first_id(engine: Engine, paths: TablePaths) -> int:
    """The first snapshot whose changes can be had: the earliest, or a long-lived changelog before it."""
    first = earliest_snapshot_id(engine, paths) or 1
    kept = set(changelog_ids(engine, paths))
    while first - 1 in kept:
        first -= 1
    return first


def _check_range(first: int, last: int, after: int | None, latest: int) -> None:
    if last > latest:
        raise InvalidRequest(f"there is no snapshot {last} yet", subject="through", hint=f"the latest is {latest}")
    if first > last + 1 or (after is not None and after < 0):
        raise InvalidRequest(
            f"changes after {after} through {last} make no range", subject="after", hint="after lies before through"
        )


def _nothing(after: int | None, through: int | None) -> tuple[Snapshot, ...]:
    if (after or 0) > 0 or (through or 0) > 0:
        raise InvalidRequest("the table has no snapshot yet", subject="after" if after else "through")
    return ()


def find_any(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    """A snapshot or the long-lived changelog of one, also where it expires into that while we look; None for neither.
    """
    for find in (find_snapshot, find_changelog, find_snapshot):
        found = find(engine, paths, snapshot_id)
        if found is not None:
            return found
    return None


def _any(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot:
    found = find_any(engine, paths, snapshot_id)
    if found is None:
        hint = f"it has expired; changes begin at {first_id(engine, paths)}"
        raise NotFound("snapshot or changelog", str(snapshot_id), hint=hint)
    return found
