"""Expiring long-lived changelogs: the oldest go, and the files that only they had.

Law: as for snapshots, the changelog's own file goes first. The newest one stays, unless all are asked to go. The
EARLIEST hint is written before the first of them goes and never lies below one that expired, so that it tells what has
expired from what never was. Source: `ExpireChangelogImpl` (which writes the hint last).
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from paimon.domain.maintenance.retention.expiry import Reach, Retention, expired_until, may_expire
from paimon.domain.paths import join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.refs.consumers import held_from
from paimon.operations.maintain.retention.expire_snapshots import Expired
from paimon.operations.maintain.retention.holders import Holder, changelog_holders, near_holders
from paimon.operations.maintain.retention.leavings import of_changelogs, remove
from paimon.operations.read.changes.history import (
    changelog_files,
    changelog_ids,
    changelogs_from,
    earliest_changelog_hint,
    find_changelog,
    stray_changelogs,
)
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import Engine


def expire_changelogs(
    engine: Engine, table: TableDefinition, retention: Retention | None = None, delete_all: bool = False
) -> Expired:
    """Expire what the retention (by default that of the table's options) lets go; `delete_all`: every one.

    Raises
    ------
    InvalidRequest
        The numbers contradict each other.
    CorruptTable, StorageError
        What is kept cannot be read; no data file was deleted.
    """
    kept = retention or Retention.of_changelogs(table.options)
    kept.check()
    latest, ids = latest_snapshot(engine, table.paths), _without_strays(engine, table)
    if latest is None or not ids:
        return Expired(1, 1)
    if delete_all:
        return _expire(engine, table, range(ids[0], ids[-1] + 1), ids[-1] + 1)
    reach = may_expire(kept, ids[0], latest.id, held_from(engine, table.paths))
    reach = evolve(reach, last=min(reach.last, ids[-1]))
    until = expired_until(reach, kept, _ages(engine, table, reach), engine.clock.now_millis())
    return _expire(engine, table, range(ids[0], until), next(i for i in ids if i >= until))


def _ages(engine: Engine, table: TableDefinition, reach: Reach) -> Iterator[tuple[int, int]]:
    for snapshot_id in range(reach.aged, reach.last):
        found = find_changelog(engine, table.paths, snapshot_id)
        if found is not None:
            yield snapshot_id, found.time_millis


def _expire(engine: Engine, table: TableDefinition, ids: range, first_left: int) -> Expired:
    gone = [s for i in ids if (s := find_changelog(engine, table.paths, i)) is not None]
    if not gone:
        return Expired(ids.start, ids.stop)
    near_holders(engine, table, ids.stop, ids.stop)  # what stays must be readable before anything goes
    leavings = of_changelogs(engine, table, gone)
    _tell_first(engine, table, first_left)
    for snapshot in gone:
        engine.files.delete([table.paths.changelog(snapshot.id)])
    if not changelog_ids(engine, table.paths):
        engine.files.delete([join(table.paths.changelogs, "LATEST")])

    def holders() -> list[Holder]:
        return [*near_holders(engine, table, ids.start, ids.stop), *changelog_holders(engine, table)]

    return Expired(ids.start, ids.stop, len(gone), remove(engine, table, leavings, holders(), holders))


def _tell_first(engine: Engine, table: TableDefinition, first_left: int) -> None:
    """Write the hint, unless somebody else let more expire meanwhile."""
    told = changelogs_from(engine, table.paths)
    further = told is not None and told > first_left
    if not further or engine.files.status(table.paths.changelog(told or 0)) is None:
        engine.files.replace(earliest_changelog_hint(table.paths), str(first_left).encode())


def _without_strays(engine: Engine, table: TableDefinition) -> list[int]:
    """The ids of changelogs, after those are gone that were written again by somebody who died."""
    ids = changelog_files(engine, table.paths)
    strays = stray_changelogs(engine, table.paths, ids)
    if strays:
        engine.files.delete([table.paths.changelog(i) for i in sorted(strays)])
    return [i for i in ids if i not in strays]
