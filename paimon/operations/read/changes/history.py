"""The snapshots that a follower walks through: those that still exist, and before them the long-lived changelogs.

Law: the walk is without gaps: an id that is neither a snapshot nor a changelog ends the call with an error, because
its changes are lost. A changelog that was written again after it had expired is none (`is_stray`). Source:
`SnapshotManager`, `ChangelogManager`, `NextSnapshotFetcher`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.paths import TablePaths, join
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    ids_in,
    latest_snapshot,
    read_hint,
    stored_snapshot,
)
from paimon.ports.engine import Engine

_PREFIX = "changelog-"


def changelog_ids(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """Ids of all long-lived changelogs, ascending, by listing; strays aside."""
    ids = changelog_files(engine, paths)
    strays = stray_changelogs(engine, paths, ids)
    return tuple(i for i in ids if i not in strays)


def changelog_files(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """Ids of the files of changelogs, ascending: with those of strays."""
    return ids_in(engine, paths.changelogs, _PREFIX)


def stray_changelogs(engine: Engine, paths: TablePaths, ids: Sequence[int]) -> frozenset[int]:
    """Those of some changelogs that stray, see `is_stray`; mostly one look at the hint tells that none does."""
    first = changelogs_from(engine, paths) if ids else None
    below = [i for i in ids if first is not None and i < first]
    return frozenset(i for i in below if is_stray(engine, paths, i))


def is_stray(engine: Engine, paths: TablePaths, changelog_id: int) -> bool:
    """Whether a changelog below the EARLIEST hint was written again after it had expired.

    An expirer that stalled finds the id free again, where others made that changelog and let it expire meanwhile; if it
    dies before it can look (`keep_changelogs`), its changelog stays, and what it names is gone. A sound one is never
    taken for that: the hint is written by whoever lets changelogs below it expire, before the first of them goes (in
    Java: after the last); whoever writes a new one below it lowers it; and the list is there until the changelog
    is not.
    """
    if engine.files.status(paths.snapshot(changelog_id)) is not None:
        return False
    found = find_changelog(engine, paths, changelog_id)
    return found is not None and lacks_its_list(engine, paths, found)


def lacks_its_list(engine: Engine, paths: TablePaths, changelog: Snapshot) -> bool:
    """Whether the manifest list of a changelog is gone, where it has one of its own (others' may go before them)."""
    name = changelog.changelog_manifest_list
    return name is not None and engine.files.status(paths.manifest(name)) is None


def changelogs_from(engine: Engine, paths: TablePaths) -> int | None:
    """What the EARLIEST hint of changelogs says: those below have expired, or are about to."""
    return read_hint(engine, earliest_changelog_hint(paths))


def earliest_changelog_hint(paths: TablePaths) -> str:
    """The file of that hint."""
    return join(paths.changelogs, "EARLIEST")


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
    for find in (find_snapshot, _sound_changelog, find_snapshot):
        found = find(engine, paths, snapshot_id)
        if found is not None:
            return found
    return None


def _sound_changelog(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    found = find_changelog(engine, paths, snapshot_id)
    return None if found is None or stray_changelogs(engine, paths, [snapshot_id]) else found


def _any(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot:
    found = find_any(engine, paths, snapshot_id)
    if found is None:
        hint = f"it has expired; changes begin at {first_id(engine, paths)}"
        raise NotFound("snapshot or changelog", str(snapshot_id), hint=hint)
    return found
