"""Roll a table back: make an earlier state the latest one, and delete all later snapshots and tags.

Invariant: snapshots are deleted from the newest on, together with the LATEST hint, under one commit lock. After a crash
the table is at one of its states, and the same call completes the rollback. Only metadata is deleted; the data files
become orphans.

Source: `RollbackHelper`, `AbstractFileStoreTable.rollbackTo`.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.paths import join_path
from paimon.domain.report import CardDisplay
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.operations.commit.history import delete_records_after, forget_own_commit
from paimon.operations.commit.publish import delete_newest_snapshot
from paimon.operations.metadata.metadata_files import flush_found, put_file
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    load_live_or_tagged,
    load_snapshot,
    load_tag,
    read_hint,
    snapshot_before,
    snapshot_before_watermark,
    snapshot_ids,
    tags,
    write_hint,
)
from paimon.operations.metadata.type_proof import check_restored_values
from paimon.operations.read.changes.history import (
    earliest_changelog_hint_path,
    list_changelog_file_ids,
    read_earliest_changelog_hint,
)
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun


@frozen
class RolledBack(CardDisplay):
    """The result of a rollback."""

    # the snapshot that is the latest now
    snapshot_id: int
    # the number of deleted snapshots
    snapshots: int = 0
    # the number of deleted decoupled changelogs
    changelogs: int = 0
    # the names of the deleted tags
    tags: tuple[str, ...] = ()


@finished_once_begun()
@on_same_table
def roll_back(
    context: TableContext,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp_millis: int | None = None,
    watermark: int | None = None,
) -> RolledBack:
    """Make one state the latest; exactly one of the four parameters selects it.

    `snapshot_id` may be of an expired snapshot that a tag protects; `timestamp_millis` and `watermark` select the last
    snapshot at or before them. Raises `InvalidRequest` if the state has values that the current type of their column
    does not hold.
    """
    target = _find_target(context, snapshot_id, tag, timestamp_millis, watermark)
    check_restored_values(context, target)
    _restore_snapshot(context, target)
    return delete_after(context, target.id)


def delete_after(context: TableContext, snapshot_id: int) -> RolledBack:
    """Delete all after a snapshot, or everything for 0; NotFound if it expired, when a later one is newest."""
    paths = context.paths
    forget_own_commit(context)
    with context.engine.snapshots.lock(paths):  # so that neither commits nor expiry read an intermediate state
        later = [i for i in snapshot_ids(context) if i > snapshot_id]
        for newest in reversed(later):
            if snapshot_id and context.files.status(paths.snapshot(snapshot_id)) is None:
                raise NotFound(
                    "snapshot", str(snapshot_id), hint="it expired during the call; roll back to a later one"
                )
            delete_newest_snapshot(context, newest)
    if snapshot_id:
        write_hint(context, paths.latest_hint, snapshot_id)
    delete_records_after(context, snapshot_id)
    changelogs = delete_changelogs(context, snapshot_id + 1)
    later_tags = [tag for tag in tags(context) if tag.snapshot.id > snapshot_id]
    for tag in sorted(later_tags, key=lambda tag: -tag.snapshot.id):
        context.files.delete([paths.tag(tag.name)])
    return RolledBack(snapshot_id, len(later), changelogs, tuple(tag.name for tag in later_tags))


def delete_changelogs(context: TableContext, first: int) -> int:
    """Delete the decoupled changelogs with an id of at least `first`, newest first, and return their number."""
    ids = list_changelog_file_ids(context)
    later, earlier = [i for i in ids if i >= first], [i for i in ids if i < first]
    latest_hint = join_path(context.paths.changelogs, "LATEST")
    earliest_hint = earliest_changelog_hint_path(context.paths)
    earliest = read_earliest_changelog_hint(context)
    is_ahead = earliest is not None and earliest > first
    # Hints go first, because readers list without one. Below the EARLIEST hint a changelog counts as expired,
    # so a hint above `first` would be wrong for the changelogs that use these ids again.
    if is_ahead:
        context.files.delete([earliest_hint])
    if later:
        context.files.delete([latest_hint])
    for changelog_id in reversed(later):
        context.files.delete([context.paths.changelog(changelog_id)])
    if later and not earlier:
        context.files.delete([earliest_hint])
    elif later:
        write_hint(context, latest_hint, max(earlier))
    if is_ahead and (earlier or not later):
        write_hint(context, earliest_hint, min([first, *earlier]))
    return len(later)


def _find_target(
    context: TableContext, snapshot_id: int | None, tag: str | None, timestamp_millis: int | None, watermark: int | None
) -> Snapshot:
    """Return the snapshot that the parameters of `roll_back` select."""
    if tag is not None:
        return load_tag(context, tag).snapshot
    if timestamp_millis is not None:
        found = snapshot_before(context, timestamp_millis)
        if found is None:
            raise NotFound("snapshot at or before", str(timestamp_millis), hint="list them with table.snapshots()")
        return found
    if watermark is not None:
        found = snapshot_before_watermark(context, watermark)
        if found is None:
            raise NotFound(
                "snapshot with a watermark of at most", str(watermark), hint="list them with table.snapshots()"
            )
        return found
    assert snapshot_id is not None
    return load_live_or_tagged(context, snapshot_id)


def drop_expired_changelog(context: TableContext, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a tag, without its changelog if that has expired: tags do not protect changelogs."""
    name = snapshot.changelog_manifest_list
    is_available = name is None or context.files.status(context.paths.manifest(name)) is not None
    return snapshot if is_available else drop_changelog(snapshot)


def drop_changelog(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without its changelog."""
    return evolve(
        snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None, changelog_record_count=None
    )


def _restore_snapshot(context: TableContext, target: Snapshot) -> None:
    """Write the file of an expired snapshot that a tag protects; complete a call that failed or crashed after that."""
    path = context.paths.snapshot(target.id)
    stored = find_snapshot(context, target.id)
    if stored is None:
        if not put_file(context.files, path, snapshot_to_json(drop_expired_changelog(context, target))):
            stored = load_snapshot(context, target.id)
    else:
        flush_found(context.files, path)
    if stored is not None and not stored.is_same(target):
        raise CorruptTable(path, "contains another snapshot than the tag of this id")
    hint = read_hint(context.engine, context.paths.earliest_hint)
    if hint is not None and hint > target.id:
        write_hint(context, context.paths.earliest_hint, target.id)
