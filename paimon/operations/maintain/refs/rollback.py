"""Rolling back: an earlier state becomes the latest, and everything after it is forgotten.

Law: the newest goes first, and the hint goes with it, so that after a crash the table stands at one of its states, and
doing it again finishes. The snapshots go in one turn, where turns are taken. Only metadata goes; the data of what was
forgotten are orphans for their cleaner. Source: `RollbackHelper`, `AbstractFileStoreTable.rollbackTo`.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.paths import TablePaths, join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.after.remembered import forget as forget_last_commit
from paimon.operations.read.changes.history import changelog_files, changelogs_from, earliest_changelog_hint
from paimon.operations.read.snapshots import (
    find_snapshot,
    load_snapshot,
    load_tag,
    snapshot_before,
    snapshot_ids,
    tags,
)
from paimon.ports.engine import Engine
from paimon.ports.files import PutOutcome


@frozen
class RolledBack:
    """The snapshot that is the latest now, and what was forgotten."""

    snapshot_id: int
    snapshots: int = 0
    changelogs: int = 0
    tags: tuple[str, ...] = ()


def roll_back(
    engine: Engine,
    table: TableDefinition,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp_millis: int | None = None,
) -> RolledBack:
    """Make one state (exactly one way of naming it is given) the latest.

    Raises
    ------
    NotFound
        There is no such snapshot, and no tag that keeps it.
    """
    target = _target(engine, table, snapshot_id, tag, timestamp_millis)
    _restore(engine, table, target)
    return forget_after(engine, table, target.id)


def forget_after(engine: Engine, table: TableDefinition, snapshot_id: int) -> RolledBack:
    """Remove the snapshots, long-lived changelogs and tags after one snapshot; 0: all of them.

    Raises
    ------
    NotFound
        The snapshot expired meanwhile; what is left stands at a later one.
    """
    paths = table.paths
    forget_last_commit(engine, table)
    with engine.snapshots.turn(paths):  # neither commits nor expiry should see half of it
        later = [i for i in snapshot_ids(engine, paths) if i > snapshot_id]
        for place, newest in reversed(list(enumerate(later))):
            if snapshot_id and engine.files.status(paths.snapshot(snapshot_id)) is None:
                raise NotFound("snapshot", str(snapshot_id), hint="it expired just now")
            _forget_newest(engine, paths, newest, later[place - 1] if place else snapshot_id)
    if not later and snapshot_id:
        engine.files.replace(paths.latest_hint, str(snapshot_id).encode())
    changelogs = forget_changelogs(engine, table, snapshot_id + 1)
    gone = [tag for tag in tags(engine, paths) if tag.snapshot.id > snapshot_id]
    for tag in sorted(gone, key=lambda tag: -tag.snapshot.id):
        engine.files.delete([paths.tag(tag.name)])
    return RolledBack(snapshot_id, len(later), changelogs, tuple(tag.name for tag in gone))


def _forget_newest(engine: Engine, paths: TablePaths, newest: int, before: int) -> None:
    """Remove one snapshot; the hint never names one that is gone, nor one from which newer ones cannot be reached."""
    if before == newest - 1 and before:
        engine.files.replace(paths.latest_hint, str(before).encode())
        engine.files.delete([paths.snapshot(newest)])
    else:  # readers would stop before the gap while the newest still stands behind it
        engine.files.delete([paths.snapshot(newest)])
        engine.files.replace(paths.latest_hint, str(before).encode())


def forget_changelogs(engine: Engine, table: TableDefinition, first: int) -> int:
    """Remove the long-lived changelogs from an id on, newest first; answers how many."""
    ids = changelog_files(engine, table.paths)
    later = [i for i in ids if i >= first]
    hint = join(table.paths.changelogs, "LATEST")
    told = changelogs_from(engine, table.paths)
    if told is not None and told > first:  # ids from there on are used again
        engine.files.replace(earliest_changelog_hint(table.paths), str(min([first, *ids[:1]])).encode())
    if later and len(later) < len(ids):
        engine.files.replace(hint, str(max(i for i in ids if i < first)).encode())
    for newest in reversed(later):
        engine.files.delete([table.paths.changelog(newest)])
    if later and len(later) == len(ids):
        engine.files.delete([hint, earliest_changelog_hint(table.paths)])
    return len(later)


def _target(
    engine: Engine, table: TableDefinition, snapshot_id: int | None, tag: str | None, timestamp_millis: int | None
) -> Snapshot:
    if tag is not None:
        return load_tag(engine, table.paths, tag).snapshot
    if timestamp_millis is not None:
        found = snapshot_before(engine, table.paths, timestamp_millis)
        if found is None:
            raise NotFound("snapshot at or before", str(timestamp_millis), hint="see table.snapshots()")
        return found
    assert snapshot_id is not None
    found = find_snapshot(engine, table.paths, snapshot_id)
    if found is not None:
        return found
    tagged = (t.snapshot for t in tags(engine, table.paths) if t.snapshot.id == snapshot_id)
    return next(tagged, None) or load_snapshot(engine, table.paths, snapshot_id)


def restorable(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> Snapshot:
    """A tagged snapshot as it can stand again: without its changelog, where that expired, because tags keep none."""
    name = snapshot.changelog_manifest_list
    kept = name is None or engine.files.status(table.paths.manifest(name)) is not None
    return snapshot if kept else without_changelog(snapshot)


def without_changelog(snapshot: Snapshot) -> Snapshot:
    """A snapshot that tells its state alone."""
    return evolve(
        snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None, changelog_record_count=None
    )


def _restore(engine: Engine, table: TableDefinition, target: Snapshot) -> None:
    """Give an expired snapshot, which a tag keeps, its file again."""
    standing = find_snapshot(engine, table.paths, target.id)
    if standing is None:
        data = snapshot_to_json(restorable(engine, table, target))
        if engine.files.put_if_absent(table.paths.snapshot(target.id), data) is not PutOutcome.CREATED:
            standing = load_snapshot(engine, table.paths, target.id)
        engine.files.replace(table.paths.earliest_hint, str(target.id).encode())
    if standing is not None and not standing.is_same(target):
        raise CorruptTable(table.paths.snapshot(target.id), "is another snapshot than the tag of its number keeps")
