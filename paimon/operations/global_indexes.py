"""Build global indexes of tables with data evolution, and drop them.

Invariant: no data file changes. Rows that have an index of the column are not indexed again, so a second call indexes
what was appended since. If another commit changed the rows first, CommitConflict is raised, and no file is left behind.
Source: `BTreeGlobalIndexBuilder`, `CreateGlobalIndexProcedure`, `DropGlobalIndexProcedure`.
"""

# The rows of a partition have ranges of consecutive ids. Each range without an index becomes a task, which reads the
# column and the row ids, sorts them (in memory, or through spilled runs), and writes files of a limited number of rows.
# All files of a range are searched together; their first and last keys differ, so most conditions open one of them:
#
#     row ids    0 ... 999 | 1000 ... 1499         an earlier index covers 0 ... 999
#     range                  1000 ... 1499         files: keys a ... m, keys m ... z

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.columns.buffers import combine_column
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.deletion.row_slice import RowSlice
from paimon.domain.errors import InvalidRequest
from paimon.domain.index.btree_blocks import Numbers
from paimon.domain.index.btree_keys import BtreeKeys
from paimon.domain.index.btree_writer import BtreeWriter
from paimon.domain.maintenance.index_columns import check_index_column, check_index_type, find_index_ids
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.manifest.entries import DataFileMeta, FileKind, GlobalIndex, IndexManifestEntry, to_files
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.prune_by_global_index import BTREE, cover, find_indexes, range_of
from paimon.domain.scan.row_id_groups import first_row_id_of
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.layout import check_numbers
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort_on_failure, abort_on_refusal, delete_prepared
from paimon.operations.compact.compact import find_buckets
from paimon.operations.compact.partition_condition import bind_partition_condition, match_partitions
from paimon.operations.data_files.deletion_vectors import delete_index_files
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.metadata.manifests import index_path, read_index_manifest
from paimon.operations.metadata.schemas import load_schemas, on_same_table, schema_ids
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.read.data_evolution_read import read_data_evolution_files
from paimon.operations.table_context import TableContext

_BUCKET = 0
"""The bucket of global indexes, as in Java."""


@frozen
class GlobalIndexChange:
    """What the creation or the drop of a global index did."""

    # the snapshot of the change; None if there was nothing to do
    snapshot_id: int | None = None
    # the index files that were added or dropped
    files: int = 0
    # the rows that they index
    rows: int = 0


@frozen
class IndexTask:
    """A range of rows of one partition that gets an index: from `first` to `end`, which is not included."""

    split: DataSplit
    column: DataField
    first: int
    end: int
    # the files that have rows of the range
    files: tuple[DataFileMeta, ...] = field(converter=to_files)


@on_same_table
def create_global_index(
    context: TableContext, commit_user: str, column: str, index_type: str = BTREE, where: Predicate | None = None
) -> GlobalIndexChange:
    """Index a column of rows without an index, in `where`; CommitConflict if changed, compacted, expired."""
    check_index_type(index_type)
    check_numbers(context.options)  # a dynamic option is not checked before
    schemas = load_schemas(context, schema_ids(context.engine, context.paths)).values()
    indexed = check_index_column(context.table, column, schemas)
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return GlobalIndexChange()
    with check_unexpired(context, snapshot, "create the index again"):
        tasks = _plan_tasks(context, snapshot, indexed, predicate)
        messages: list[CommitMessage] = []
        with abort_on_failure(context, messages, commit_user, snapshot):
            run, discard = partial(build_index, context.for_tasks(len(tasks))), partial(delete_prepared, context)
            for message in context.engine.executor.map(run, tasks, discard):
                messages.append(message)
                context.engine.observer.progress("building indexes", len(messages), len(tasks))
    return _commit(context, messages, commit_user, snapshot)


@on_same_table
def drop_global_index(
    context: TableContext,
    commit_user: str,
    column: str,
    index_type: str = BTREE,
    where: Predicate | None = None,
    dry_run: bool = False,
) -> GlobalIndexChange:
    """Remove the index files of a column from the table, or those of partitions that `where` selects.

    Indexes of all types can be dropped, also those of a dropped column. Expiry deletes the files.
    `dry_run` only counts them. Raises `CommitConflict` if another commit dropped one of them.
    """
    schemas = load_schemas(context, schema_ids(context.engine, context.paths)).values()
    field_ids = find_index_ids(context.table, column, schemas)
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None or snapshot.index_manifest is None:
        return GlobalIndexChange()
    found = [
        entry
        for entry in read_index_manifest(context, snapshot.index_manifest)
        if entry.global_index is not None and entry.global_index.index_field_id in field_ids
    ]
    entries = [entry for entry in found if entry.index_type == index_type.strip().lower()]
    if found and not entries:
        types = ", ".join(sorted({entry.index_type for entry in found}))
        raise InvalidRequest(f"Column {column!r} has no global index of type {index_type!r}. It has: {types}.")
    if predicate is not None:
        selected = match_partitions(context, [entry.partition for entry in entries], predicate)
        entries = [entry for entry, is_selected in zip(entries, selected.tolist(), strict=True) if is_selected]
    if dry_run:
        return _count(entries, None)
    paths = BucketPaths.of(context.table)
    messages = [
        CommitMessage(
            partition, _BUCKET, -1, paths.directory(partition, _BUCKET),
            compact=CompactIncrement(deleted_index_files=[e for e in entries if e.partition == partition]),
        )
        for partition in dict.fromkeys(entry.partition for entry in entries)
    ]  # fmt: skip
    return _commit(context, messages, commit_user, snapshot)


