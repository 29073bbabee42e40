"""Expiring snapshots: the oldest go, and the files that only they had.

Law: a snapshot's file goes before its data, so nobody opens half of one; hints are set before data goes; what a crash
leaves is orphan files, which their cleaner finds. Names of files are used once, and who holds them is asked at the end,
so a stalled expirer that goes on late deletes only what has expired all the same. Numbers of snapshots are used again
after a rollback: in the turn in which their files go one looks whether the snapshot that stays is still the one that
was seen before any of them. (Where nobody takes turns, as on stores, a rollback between that look and the deletes is
not seen.) Source: `ExpireSnapshotsImpl` (which deletes data first, and does not look).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import frozen

from paimon.domain.maintenance.retention.expiry import (
    Reach,
    Retention,
    expired_until,
    keeps_changelogs,
    may_expire,
)
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.maintain.refs.consumers import held_from
from paimon.operations.maintain.retention.holders import Holder, all_branches, all_holders, near_holders
from paimon.operations.maintain.retention.kept_changelogs import keep_changelogs
from paimon.operations.maintain.retention.leavings import of_snapshots, remove
from paimon.operations.read.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    hinted_earliest,
    latest_snapshot,
    snapshot_ids,
)
from paimon.ports.engine import Engine

_AT_ONCE = 50
"""Snapshots whose files go before the data of any of them: as much as a crash leaves to the cleaner of orphans."""


@frozen
class Expired:
    """Ids from `first` up to, not including, `until` are gone; `snapshots` and `files` count what was deleted."""

    first: int
    until: int
    snapshots: int = 0
    files: int = 0


def expire_snapshots(
    engine: Engine,
    table: TableDefinition,
    retention: Retention | None = None,
    everything: bool = False,
    known_latest: int | None = None,
) -> Expired:
    """Expire what the retention (by default that of the table's options) lets go.

    Parameters
    ----------
    everything : bool
        Find the oldest snapshot by listing, and ask every snapshot, tag and changelog that stays whether it needs a
        file; otherwise only the nearest ones, which is enough unless branches were moved about, and cheaper.
    known_latest : int, optional
        A snapshot that was the latest just now, for who knows it.

    Raises
    ------
    InvalidRequest
        The numbers contradict each other.
    CorruptTable, StorageError
        What is kept cannot be read, so nobody knows what it needs; no data file was deleted.
    """
    kept = retention or Retention.of_snapshots(table.options)
    kept.check()
    latest = latest_snapshot(engine, table.paths) if known_latest is None else None
    latest_id = known_latest if latest is None else latest.id
    earliest = _earliest(engine, table, everything)
    if latest_id is None or earliest is None:
        return Expired(1, 1)
    until = _until(engine, table, kept, earliest, latest_id)
    done = Expired(earliest, until)
    again = partial(_staying, engine, table, until) if everything else _nobody
    staying = again() if until > earliest else []
    for first in range(earliest, until, _AT_ONCE):
        part = _expire(engine, table, range(first, min(first + _AT_ONCE, until)), staying, again)
        if part.until == first:
            return Expired(earliest, first, done.snapshots, done.files)
        done = Expired(earliest, until, done.snapshots + part.snapshots, done.files + part.files)
        engine.observer.progress("expiring snapshots", part.until - earliest, until - earliest)
    return done


def _earliest(engine: Engine, table: TableDefinition, by_listing: bool) -> int | None:
    if not by_listing:
        return earliest_snapshot_id(engine, table.paths)
    ids = snapshot_ids(engine, table.paths)
    return ids[0] if ids else None


def _until(engine: Engine, table: TableDefinition, kept: Retention, earliest: int, latest: int) -> int:
    """The first id that stays; consumers are looked for only where something would go without them."""
    reach = may_expire(kept, earliest, latest)
    if reach.last <= earliest:
        return earliest
    if engine.files.status(table.paths.earliest_hint) is None:  # the next one need not list again
        engine.files.replace(table.paths.earliest_hint, str(earliest).encode())
    until = expired_until(reach, kept, _ages(engine, table, reach), engine.clock.now_millis())
    if until <= earliest or table.options.consumer_changelog_only:
        return until
    held = may_expire(kept, earliest, latest, held_from(engine, table.paths))
    return min(until, max(held.last, earliest))


def _ages(engine: Engine, table: TableDefinition, reach: Reach) -> Iterator[tuple[int, int]]:
    for snapshot_id in range(reach.aged, reach.last):
        successor = find_snapshot(engine, table.paths, snapshot_id + 1)
        if successor is not None:
            yield snapshot_id, successor.time_millis


def _expire(
    engine: Engine, table: TableDefinition, ids: range, staying: Sequence[Holder], again: Callable[[], Sequence[Holder]]
) -> Expired:
    stays = _first_after(engine, table, ids.stop)  # must be readable before anything goes
    if stays is None:
        return Expired(ids.start, ids.start)
    gone = [s for i in ids if (s := find_snapshot(engine, table.paths, i)) is not None]
    keeps = keeps_changelogs(table.options)
    if keeps:
        gone = keep_changelogs(engine, table, gone)
    leavings = of_snapshots(engine, table, gone, stays if stays.id == ids.stop else None, keeps)
    if not _forget(engine, table, gone, stays):
        return Expired(ids.start, ids.start)
    _tell_earliest(engine, table, ids.stop)
    holders = [*near_holders(engine, table, ids.start, ids.stop), *staying]
    files = remove(
        engine, table, leavings, holders, lambda: [*near_holders(engine, table, ids.start, ids.stop), *again()]
    )
    return Expired(ids.start, ids.stop, len(gone), files)


def _first_after(engine: Engine, table: TableDefinition, first: int) -> Snapshot | None:
    """The first snapshot that stays, after everything near it that holds files was read."""
    near = near_holders(engine, table, first, first)
    mine = (h.snapshot for h in near if h.path == table.paths.snapshot(h.snapshot.id))
    return min((s for s in mine if s.id >= first), key=lambda s: s.id, default=None)


def _forget(engine: Engine, table: TableDefinition, gone: Sequence[Snapshot], stays: Snapshot) -> bool:
    """Delete the files of snapshots; not if a rollback or another expirer took the one that stays, who were further."""
    with engine.snapshots.turn(table.paths):
        standing = find_snapshot(engine, table.paths, stays.id)
        if standing is None or not standing.is_same(stays):
            return False
        for snapshot in gone:
            engine.files.delete([table.paths.snapshot(snapshot.id)])
    return True


def _tell_earliest(engine: Engine, table: TableDefinition, first: int) -> None:
    """Write the EARLIEST hint, unless others have expired more since this expirer stalled."""
    told = hinted_earliest(engine, table.paths)
    if told is None or told < first:
        engine.files.replace(table.paths.earliest_hint, str(first).encode())


def _nobody() -> list[Holder]:
    return []


def _staying(engine: Engine, table: TableDefinition, until: int) -> list[Holder]:
    """Everything that holds files, but the snapshots that go."""
    holders = all_holders(engine, all_branches(engine, table))
    mine = table.paths.snapshots + "/"
    return [h for h in holders if not (h.path.startswith(mine) and h.snapshot.id < until)]
