"""Compact a table of any kind; if its buckets are postponed (`bucket` = -2), move the rows to real buckets first.

Invariant: one COMPACT snapshot removes the postponed files and adds their rows to real buckets, in the order in which
the rows were committed. Rows that are committed during the compaction stay postponed. A partition with real buckets
keeps their number. Memory use stays within the budget.

Source: `PostponeBucketCompactSplitSource`, `BucketFiles`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
from attrs import frozen

from paimon.domain.bucket.postponed import compute_first_buckets, to_bucketed_table
from paimon.domain.commit.increments import as_compaction
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.maintenance.rescale import CommitPosition, sort_postponed_files
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.manifest.entries import DataFileMeta, FileKind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.assemble import BucketFiles
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import commit
from paimon.operations.commit.history import iterate_snapshots
from paimon.operations.commit.prepared_files import abort_on_failure, abort_on_refusal
from paimon.operations.compact.compact import (
    CompactBuckets,
    CompactResult,
    compact,
    find_buckets,
    plan_buckets,
    to_compact_result,
)
from paimon.operations.compact.partition_condition import bind_partition_condition
from paimon.operations.compact.plan_bucket import check_compactable, check_external_paths
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.metadata.manifests import read_delta_list, read_manifest
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter


@frozen
class PartitionWork:
    """What to compact in one partition."""

    # Serialized BinaryRow
    partition: bytes
    # The number of real buckets, now or after the compaction
    total_buckets: int
    # The directory of the postponed bucket
    directory: str
    # The postponed files, oldest first
    files: tuple[DataFileMeta, ...]
    # The real buckets that have files
    buckets: tuple[int, ...]
    # Whether each bucket becomes one sorted run; otherwise the options of the table select the files
    is_full: bool

    @property
    def requested_buckets(self) -> Sequence[int]:
        """The real buckets to compact whether rows move to them or not."""
        return range(self.total_buckets) if self.is_full and self.files else self.buckets


CompactPartitions: TypeAlias = Callable[[TableContext, str, Sequence[PartitionWork]], Iterable[CommitMessage]]
"""Moves the rows of partitions to their buckets, and compacts these: table, commit user, partitions."""


def compact_table(
    context: TableContext,
    commit_user: str,
    full: bool = False,
    where: Predicate | None = None,
    order: SortOrder | None = None,
    run: CompactBuckets | None = None,
) -> CompactResult:
    """Compact a table of any kind once.

    `full` merges each bucket into one sorted run, `where` selects partitions, and `order` sorts their rows. `run`
    compacts the buckets, by default with the executor of the engine.
    """
    if context.options.bucket == POSTPONED:
        return compact_postponed(context, commit_user, full, where)
    return compact(context, commit_user, full, where, order, run)


def plan_table_compaction(
    context: TableContext, full: bool = False, where: Predicate | None = None, order: SortOrder | None = None
) -> CompactResult:
    """Find what a compaction would replace, without a write; a partition's postponed rows are one bucket."""
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return CompactResult()
    with check_unexpired(context, snapshot, "compact again"):
        replaced = [work.replaced for work in plan_buckets(context, snapshot, full, predicate, order)]
        if context.options.bucket == POSTPONED:
            postponed = plan_partitions(context, snapshot, predicate, full)
            replaced += [work.files for work in postponed if work.files]
    files = [file for found in replaced for file in found]
    return CompactResult(buckets=len(replaced), files_before=len(files), rows=sum(f.row_count for f in files))


def compact_postponed(
    context: TableContext,
    commit_user: str,
    full: bool = False,
    where: Predicate | None = None,
    run: CompactPartitions | None = None,
) -> CompactResult:
    """Move the postponed rows to real buckets, and compact the real buckets, in one commit.

    `full` merges each bucket into one sorted run; otherwise the options of the table select the files. `where` selects
    partitions. CommitConflict: another commit replaced the same files, or the snapshot expired during the compaction.
    """
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return CompactResult()
    messages: list[CommitMessage] = []
    with check_unexpired(context, snapshot, "compact again"):
        check_compactable(context, snapshot)
        partitions = plan_partitions(context, snapshot, predicate, full)
        with abort_on_failure(context, messages, commit_user, snapshot):
            messages.extend((run or compact_partitions)(context, commit_user, partitions))
    messages += [_build_removal_message(work) for work in partitions if work.files]
    with abort_on_refusal(context, messages, commit_user, snapshot):
        result = commit(context, CommitRequest(messages, commit_user))
    return to_compact_result(result.snapshot_ids, messages)