def _commit(
    context: TableContext, messages: Sequence[CommitMessage], commit_user: str, seen: Snapshot
) -> GlobalIndexChange:
    if not messages:
        return GlobalIndexChange()
    with abort_on_refusal(context, messages, commit_user, seen):
        result = commit(context, CommitRequest(messages, commit_user))
    changed = [e for m in messages for e in (*m.compact.new_index_files, *m.compact.deleted_index_files)]
    return _count(changed, result.snapshot_ids[-1])


def _count(entries: Sequence[IndexManifestEntry], snapshot_id: int | None) -> GlobalIndexChange:
    return GlobalIndexChange(snapshot_id, len(entries), sum(entry.row_count for entry in entries))


def _plan_tasks(
    context: TableContext, snapshot: Snapshot, column: DataField, predicate: Predicate | None
) -> list[IndexTask]:
    """Return the ranges of consecutive row ids without an index, one task for each."""
    known = () if snapshot.index_manifest is None else read_index_manifest(context, snapshot.index_manifest)
    missing = cover(find_indexes(known, [column]).get(column.name, ())).complement()
    paths, tasks = BucketPaths.of(context.table), list[IndexTask]()
    for bucket in find_buckets(context, snapshot, predicate):
        directory = paths.directory(bucket.partition, bucket.bucket)
        split = DataSplit(snapshot.id, bucket.partition, bucket.bucket, bucket.total_buckets, directory, ())
        files = [file for file in bucket.files if file.first_row_id is not None]
        ids = RowIdRanges.of((first_row_id_of(file), first_row_id_of(file) + file.row_count) for file in files)
        for first, end in ids.intersect(missing).bounds.tolist():
            own = [f for f in files if first_row_id_of(f) < end and first < first_row_id_of(f) + f.row_count]
            tasks.append(IndexTask(split, column, first, end, own))
    return tasks


def build_index(context: TableContext, task: IndexTask) -> CommitMessage:
    """Write the index files of a range of rows, and return the message that adds them."""
    limit = context.options.btree_records_per_range
    written: list[IndexManifestEntry] = []
    file: _IndexFile | None = None

    def undo() -> None:
        """Delete the files that were written."""
        if file is not None:
            file.abort()
        delete_index_files(context, written)

    with undo_on_failure(undo):
        for rows in sort_rows(context.engine, _read_rows(context, task), SortOrder("order", (task.column,))):
            while rows.num_rows:
                file = file or _IndexFile(context, task)
                part = rows.slice(0, limit - file.row_count)
                file.add(part)
                rows = rows.slice(part.num_rows)
                if file.row_count >= limit:
                    written.append(file.close())
                    file = None
        if file is not None:
            written.append(file.close())
    split, read = task.split, [f.file_name for f in task.files]
    return CommitMessage(
        split.partition, _BUCKET, split.total_buckets, split.bucket_path,
        compact=CompactIncrement(new_index_files=written, looked_up=read),
    )  # fmt: skip


def _read_rows(context: TableContext, task: IndexTask) -> Iterator[pa.Table]:
    """Yield the stored values of a range with their row ids, relative to the range; deleted rows are included."""
    bucket = Bucket.of(context, evolve(task.split, files=task.files))

    def select(file: DataFileMeta) -> RowSlice | None:
        """Return the part of a file that is in the range."""
        first = first_row_id_of(file)
        part = max(task.first - first, 0), min(task.end - first, file.row_count)
        return RowSlice((part,)) if file.is_main_file and part != (0, file.row_count) else None

    for batch in read_data_evolution_files(bucket, task.files, (task.column, ROW_ID), select):
        yield pa.Table.from_batches([batch])


class _IndexFile:
    """One index file that is written. A state machine: rows are added in order, then it is closed or aborted."""

    def __init__(self, context: TableContext, task: IndexTask) -> None:
        self._task = task
        self._keys = BtreeKeys(task.column.type)
        self._writer = BtreeWriter(self._keys, context.options.btree_block_bytes)
        name = f"{BTREE}-global-index-{context.engine.ids.uuid()}.index"
        index = GlobalIndex(task.first, task.end - 1, task.column.id)
        partition = task.split.partition
        self._entry = IndexManifestEntry(FileKind.ADD, partition, _BUCKET, BTREE, name, 0, 0, global_index=index)
        self._sink = context.files.create(index_path(context.table, self._entry, "index manifest"))

    @property
    def row_count(self) -> int:
        """The rows that were added."""
        return self._writer.row_count

    def add(self, rows: pa.Table) -> None:
        """Add rows, sorted by the column with null first."""
        values = combine_column(rows[self._task.column.name])
        ids: Numbers = np.asarray(combine_column(rows[ROW_ID.name])) - self._task.first
        nulls = values.null_count
        self._writer.add_nulls(ids[:nulls])
        for block in self._writer.add(self._keys.to_sortable(values.slice(nulls)), ids[nulls:]):
            self._sink.write(block)

    def close(self) -> IndexManifestEntry:
        """Write the rest of the file, and return its entry."""
        for block in self._writer.finish():
            self._sink.write(block)
        self._sink.close()
        index = evolve(range_of(self._entry), index_meta=self._writer.bounds.encode())
        size, rows = self._writer.file_size, self._writer.row_count
        return evolve(self._entry, file_size=size, row_count=rows, global_index=index)

    def abort(self) -> None:
        """Leave no file behind."""
        self._sink.abort()
