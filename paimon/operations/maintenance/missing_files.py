"""Repair the newest state of a table after files were lost, so that it can be read and written without them.

Invariant: only what certainly does not exist is dropped: a storage that fails ends the call. Each function reports what
is lost, and does nothing else in a dry run. Earlier snapshots and tags keep their faults.

Source: `RemoveUnexistingFilesAction`, `RemoveUnexistingManifestsAction`, `SnapshotManager.repairEarliestSnapshot`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from attrs import frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.next_snapshot import SnapshotContent, Stamp, next_snapshot
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict, InvalidRequest, PaimonWarning
from paimon.domain.manifest.entries import ManifestEntry, ManifestFileMeta
from paimon.domain.markup import format_count
from paimon.domain.partition.row_texts import format_partition_row
from paimon.domain.paths import check_within
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.commit.commit import commit
from paimon.operations.commit.manifest_writer import ManifestWriter
from paimon.operations.commit.publish import check_outcome, publish
from paimon.operations.data_files.deletion_vectors import get_bucket_vectors, read_bucket_vectors, write_vectors
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns, read_live_entries
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot, snapshot_ids, write_hint
from paimon.operations.metadata.snapshots import read_earliest_hint as read_hint
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.snapshots import PublishOutcome

LOST_FILES = pa.schema(
    [("path", pa.string()), ("partition", pa.string()), ("bucket", pa.int32()), ("rows", pa.int64())]
)
_AGAIN = "run the repair again"


@on_same_table
def remove_missing_files(context: TableContext, commit_user: str, dry_run: bool) -> pa.Table:
    """Drop missing data files, and their vectors, from the newest state, and return them with their rows."""
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return LOST_FILES.empty_table()
    with check_unexpired(context, snapshot, _AGAIN):
        live = read_live_entries(context, read_data_manifests(context, snapshot))
    lost = _find_missing(context, live)
    if lost and not dry_run:
        _warn_of_loss(context, sum(e.file.row_count for e in lost), format_count(len(lost), "file"))
        commit(context, CommitRequest(_build_messages(context, snapshot, lost), commit_user))
    fields, source = context.schema.partition_fields, context.paths.snapshot(snapshot.id)
    rows = [
        {
            "path": _path_of(context, entry, source),
            "partition": format_partition_row(entry.partition, fields),
            "bucket": entry.bucket,
            "rows": entry.file.row_count,
        }
        for entry in lost
    ]
    return pa.Table.from_pylist(rows, schema=LOST_FILES)


def _warn_of_loss(context: TableContext, rows: int, of: str) -> None:
    are = "is" if rows == 1 else "are"
    lost = f"{format_count(rows, 'row')} of {of} {are} lost"
    restored = f"without {of}, {format_count(-rows, 'deleted row')} can be read again"
    text = f"Table {context.table.table_name!r}: {lost if rows >= 0 else restored}"
    warnings.warn(text, PaimonWarning, stacklevel=4)


def _path_of(context: TableContext, entry: ManifestEntry, source: str) -> str:
    external = entry.file.external_path
    if external is not None:
        return check_within(external, context.table.roots, source)
    return f"{BucketPaths.of(context.table).directory(entry.partition, entry.bucket)}/{entry.file.file_name}"


def _find_missing(context: TableContext, live: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries whose data file does not exist; each directory is listed once."""
    paths = [_path_of(context, entry, context.paths.snapshots) for entry in live]
    directories = list(dict.fromkeys(path.rpartition("/")[0] for path in paths))
    listed = context.engine.executor.map(partial(_list_names, context.engine), directories)
    names = dict(zip(directories, listed, strict=True))
    suspects = [
        (entry, path)
        for entry, path in zip(live, paths, strict=True)
        if entry.file.file_name not in names[path.rpartition("/")[0]]
    ]
    # A listing may miss a file, so each suspect is looked up.
    return [entry for entry, path in suspects if context.files.status(path) is None]


def _list_names(engine: Engine, directory: str) -> frozenset[str]:
    return frozenset(status.name for status in engine.files.list(directory))


def _build_messages(context: TableContext, snapshot: Snapshot, lost: Sequence[ManifestEntry]) -> list[CommitMessage]:
    """Return the messages that delete the entries, and the deletion vectors of their files."""
    vectors = read_bucket_vectors(context, snapshot)
    groups: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in lost:
        groups.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry)
    messages = []
    for (partition, bucket, total), entries in groups.items():
        files = [e.file for e in entries]
        key = partition, bucket
        found = get_bucket_vectors(vectors, key)
        names = found.files(context.table).keys() & {f.file_name for f in files}
        index = write_vectors(context, found, {}, names) if names else None
        increment = DataIncrement(
            deleted_files=files,
            new_index_files=index.new if index else (),
            deleted_index_files=index.deleted if index else (),
        )
        directory = BucketPaths.of(context.table).directory(partition, bucket)
        messages.append(CommitMessage(partition, bucket, total, directory, increment))
    return messages