def plan_partitions(
    context: TableContext, snapshot: Snapshot, predicate: Predicate | None, full: bool
) -> list[PartitionWork]:
    """Return each partition's work as picklable tasks; InvalidRequest for files of a newer schema."""
    partitions: dict[bytes, list[BucketFiles]] = {}
    for bucket in find_buckets(context, snapshot, predicate):
        partitions.setdefault(bucket.partition, []).append(bucket)
    postponed = {b.partition: b.files for buckets in partitions.values() for b in buckets if b.bucket == POSTPONED}
    for files in postponed.values():
        _check_files(context, files)
    positions = _read_commit_positions(context, snapshot, {f.file_name for fs in postponed.values() for f in fs})
    return [
        _plan_partition(context, buckets, sort_postponed_files(postponed.get(partition, ()), positions), full)
        for partition, buckets in partitions.items()
    ]


def compact_partitions(
    context: TableContext, commit_user: str, partitions: Sequence[PartitionWork]
) -> Iterator[CommitMessage]:
    """Move the postponed rows of partitions to their real buckets, and compact these, one partition after another."""
    for done, work in enumerate(partitions, 1):
        rows = read_postponed_rows(context, work, work.files)
        yield from compact_buckets(context, commit_user, work, work.requested_buckets, rows)
        context.engine.observer.progress("compacting postponed rows", done, len(partitions))


def compact_buckets(
    context: TableContext, commit_user: str, work: PartitionWork, buckets: Iterable[int], rows: Iterable[pa.RecordBatch]
) -> list[CommitMessage]:
    """Write rows, oldest first with `_VALUE_KIND`, to a partition's buckets, and compact `buckets` too."""
    table = to_bucketed_table(context.table, work.total_buckets, write_only=False)
    writer = TableWriter(context.with_table(table), commit_user)
    with undo_on_failure(writer.abort):
        for bucket in buckets:
            writer.compact(work.partition, bucket, work.is_full)
        for batch in rows:
            writer.write(batch.drop_columns([VALUE_KIND.name]), batch[VALUE_KIND.name], are_stored=True)
        prepared = writer.prepare_commit()
    writer.close()
    return [_as_compaction_message(context, message) for message in prepared]


def read_postponed_rows(
    context: TableContext, work: PartitionWork, files: Iterable[DataFileMeta]
) -> Iterator[pa.RecordBatch]:
    """Read postponed files of one partition, in their order: the columns of the table and `_VALUE_KIND`."""
    split = DataSplit(0, work.partition, POSTPONED, POSTPONED, work.directory, work.files)
    bucket = Bucket.of(context, split)
    for file in files:
        yield from read_data_file(bucket, file, (*context.schema.fields, VALUE_KIND))


def _build_removal_message(work: PartitionWork) -> CommitMessage:
    removal = CompactIncrement(compact_before=work.files)
    return CommitMessage(work.partition, POSTPONED, POSTPONED, work.directory, compact=removal)


def _plan_partition(
    context: TableContext, buckets: Sequence[BucketFiles], files: tuple[DataFileMeta, ...], full: bool
) -> PartitionWork:
    """Return the work in a partition."""
    partition = buckets[0].partition
    real = [bucket for bucket in buckets if bucket.bucket >= 0]
    total = (
        real[0].total_buckets
        if real
        else compute_first_buckets(context.options, sum(f.row_count for f in files), sum(f.file_size for f in files))
    )
    directory = BucketPaths.of(context.table).directory(partition, POSTPONED)
    return PartitionWork(partition, total, directory, files, tuple(bucket.bucket for bucket in real), full)


def _check_files(context: TableContext, files: Sequence[DataFileMeta]) -> None:
    check_external_paths(context, files)
    if any(f.schema_id > context.schema.id for f in files):
        raise InvalidRequest(
            f"Table {context.table.table_name!r} has a newer schema than this handle: compaction would lose columns.",
            hint="open the table again",
        )


def _read_commit_positions(context: TableContext, snapshot: Snapshot, names: set[str]) -> Mapping[str, CommitPosition]:
    """Return where files were committed, as far as the snapshots reach back."""
    found: dict[str, CommitPosition] = {}
    left = set(names)
    for step in iterate_snapshots(context):
        if not left:
            break
        if step.id > snapshot.id:
            continue
        try:
            entries = [e for m in read_delta_list(context, step) for e in read_manifest(context, m.file_name)]
        except CorruptTable:  # expired since the list of snapshots was read; older ones expired before
            break
        added = [e.file.file_name for e in entries if e.kind is FileKind.ADD and e.bucket == POSTPONED]
        found |= {name: (step.id, i) for i, name in enumerate(added) if name in left}
        left -= set(added)
    return found


def _as_compaction_message(context: TableContext, message: CommitMessage) -> CommitMessage:
    """Return the message as part of a compaction, and delete the files that its compaction replaced already."""
    increment, dropped = as_compaction(message.data, message.compact)
    if dropped:
        context.engine.files.delete([path for file in dropped for path in file.paths_in(message.bucket_path)])
    return CommitMessage(
        message.partition, message.bucket, message.total_buckets, message.bucket_path, compact=increment
    )
