"""Keeping the changelogs of snapshots that are about to go, as files of their own.

Law: "absent" does not mean "never was". Whoever stalls between reading a snapshot and writing its changelog may find
the id free again, because others made that changelog, deleted the snapshot and let the changelog expire. So after each
write one looks whether the snapshot still stands. It does: then nobody had got so far, and the changelog is sound. It
does not: then it is no longer ours to expire, and the changelog goes if it is sure to have expired before
(`_take_back`). Source: `ExpireSnapshotsImpl` (which does not look).
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import CorruptTable, StorageError
from paimon.domain.paths import join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.changes.history import (
    changelogs_from,
    earliest_changelog_hint,
    find_changelog,
    lacks_its_list,
)
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine
from paimon.ports.files import PutOutcome

_TRIES = 5


def keep_changelogs(engine: Engine, table: TableDefinition, going: Sequence[Snapshot]) -> list[Snapshot]:
    """Write the long-lived changelogs of some snapshots; a second try finds those of the first.

    Answers the snapshots that stand with their changelogs: the others have been expired by somebody else meanwhile.

    Raises
    ------
    CorruptTable
        There is a changelog of another snapshot.
    StorageError
        A changelog can be neither written nor found.
    """
    first = changelogs_from(engine, table.paths) if going else None
    kept = [snapshot for snapshot in going if _keep(engine, table, snapshot)]
    if kept and first is not None and kept[0].id < first:  # a rollback by Java leaves a hint that is ahead
        engine.files.replace(earliest_changelog_hint(table.paths), str(kept[0].id).encode())
    if kept:
        engine.files.replace(join(table.paths.changelogs, "LATEST"), str(kept[-1].id).encode())
    return kept


def _keep(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> bool:
    """Write one changelog; whether its snapshot stood after that."""
    path = table.paths.changelog(snapshot.id)
    for _ in range(_TRIES):
        outcome = engine.files.put_if_absent(path, snapshot_to_json(snapshot))
        if not _stands(engine, table, snapshot):  # whatever the answer: "exists" may be said of our own file
            _take_back(engine, table, snapshot)
            return False
        if outcome is PutOutcome.CREATED:
            return True
        standing = find_changelog(engine, table.paths, snapshot.id)
        if standing is not None and standing.is_same(snapshot):
            return True
        if standing is not None:
            raise CorruptTable(
                path,
                "is not the changelog of the snapshot of its number",
                hint="a rollback may have left it: remove it by hand, and expire again",
            )
    raise StorageError(path, "can be neither created nor found", hint="try again")


def _stands(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> bool:
    """Whether the snapshot is there, and not one that a rollback to a tag brought back without its changelog."""
    standing = find_snapshot(engine, table.paths, snapshot.id)
    if standing is None or not standing.is_same(snapshot):
        return False
    return standing.changelog_manifest_list == snapshot.changelog_manifest_list


def _take_back(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> None:
    """Remove the changelog of a snapshot that is gone, where that changelog has expired too.

    Not otherwise: another expirer may have found the one that we wrote, and deleted the snapshot because of it. Where
    it has expired the EARLIEST hint lies above, which was written before its file went; or, where the hint tells less
    (Java writes it afterwards), its list is gone. Who dies before this leaves a stray, see `is_stray`.
    """
    found = find_changelog(engine, table.paths, snapshot.id)
    if found is None or not found.is_same(snapshot):
        return
    first = changelogs_from(engine, table.paths)
    if (first is not None and snapshot.id < first) or lacks_its_list(engine, table.paths, found):
        engine.files.delete([table.paths.changelog(snapshot.id)])
