"""Publish a snapshot, determine for certain whether it is in the history, and take it back if the table is gone.

Source: our own protocol (docs/decisions); Java's `RenamingSnapshotCommit` checks and then renames.
"""

# A put of snapshot-<n+1> succeeds once. Still, neither "created" nor "exists" decides alone:
#
# - "exists" may be our own file: the storage made it, and its answer was lost. So the file is read and compared.
# - "created" may be too late: the writer was stalled, others published n+1 and later snapshots, and an expiry deleted
#   n and n+1. The put then makes a snapshot that no history contains. It is *detached*:
#
#       history     n-1  n  n+1  n+2  n+3         expiry leaves   n+3
#       stalled     base n, its put creates n+1                   n+1 (detached)  n+3
#
# The rules are pure, in `paimon.domain.commit.publishing`: what is seen after a put gives the next step, and what is
# known of the neighbors gives the place of a snapshot. This module reads what they ask for. A base that still exists
# answers everything, so the usual commit costs one read. Only if the base is gone, or for the first snapshot, the ids
# are listed, and the next snapshot is asked whether it contains our files (`is_descendant`). Only certain facts count;
# otherwise the outcome is UNKNOWN, and nothing is deleted.
#
# A snapshot is acknowledged only if it is durable. If the flush of its directory failed, it is visible, and later
# commits are built on it, but a power loss may take it: NOT_DURABLE. What this call finds without an answer to its own
# put, and what another process published, is flushed before it counts (`is_durable`).
#
# A detached snapshot of a writer that died before it looked stays, and readers pass over it: `is_detached`.
#
# The table itself may be dropped or replaced during a commit. After the put, the first schema is read. If it is not
# that of the opened table, the snapshot is taken back, but only while it is the newest one and no tag or branch has a
# copy of it. Otherwise it stays, and the error names it. Without a commit lock, another commit can build on it during
# the deletion: then it is put back, or that commit, which confirms its base, is published again without it.

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.publishing import Place, Seen, Step, decide_next_step, decide_place, is_built_on
from paimon.domain.errors import (
    CommitUncertain,
    CorruptTable,
    NotFound,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.domain.types.arrow_arrays import make_array, to_numpy
from paimon.operations.metadata.manifests import read_live_columns, read_manifest, read_manifest_list, to_entries
from paimon.operations.metadata.schemas import check_same_table, find_missing_table
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    list_branch_directories,
    read_earliest_hint,
    snapshot_ids,
    tags,
    write_hint,
)
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import shielded
from paimon.ports.files import DeferredFlush
from paimon.ports.snapshots import PublishOutcome

_TRIES = 5
_FIRST_WAIT_MILLIS = 5
_DETACHED_WAIT_MILLIS = 100
_OUTCOMES = {
    Place.IN_HISTORY: PublishOutcome.PUBLISHED,
    Place.DETACHED: PublishOutcome.LOST,
    Place.UNKNOWN: PublishOutcome.UNKNOWN,
}