@frozen
class RemovedManifests:
    """The manifests that do not exist, the rows that are lost with them, and the snapshot without them."""

    names: tuple[str, ...] = ()
    # by the counts of the snapshot; negative where a lost manifest deleted files, which are live again
    lost_rows: int = 0
    snapshot_id: int | None = None


@on_same_table
def remove_missing_manifests(context: TableContext, commit_user: str, dry_run: bool) -> RemovedManifests:
    """Publish a snapshot without missing manifests; CorruptTable without the list, else CommitConflict."""
    with context.engine.snapshots.lock(context.paths):
        snapshot = latest_snapshot(context)
        if snapshot is None:
            return RemovedManifests()
        with check_unexpired(context, snapshot, _AGAIN):
            manifests = read_data_manifests(context, snapshot)
        lost = [m for m in manifests if context.files.status(context.paths.manifest(m.file_name)) is None]
        present = [m for m in manifests if m not in lost]
        if not lost:
            return RemovedManifests()
        rows = int(read_live_columns(context, present).number("_ROW_COUNT").sum()) if present else 0
        names, lost_rows = tuple(m.file_name for m in lost), (snapshot.total_record_count or 0) - rows
        if dry_run:
            return RemovedManifests(names, lost_rows)
        _warn_of_loss(context, lost_rows, format_count(len(lost), "manifest"))
        published = _publish_manifests(context, commit_user, snapshot, present, lost_rows)
    write_hint(context, context.paths.latest_hint, published.id)
    return RemovedManifests(names, lost_rows, published.id)


def _publish_manifests(
    context: TableContext, commit_user: str, base: Snapshot, manifests: Sequence[ManifestFileMeta], lost_rows: int
) -> Snapshot:
    """Publish a snapshot with these manifests after the base."""
    writer = ManifestWriter(context)
    content = SnapshotContent(
        kind=CommitKind.OVERWRITE,
        base_list=writer.write_manifest_list(manifests),
        delta_list=writer.write_manifest_list(()),
        delta_rows=-lost_rows,
        index_manifest=base.index_manifest,
        properties=base.properties,
        next_row_id=base.next_row_id or 0,
    )
    ids, clock = context.engine.ids, context.engine.clock
    stamp = Stamp(commit_user, BATCH_COMMIT_IDENTIFIER, base.schema_id, ids.uuid(), clock.now_millis())
    snapshot = next_snapshot(base, content, stamp)
    outcome = publish(context, snapshot, base)
    if outcome is PublishOutcome.LOST:
        writer.discard()
        raise CommitConflict("Another commit was published during the repair", hint=_AGAIN)
    check_outcome(snapshot, outcome)
    return snapshot


@frozen
class RepairedEarliestSnapshot:
    """The earliest snapshot before and after the repair."""

    previous: int
    current: int


@on_same_table
def repair_earliest(context: TableContext, snapshot_id: int) -> RepairedEarliestSnapshot:
    """Let the history begin after a gap, at a snapshot from which on all snapshots must exist."""
    ids = snapshot_ids(context)
    if not ids:
        raise InvalidRequest("The table has no snapshot.", subject="snapshot_id", hint="write rows first")
    previous, latest = read_hint(context) or ids[0], ids[-1]
    if not previous <= snapshot_id <= latest:
        raise InvalidRequest(
            f"Snapshot {snapshot_id} is not between the earliest one, {previous}, and the latest one, {latest}.",
            subject="snapshot_id",
            hint="list them with table.snapshots()",
        )
    missing = sorted(set(range(snapshot_id, latest + 1)) - set(ids))
    if missing:
        raise InvalidRequest(
            f"Snapshot {missing[0]} after snapshot {snapshot_id} does not exist.",
            subject="snapshot_id",
            hint=f"begin after the last gap, at snapshot {missing[-1] + 1}",
        )
    if snapshot_id != previous and snapshot_id - 1 in ids:
        raise InvalidRequest(
            f"Snapshot {snapshot_id} does not follow a gap: snapshot {snapshot_id - 1} exists.",
            subject="snapshot_id",
            hint="to delete snapshots, expire them",
        )
    write_hint(context, context.paths.earliest_hint, snapshot_id)
    return RepairedEarliestSnapshot(previous, snapshot_id)
