"""Whether a snapshot that was put stands in the table's history, where its base can no longer tell.

Law: read only what the decision needs (`paimon.domain.commit.publishing.place`). Asked only where the base was expired
meanwhile, or for a table's first snapshot, so listing is no burden. Of one found later, only what is sure counts:
a writer that stalled while its base expired, and died before it could look again, leaves one behind the history.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.publishing import Place, built_on, place
from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import entries_at, live_columns, read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot, hinted_earliest, snapshot_ids
from paimon.ports.engine import Engine


def place_of(engine: Engine, table: TableDefinition, snapshot: Snapshot, base: Snapshot | None) -> Place:
    """Where a snapshot belongs that was put on `base` (None: the table's first), which has gone since."""
    ids = snapshot_ids(engine, table.paths)
    later = next((s for i in ids if i > snapshot.id and (s := find_snapshot(engine, table.paths, i)) is not None), None)
    index = base.index_manifest if base else None
    descends = None if later is None else descends_from(engine, table, later, snapshot, index)
    standing = find_snapshot(engine, table.paths, snapshot.id)
    return place(
        descends,
        is_oldest=bool(ids) and ids[0] >= snapshot.id,
        is_newest=bool(ids) and ids[-1] == snapshot.id,
        next_stands=None if later is None else later.id == snapshot.id + 1,
        stands=standing is not None and standing.identity == snapshot.identity,
    )


def lies_astray(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> bool:
    """Whether a snapshot that stands is sure to be no part of the history: its id was used before, and had expired.

    The next one was built without it; or there is no next one, and history begins later, as the EARLIEST hint says,
    which is written once everything before has been deleted.
    """
    paths = table.paths
    following = find_snapshot(engine, paths, snapshot.id + 1)
    if following is not None:
        return descends_from(engine, table, following, snapshot, snapshot.index_manifest) is False
    first = hinted_earliest(engine, paths)
    return first is not None and first > snapshot.id


def may_have_stood_astray(engine: Engine, table: TableDefinition, base: Snapshot | None) -> bool:
    """Whether a snapshot that lost its place on `base` (None: the table's first) may have stood there for a while.

    It may where history begins later by now; where that cannot be told, too.
    """
    if base is not None:
        return find_snapshot(engine, table.paths, base.id) is None
    try:
        first = find_snapshot(engine, table.paths, 1)
        return first is None or lies_astray(engine, table, first)
    except (StorageError, CorruptTable, NotFound):
        return True


def stray_snapshots(engine: Engine, table: TableDefinition) -> list[Snapshot]:
    """The snapshots that lie astray, below the history; where nobody died there are none, and one is looked at."""
    found: list[Snapshot] = []
    for snapshot_id in snapshot_ids(engine, table.paths):
        snapshot = find_snapshot(engine, table.paths, snapshot_id)
        if snapshot is None:  # expired since it was listed
            continue
        if not lies_astray(engine, table, snapshot):
            break
        found.append(snapshot)
    return found


def descends_from(
    engine: Engine, table: TableDefinition, later: Snapshot, snapshot: Snapshot, index_before: str | None
) -> bool | None:
    """Whether a later snapshot holds what this one changed; None where its files do not tell."""
    held = read_manifest_list(engine, table, later.base_manifest_list)
    added = read_manifest_list(engine, table, snapshot.delta_manifest_list)
    names = {meta.file_name for meta in held}
    if added and all(meta.file_name in names for meta in added):
        return True
    delta = [entry for meta in added for entry in read_manifest(engine, table, meta.file_name)]
    live = live_columns(engine, table, held)
    wanted = pa.array(sorted({entry.file.file_name for entry in delta}), pa.string())
    named = pc.is_in(live.files.field("_FILE_NAME"), wanted).to_numpy(zero_copy_only=False).astype(bool)
    found = {entry.identity for entry in entries_at(live.where(named))}
    return built_on(delta, found, (index_before, snapshot.index_manifest), later.index_manifest)