def publish(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Publish a snapshot, whose id is that of the base plus one, and determine the outcome.

    LOST: another snapshot has its id, or the history continued without it and it was deleted. UNKNOWN: the storage does
    not show the outcome. NOT_DURABLE: it is visible, but a flush failed. After StorageError the snapshot is not
    published and never will be.
    """
    refusals: list[StorageError] = []
    for attempt in range(_TRIES):
        if attempt:
            context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        put = _try_put(context, snapshot, base)
        if put is PublishOutcome.NOT_DURABLE:
            return put
        match _decide(context, snapshot, base, put, refusals):
            case Step.CONFIRM if put is PublishOutcome.PUBLISHED or is_durable(context, [snapshot.id]):
                return _confirm_publication(context, snapshot, base)
            case Step.CONFIRM:
                return PublishOutcome.NOT_DURABLE
            case Step.CHECK_AGAIN:
                return PublishOutcome.LOST
            case Step.GIVE_UP:
                return PublishOutcome.UNKNOWN
    if len(refusals) == _TRIES:
        raise refusals[-1]
    return PublishOutcome.UNKNOWN


def is_durable(context: TableContext, snapshot_ids: Sequence[int]) -> bool:
    """Flush visible snapshots whose put was not confirmed here; return False if that fails. Expired ones need none.

    A directory can be flushed again after an error: a file system with a journal fails from then on, or repeats it.
    """
    files, paths = context.files, [context.paths.snapshot(i) for i in snapshot_ids]
    try:
        if paths and isinstance(files, DeferredFlush):
            files.flush_and_create(paths, {})
    except NotFound:
        return True
    except StorageError:
        return False
    return True


def check_durable(context: TableContext, snapshot: Snapshot) -> None:
    """Raise CommitUncertain if a visible snapshot of another call cannot be flushed; see `is_durable`."""
    if not is_durable(context, [snapshot.id]):
        check_outcome(snapshot, PublishOutcome.NOT_DURABLE)


def check_outcome(snapshot: Snapshot, outcome: PublishOutcome) -> None:
    """Raise CommitUncertain if the outcome is unknown, or the snapshot is not durable."""
    reasons = {
        PublishOutcome.UNKNOWN: f"the storage does not show whether snapshot {snapshot.id} was published",
        PublishOutcome.NOT_DURABLE: f"snapshot {snapshot.id} is visible, but the storage failed to flush it to disk",
    }
    if outcome in reasons:
        raise CommitUncertain(
            snapshot.commit_user,
            snapshot.commit_identifier,
            reasons[outcome],
            snapshot_id=snapshot.id,
            identity=snapshot.identity,
        )


def _decide(
    context: TableContext,
    snapshot: Snapshot,
    base: Snapshot | None,
    put: PublishOutcome | StorageError,
    refusals: list[StorageError],
) -> Step:
    """Return the step after a put; collect refused puts that certainly created no file."""
    if put is PublishOutcome.PUBLISHED:
        return decide_next_step(True, Seen.MINE, True)
    seen = _look_up_snapshot(context, snapshot)
    if isinstance(put, StorageError) and seen is Seen.NOTHING:
        refusals.append(put)
    return decide_next_step(
        False, seen, seen is not Seen.NOTHING or base is None or _look_up_snapshot(context, base) is Seen.MINE
    )


def _try_put(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome | StorageError:
    """Return the outcome of the put, or the StorageError that says that the put created no file."""
    try:
        return context.engine.snapshots.publish(context.paths, snapshot, base)
    except StorageError as refusal:
        return refusal


def _look_up_snapshot(context: TableContext, snapshot: Snapshot) -> Seen:
    """Read the id of a snapshot, and compare the stored snapshot with it."""
    stored = try_read_snapshot(context, snapshot.id)
    if isinstance(stored, Snapshot):
        return Seen.MINE if stored.identity == snapshot.identity else Seen.OTHER
    return Seen.NOTHING if stored is None else Seen.UNREADABLE


def _confirm_publication(context: TableContext, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
    """Return PUBLISHED if the snapshot is in the history, LOST if it was deleted again, else UNKNOWN."""
    stored = _read_with_retries(context, base.id) if base else None
    if isinstance(stored, Snapshot) and base:
        same = stored.identity == base.identity
        return PublishOutcome.PUBLISHED if same else PublishOutcome.UNKNOWN
    try:
        where = find_place(context, snapshot, base)
        if where is Place.DETACHED:  # or expiry deletes several snapshots at once, in any order
            context.engine.clock.sleep_millis(_DETACHED_WAIT_MILLIS)
            where = find_place(context, snapshot, base)
        if where is Place.DETACHED:  # no writer builds on it, but readers may find it
            context.files.delete([context.paths.snapshot(snapshot.id)])
    except (StorageError, CorruptTable, NotFound):
        return PublishOutcome.UNKNOWN
    return _OUTCOMES[where]


def _read_with_retries(context: TableContext, snapshot_id: int) -> Snapshot | PaimonError | None:
    """Read a snapshot, with retries after errors."""
    stored = try_read_snapshot(context, snapshot_id)
    for attempt in range(1, _TRIES):
        if not isinstance(stored, PaimonError):
            break
        context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        stored = try_read_snapshot(context, snapshot_id)
    return stored


def try_read_snapshot(context: TableContext, snapshot_id: int) -> Snapshot | PaimonError | None:
    """Read the snapshot of an id; return None if no file has this id, or the error if the read fails."""
    try:
        return find_snapshot(context, snapshot_id)
    except (StorageError, CorruptTable) as error:
        return error


def delete_newest_snapshot(context: TableContext, newest: int) -> None:
    """Delete the newest snapshot, and first the LATEST hint, which the caller writes again.

    Without a hint readers list. So it names neither a missing snapshot, nor one below a gap in the ids.
    """
    context.files.delete([context.paths.latest_hint])
    context.files.delete([context.paths.snapshot(newest)])


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
    wanted = make_array(sorted({entry.file.file_name for entry in delta}), pa.string())
    named = to_numpy(pc.is_in(live.files.field("_FILE_NAME"), wanted))
    found = {entry.identity for entry in to_entries(live.filter(named))}
    return is_built_on(delta, found, (index_before, snapshot.index_manifest), later.index_manifest)


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


class _Left(Enum):
    """What is left of a snapshot in the directory of the table."""

    NOTHING = "taken back"
    MOVED = "not found: dropped or renamed with its table"
    IN_USE = "still there"


def confirm_same_table(context: TableContext, snapshot: Snapshot) -> None:
    """Check that a published snapshot is in the table that was opened; otherwise take it back.

    Raise TableDropped or TableReplaced if it is not: the commit must not be acknowledged. Raise CommitUncertain if the
    storage does not show it.
    """
    reason = ""
    for attempt in range(_TRIES):
        if attempt:
            context.engine.clock.sleep_millis(_FIRST_WAIT_MILLIS * 2**attempt)
        try:
            check_same_table(context)
        except (TableDropped, TableReplaced) as missing:
            raise _withdraw(context, missing, snapshot.id, snapshot.identity) from None
        except PaimonError as error:
            reason = error.message
        else:
            return
    raise CommitUncertain(
        snapshot.commit_user,
        snapshot.commit_identifier,
        f"snapshot {snapshot.id} is published, but the first schema of the table cannot be read: {reason}",
        snapshot_id=snapshot.id,
        identity=snapshot.identity,
    )


@shielded()  # a stop must not replace the error of a commit that may be published
def explain_failure(context: TableContext, error: PaimonError) -> PaimonError:
    """Return why an attempt failed: the error that says that the table is gone, or the error itself."""
    missing = None if isinstance(error, (TableDropped, TableReplaced)) else find_missing_table(context)
    if missing is None:
        return error
    if isinstance(error, CommitUncertain) and error.snapshot_id is not None:
        return _withdraw(context, missing, error.snapshot_id, error.identity)
    return missing


def _withdraw(
    context: TableContext, missing: TableDropped | TableReplaced, snapshot_id: int, identity: str | None
) -> TableDropped | TableReplaced:
    """Take a snapshot back if possible, and return the error that says what is left of it."""
    try:
        left = _take_back(context, snapshot_id, identity)
    except PaimonError:
        left = _Left.IN_USE
    if left is _Left.NOTHING:
        return missing
    return (TableDropped if left is _Left.MOVED else type(missing))(context.table.location, snapshot_id)


def _take_back(context: TableContext, snapshot_id: int, identity: str | None) -> _Left:
    with context.engine.snapshots.lock(context.paths):
        stored = try_read_snapshot(context, snapshot_id)
        if isinstance(stored, PaimonError):
            return _Left.IN_USE
        if stored is None or stored.identity != identity:
            return _Left.MOVED
        if _is_used(context, stored):
            return _Left.IN_USE
        before = find_snapshot(context, snapshot_id - 1) if snapshot_id > 1 else None
        delete_newest_snapshot(context, snapshot_id)
        if before is not None:
            write_hint(context, context.paths.latest_hint, before.id)
        if find_snapshot(context, snapshot_id + 1) is None:
            return _Left.NOTHING
        # Without a lock, another commit was built on it concurrently; its history must not have a gap.
        context.files.put_if_absent(context.paths.snapshot(snapshot_id), snapshot_to_json(stored))
    return _Left.IN_USE


def _is_used(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether another commit was built on the snapshot, or a tag or another branch has a copy of it."""
    if find_snapshot(context, snapshot.id + 1) is not None:
        return True
    names = {MAIN_BRANCH, *list_branch_directories(context.engine, context.paths)} - {context.table.branch}
    copies = [tag.snapshot for tag in tags(context)]
    copies += [s for n in sorted(names) if (s := find_snapshot(context.at_branch(n), snapshot.id)) is not None]
    return any(copy.is_same(snapshot) for copy in copies)
