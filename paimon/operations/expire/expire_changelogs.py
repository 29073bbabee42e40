"""Expire decoupled changelogs: delete the oldest, and the files that only they reference.

Invariant: as for snapshots, the changelog file is deleted before its data. The newest changelog stays, unless all are
to be deleted. The EARLIEST hint is written before the first deletion, if the storage accepts writes, and never points
below an expired changelog. So it distinguishes an expired id from one that never existed.

Source: `ExpireChangelogImpl`, which writes the hint last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from paimon.domain.maintenance.snapshot_expiry import (
    NOT_REFERENCED,
    ExpiryRange,
    Retention,
    find_expirable,
    find_first_retained,
)
from paimon.domain.paths import join_path
from paimon.operations.expire.expire_snapshots import Expired, report_expiry
from paimon.operations.expire.files_to_delete import delete_unreferenced_files, find_files_of_changelogs
from paimon.operations.expire.references import Reference, read_changelog_references, read_nearby_references
from paimon.operations.metadata.consumers import earliest_consumer_snapshot
from paimon.operations.metadata.snapshots import latest_snapshot, write_hint
from paimon.operations.read.changes.history import (
    earliest_changelog_hint_path,
    find_changelog,
    find_unreferenced_changelogs,
    list_changelog_file_ids,
    list_changelog_ids,
    read_earliest_changelog_hint,
)
from paimon.operations.table_context import TableContext


def expire_changelogs(context: TableContext, retention: Retention | None = None, delete_all: bool = False) -> Expired:
    """Expire decoupled changelogs; an unreadable reference fails the call before it deletes data files."""
    rules = retention or Retention.of_changelogs(context.options)
    rules.check()
    latest, ids = latest_snapshot(context), _list_changelogs(context)
    if latest is None or not ids:
        return Expired(1, 1)
    if delete_all:
        return _expire(context, range(ids[0], ids[-1] + 1), ids[-1] + 1)
    until = find_end(context, rules, ids, latest.id, earliest_consumer_snapshot(context))
    return _expire(context, range(ids[0], until), next(i for i in ids if i >= until))


def find_expirable_changelogs(
    context: TableContext, retention: Retention | None = None, delete_all: bool = False
) -> Expired:
    """Find the changelogs that `expire_changelogs` would delete; nothing is changed, and no file is counted."""
    rules = retention or Retention.of_changelogs(context.options)
    rules.check()
    latest, ids = latest_snapshot(context), list_changelog_ids(context)
    if latest is None or not ids:
        return Expired(1, 1)
    until = ids[-1] + 1
    if not delete_all:
        until = find_end(context, rules, ids, latest.id, earliest_consumer_snapshot(context))
    return Expired(ids[0], until, sum(i < until for i in ids))


def find_end(
    context: TableContext, rules: Retention, ids: Sequence[int], latest_id: int, next_to_read: int = NOT_REFERENCED
) -> int:
    """Return the first id of the changelogs `ids` that stays; `next_to_read` is that of the slowest consumer."""
    reach = find_expirable(rules, ids[0], latest_id, next_to_read)
    reach = evolve(reach, last=min(reach.last, ids[-1]))
    return find_first_retained(reach, rules, _read_ages(context, reach), context.engine.clock.now_millis())


def _read_ages(context: TableContext, reach: ExpiryRange) -> Iterator[tuple[int, int]]:
    for snapshot_id in range(reach.aged, reach.last):
        found = find_changelog(context, snapshot_id)
        if found is not None:
            yield snapshot_id, found.time_millis


def _expire(context: TableContext, ids: range, first_left: int) -> Expired:
    expired = [s for i in ids if (s := find_changelog(context, i)) is not None]
    if not expired:
        return Expired(ids.start, ids.stop)
    read_nearby_references(
        context, ids.stop, ids.stop
    )  # fails before a deletion if a reference that stays cannot be read
    files_to_delete = find_files_of_changelogs(context, expired)
    _write_earliest_hint(context, first_left)
    for snapshot in expired:
        context.files.delete([context.paths.changelog(snapshot.id)])
    if not list_changelog_ids(context):
        context.files.delete([join_path(context.paths.changelogs, "LATEST")])

    def read_references() -> list[Reference]:
        """Return the references that can need the files."""
        return [*read_nearby_references(context, ids.start, ids.stop), *read_changelog_references(context)]

    files = delete_unreferenced_files(context, files_to_delete, read_references(), read_references)
    done = Expired(ids.start, ids.stop, len(expired), files)
    report_expiry(context, "changelog", done)
    return done


def _write_earliest_hint(context: TableContext, first_left: int) -> None:
    """Write the EARLIEST hint, unless another process has expired more in the meantime."""
    hint = read_earliest_changelog_hint(context)
    further = hint is not None and hint > first_left
    if not further or context.files.status(context.paths.changelog(hint or 0)) is None:
        write_hint(context, earliest_changelog_hint_path(context.paths), first_left)


def _list_changelogs(context: TableContext) -> list[int]:
    """Return the ids of all changelogs, after deletion of the unreferenced ones that a crashed process left."""
    ids = list_changelog_file_ids(context)
    unreferenced = find_unreferenced_changelogs(context, ids)
    if unreferenced:
        context.files.delete([context.paths.changelog(i) for i in sorted(unreferenced)])
    return [i for i in ids if i not in unreferenced]
