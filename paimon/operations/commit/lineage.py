"""Decide whether a published snapshot belongs to the history of the table when its base no longer exists.

Invariant: this runs only if the base expired during the commit, or for the first snapshot of a table, so listing is
affordable. Only certain facts count for a later snapshot: a stalled writer whose base expired, and that died before it
checked, leaves a detached snapshot. The rules are in `paimon.domain.commit.publishing`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.publishing import Place, decide_place, is_built_on
from paimon.domain.errors import CorruptTable, NotFound, StorageError
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import read_live_columns, read_manifest, read_manifest_list, to_entries
from paimon.operations.metadata.snapshots import find_snapshot, read_earliest_hint, snapshot_ids
from paimon.operations.table_context import TableContext


def find_place(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> Place:
    """Decide where a published snapshot belongs whose base no longer exists."""
    ids = snapshot_ids(context)
    candidates = (find_snapshot(context, i) for i in ids if i > snapshot.id)
    later = next((candidate for candidate in candidates if candidate is not None), None)
    index_before = base.index_manifest if base else None
    descends = None if later is None else is_descendant(context, later, snapshot, index_before)
    stored = find_snapshot(context, snapshot.id)
    return decide_place(
        descends,
        is_oldest=bool(ids) and ids[0] >= snapshot.id,
        is_newest=bool(ids) and ids[-1] == snapshot.id,
        is_next_adjacent=None if later is None else later.id == snapshot.id + 1,
        still_exists=stored is not None and stored.identity == snapshot.identity,
    )


def is_detached(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether an existing snapshot is certainly detached, because its id was used and expired before.

    The next snapshot was built without it. If there is no next snapshot, the history begins later: the EARLIEST hint is
    written after all earlier snapshots are deleted.
    """
    next_snapshot = find_snapshot(context, snapshot.id + 1)
    if next_snapshot is not None:
        return is_descendant(context, next_snapshot, snapshot, snapshot.index_manifest) is False
    first = read_earliest_hint(context)
    return first is not None and first > snapshot.id


def can_have_been_detached(context: TableContext, base: Snapshot | None) -> bool:
    """Return whether a snapshot that lost against another one may have existed as a detached snapshot for some time.

    This is possible if the history begins after `base` (None: after the first snapshot). It is true, too, if this
    cannot be read.
    """
    if base is not None:
        return find_snapshot(context, base.id) is None
    try:
        first = find_snapshot(context, 1)
        return first is None or is_detached(context, first)
    except (StorageError, CorruptTable, NotFound):
        return True


def find_detached_snapshots(context: TableContext) -> list[Snapshot]:
    """Return the snapshots that are certainly detached, oldest first; in a table without any, one snapshot is read.

    Raise CorruptTable if a manifest list of a snapshot that still exists is missing or damaged.
    """
    found: list[Snapshot] = []
    for snapshot_id in snapshot_ids(context):
        snapshot = find_snapshot(context, snapshot_id)
        if snapshot is None:  # expired since it was listed
            continue
        try:
            if not is_detached(context, snapshot):
                break
        except CorruptTable:
            if find_snapshot(context, snapshot_id) == snapshot:
                raise
            continue  # expired since it was read
        found.append(snapshot)
    return found


def is_descendant(context: TableContext, later: Snapshot, snapshot: Snapshot, index_before: str | None) -> bool | None:
    """Return whether a later snapshot contains the changes of an earlier one; None if the files do not show it.

    `index_before` is the name of the index manifest before the earlier snapshot.
    """
    base_manifests = read_manifest_list(context, later.base_manifest_list)
    added = read_manifest_list(context, snapshot.delta_manifest_list)
    names = {meta.file_name for meta in base_manifests}
    if added and all(meta.file_name in names for meta in added):
        return True
    delta = [entry for meta in added for entry in read_manifest(context, meta.file_name)]
    live = read_live_columns(context, base_manifests)
    wanted = pa.array(sorted({entry.file.file_name for entry in delta}), pa.string())
    named = pc.is_in(live.files.field("_FILE_NAME"), wanted).to_numpy(zero_copy_only=False).astype(bool)
    found = {entry.identity for entry in to_entries(live.filter(named))}
    return is_built_on(delta, found, (index_before, snapshot.index_manifest), later.index_manifest)
