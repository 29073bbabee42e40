"""Expire snapshots: delete the oldest, and the files that only they reference.

Invariant: a snapshot file is deleted before its data, so a new reader never opens a half-deleted snapshot. Nothing but
decoupled changelogs is written before a deletion, so that expiry frees a full disk. A crash leaves only orphan files.
File names are never reused, and references are read again at the end. So an expirer that stalls and continues deletes
only what has expired anyway.

Snapshot ids are reused after a rollback. So the expirer checks, under the commit lock and before it deletes snapshot
files, that the oldest snapshot that stays is unchanged. Without a commit lock, as on object stores, a rollback between
this check and the deletion is not detected.

Source: `ExpireSnapshotsImpl`, which deletes data first and has no such check.
"""

# Snapshots 1 to 20 exist, rules and consumers keep those from 8 on, and a tag is on 3. One batch of the expiry:
#
#     1. read        what stays near 1..7: snapshot 8, the tag on 3, the newest snapshot, all other branches. If one of
#                    them cannot be read, the expiry ends here, because it may need any file.
#     2. record      the last commit of each user whose only trace is in 1..7 (`record_expiring_commits`), and the
#                    changelogs of 1..7 if these live longer than snapshots
#     3. find        what 1..7 referenced and 8 may not: files that the deltas of 1 to 8 remove, changelogs, lists
#     4. delete      the snapshot files 1..7, under the commit lock, if snapshot 8 is the one that was read
#     5. read again  the references near 1..7: the tag on 3 is still there, and one on 6 may be new
#     6. delete      the files of step 3 that no reference of step 5 needs
#     7. hint        EARLIEST names 8
#
# The order of 4, 5 and 6 makes it safe against others. A reader that opens snapshot 5 after step 4 gets
# SnapshotExpired; one that opened it before can lose its files in step 6. A tag on 6 that is created before step 5 is
# read there. One that is created later finds no snapshot 6. After a crash between 4 and 6, the files are orphans.
#
# If the disk is full, the record of step 2 can fail for a later snapshot. Then the batch is shortened to the snapshots
# before it, whose deletion frees space for the next attempt.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import field, frozen

from paimon.domain.maintenance.snapshot_expiry import (
    ExpiryRange,
    Retention,
    RetentionReason,
    find_expirable,
    find_first_retained,
    has_decoupled_changelogs,
)
from paimon.domain.report import CardDisplay, Report
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.history import record_expiring_commits
from paimon.operations.expire.decoupled_changelogs import decouple_changelogs
from paimon.operations.expire.files_to_delete import delete_unreferenced_files, find_files_of_snapshots
from paimon.operations.expire.references import Reference, read_all_references, read_branches, read_nearby_references
from paimon.operations.metadata.consumers import earliest_consumer_snapshot
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.metadata.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
    read_earliest_hint,
    snapshot_ids,
    write_hint,
)
from paimon.operations.table_context import TableContext
from paimon.ports.observer import report_event

_BATCH_SNAPSHOTS = 50
"""Snapshot files deleted together, before their data. A crash leaves at most the data of so many as orphan files."""


@frozen
class Expired(CardDisplay):
    """What an expiry deleted, or would delete."""

    # the ids from `first` (inclusive) to `until` (exclusive) are gone
    first: int
    until: int
    # how many snapshots or changelogs were deleted
    snapshots: int = 0
    # how many of their files were deleted
    files: int = 0
    # what retains the other snapshots or changelogs, or files of expired ones
    retained_by: tuple[RetentionReason, ...] = field(default=(), repr=False, eq=False)

    def _report(self) -> Report:
        ids = "none" if self.until <= self.first else f"{self.first} to {self.until - 1} ({self.snapshots:,})"
        facts = {"ids": ids, "files": f"{self.files:,}", "retained by": "\n".join(map(str, self.retained_by))}
        return Report("Expired", facts=facts.items())


def expire_snapshots(
    context: TableContext,
    retention: Retention | None = None,
    everything: bool = False,
    known_latest: int | None = None,
) -> Expired:
    """Expire the oldest snapshots; by default the options of the table define the retention.

    With `everything`, list the snapshots and check all references that stay. Otherwise only the nearest references are
    checked, which is faster, and sufficient unless branches were replaced. The call fails if a reference that stays
    cannot be read, or the last commit of a user cannot be recorded. No data file that stays is deleted then.
    """
    rules = retention or Retention.of_snapshots(context.options)
    rules.check()
    latest = latest_snapshot(context) if known_latest is None else None
    latest_id = known_latest if latest is None else latest.id
    earliest = _find_earliest(context, everything)
    if latest_id is None or earliest is None:
        return Expired(1, 1)
    until = _find_end(context, rules, earliest, latest_id)
    if until > earliest:
        check_same_table(context)
    done = Expired(earliest, until)
    read_staying = partial(_read_staying_references, context, until) if everything else _return_no_references
    staying = read_staying() if until > earliest else []
    first = earliest
    while first < until:
        part = _expire(context, range(first, min(first + _BATCH_SNAPSHOTS, until)), staying, read_staying)
        if part.until == first:
            return Expired(earliest, first, done.snapshots, done.files)
        first = part.until
        done = Expired(earliest, until, done.snapshots + part.snapshots, done.files + part.files)
        context.engine.observer.progress("expiring snapshots", part.until - earliest, until - earliest)
    _write_missing_hint(context, rules, until, latest_id)
    return done


def _find_earliest(context: TableContext, by_listing: bool) -> int | None:
    if not by_listing:
        return earliest_snapshot_id(context)
    ids = snapshot_ids(context)
    return ids[0] if ids else None


def find_expirable_snapshots(context: TableContext, retention: Retention | None = None) -> Expired:
    """Find the snapshots that `expire_snapshots` would delete; nothing is changed, and their files are not counted."""
    rules, ids = retention or Retention.of_snapshots(context.options), snapshot_ids(context)
    rules.check()
    if not ids:
        return Expired(1, 1)
    until = _find_end(context, rules, ids[0], ids[-1])
    return Expired(ids[0], until, sum(snapshot_id < until for snapshot_id in ids))


def _write_missing_hint(context: TableContext, rules: Retention, earliest: int, latest: int) -> None:
    """Write the EARLIEST hint if snapshots may expire and it is missing, so that later expiries need not list them."""
    is_due = find_expirable(rules, earliest, latest).last > earliest
    if is_due and context.files.status(context.paths.earliest_hint) is None:
        write_hint(context, context.paths.earliest_hint, earliest)


def _find_end(context: TableContext, rules: Retention, earliest: int, latest: int) -> int:
    """Return the first id that stays; consumers are read only if a snapshot would expire without them."""
    reach = find_expirable(rules, earliest, latest)
    if reach.last <= earliest:
        return earliest
    until = find_first_retained(reach, rules, read_ages(context, reach), context.engine.clock.now_millis())
    if until <= earliest or context.options.consumer_changelog_only:
        return until
    limited = find_expirable(rules, earliest, latest, earliest_consumer_snapshot(context))
    return min(until, max(limited.last, earliest))


def read_ages(context: TableContext, reach: ExpiryRange) -> Iterator[tuple[int, int]]:
    """Yield (id, commit time of the next snapshot) for the ids whose expiry depends on their age."""
    for snapshot_id in range(reach.aged, reach.last):
        successor = find_snapshot(context, snapshot_id + 1)
        if successor is not None:
            yield snapshot_id, successor.time_millis


def _expire(
    context: TableContext,
    ids: range,
    staying: Sequence[Reference],
    read_staying: Callable[[], Sequence[Reference]],
) -> Expired:
    stays = _find_first_staying(context, ids.stop)  # fails before a deletion if a reference that stays cannot be read
    if stays is None:
        return Expired(ids.start, ids.start)
    expired = [s for i in ids if (s := find_snapshot(context, i)) is not None]
    end = record_expiring_commits(context, expired, ids.stop)
    if end < ids.stop:  # the space of the snapshots before may suffice for the record
        return _expire(context, range(ids.start, end), staying, read_staying)
    keeps = has_decoupled_changelogs(context.options)
    expired, failure = decouple_changelogs(context, expired) if keeps else (expired, None)
    if failure is not None:  # those before it expire, which frees space for the next attempt
        ids = range(ids.start, failure.snapshot_id)
        stays = _find_first_staying(context, ids.stop)
        if stays is None or not ids:
            raise failure
    files_to_delete = find_files_of_snapshots(context, expired, stays if stays.id == ids.stop else None, keeps)
    if not _delete_snapshot_files(context, expired, stays):
        return Expired(ids.start, ids.start)
    references = [*read_nearby_references(context, ids.start, ids.stop), *staying]
    files = delete_unreferenced_files(
        context,
        files_to_delete,
        references,
        lambda: [*read_nearby_references(context, ids.start, ids.stop), *read_staying()],
    )
    _write_earliest_hint(context, ids.stop)
    done = Expired(ids.start, ids.stop, len(expired), files)
    report_expiry(context, "snapshot", done)
    return done


def report_expiry(context: TableContext, kind: str, done: Expired) -> None:
    """Report what expired to the observer; `kind` is ``"snapshot"`` or ``"changelog"``."""
    counts = {"deleted": done.snapshots, "files": done.files, "first": done.first, "last": done.until - 1}
    report_event(context.engine.observer, "expiry", context.table.location, kind=kind, **counts)


def _find_first_staying(context: TableContext, first: int) -> Snapshot | None:
    """Return the first snapshot that stays, after all references near it were read."""
    near = read_nearby_references(context, first, first)
    mine = (h.snapshot for h in near if h.path == context.paths.snapshot(h.snapshot.id))
    return min((s for s in mine if s.id >= first), key=lambda s: s.id, default=None)


def _delete_snapshot_files(context: TableContext, expired: Sequence[Snapshot], stays: Snapshot) -> bool:
    """Delete snapshot files under the lock, unless a rollback or another expirer changed the first to stay."""
    with context.engine.snapshots.lock(context.paths):
        current = find_snapshot(context, stays.id)
        if current is None or not current.is_same(stays):
            return False
        for snapshot in expired:
            context.files.delete([context.paths.snapshot(snapshot.id)])
    return True


def _write_earliest_hint(context: TableContext, first: int) -> None:
    """Write the EARLIEST hint, unless another process has expired more in the meantime."""
    hint = read_earliest_hint(context)
    if hint is None or hint < first:
        write_hint(context, context.paths.earliest_hint, first)


def _return_no_references() -> list[Reference]:
    return []


def _read_staying_references(context: TableContext, until: int) -> list[Reference]:
    """Return all references except the snapshots that expire."""
    references = read_all_references(read_branches(context))
    mine = context.paths.snapshots + "/"
    return [h for h in references if not (h.path.startswith(mine) and h.snapshot.id < until)]
