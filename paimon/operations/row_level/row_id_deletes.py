"""Delete rows of tables with `data-evolution.enabled`: the files stay, and deletion vectors mark the rows.

Invariant: the vector of rows whose columns lie in several files belongs to the oldest of these files. Row ids never
change. Only whole partitions are deleted without deletion vectors: by removing their files.
Source: `TableDeleteByRowId` of pypaimon 2.1.0, `retrieveAnchorFile` of Java 2.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement, RowGroupBase
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.row_id_groups import find_anchor_file
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.row_level import check_deletable
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.system_columns import ROW_ID
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import (
    BucketVectors,
    delete_index_files,
    get_bucket_vectors,
    read_bucket_vectors,
    write_vectors,
)
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.row_id_updates import RowGroup, RowIds, RowIdUpdates
from paimon.operations.row_level.selected_rows import SelectedChange, WrittenChanges
from paimon.operations.table_context import TableContext

Vectors: TypeAlias = Mapping[BucketKey, BucketVectors]


@frozen(eq=False)
class _BucketDeletes:
    """The new vectors of the files of one bucket, by file name, and the groups of rows that were read."""

    split: DataSplit
    changed: dict[str, DeletionVector] = field(factory=dict)
    groups: list[RowGroupBase] = field(factory=list)


def write_row_id_deletes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the vectors of selected rows, whose ids are in memory, or remove whole partitions."""
    if selects_partitions(context, change.predicate):
        return _remove_partitions(context, change)
    check_deletable(context.table)
    updates = RowIdUpdates(context, change.snapshot)
    return WrittenChanges(*_delete_ids(context, updates, _find_ids(context, change)))


def delete_row_ids(context: TableContext, updates: RowIdUpdates, ids: Iterable[int] | RowIds) -> list[CommitMessage]:
    """Write deletion vectors for row ids in any order, deleted or repeated too; one message a bucket."""
    check_deletable(context.table)
    return _delete_ids(context, updates, np.unique(ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)))[
        0
    ]


def selects_partitions(context: TableContext, predicate: Predicate) -> bool:
    """Return whether a predicate depends on partition columns alone, so that it selects whole partitions."""
    names = columns_of(predicate)
    return bool(names) and names <= set(context.schema.partition_keys)


def _find_ids(context: TableContext, change: SelectedChange) -> RowIds:
    """Return the ids of the selected rows, in ascending order."""
    read = ReadPlan((ROW_ID.name,), change.predicate, row_ids=True)
    splits = plan_scan(context, ScanRequest(change.snapshot, change.predicate)).splits
    found = [to_numpy(batch[ROW_ID.name]) for split in splits for batch in read_split(context, split, read)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *found]))


def _delete_ids(context: TableContext, updates: RowIdUpdates, ids: RowIds) -> tuple[list[CommitMessage], int]:
    """Return the messages, and the number of rows."""
    buckets: dict[BucketKey, _BucketDeletes] = {}
    rows = 0
    for group, part in updates.find_groups(ids, also_deleted=True):
        key, before = (group.split.partition, group.split.bucket), updates.read_vector(group)
        vector = before.with_deleted(ids[part] - group.first)
        if vector.cardinality == before.cardinality:
            continue
        rows += vector.cardinality - before.cardinality
        bucket = buckets.setdefault(key, _BucketDeletes(group.split))
        bucket.changed[find_anchor_file(group.files).file_name] = vector
        bucket.groups.append(RowGroupBase(group.first, None, before.cardinality))
    old_vectors = read_bucket_vectors(context, updates.snapshot)
    messages: list[CommitMessage] = []

    def undo() -> None:
        delete_index_files(context, [entry for m in messages for entry in m.data.new_index_files])

    with undo_on_failure(undo):
        for key, bucket in buckets.items():
            change = write_vectors(context, get_bucket_vectors(old_vectors, key), bucket.changed)
            increment = DataIncrement(new_index_files=change.new, deleted_index_files=change.deleted)
            message = _build_message(bucket.split, increment, updates.snapshot_id)
            messages.append(evolve(message, row_groups=bucket.groups))
    return messages, rows


def _remove_partitions(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Remove the files of all partitions for which the predicate is true, with their deletion vectors."""
    splits = plan_scan(context, ScanRequest(change.snapshot, change.predicate)).splits
    removed: dict[BucketKey, list[DataFileMeta]] = {}
    bucket_splits: dict[BucketKey, DataSplit] = {}
    rows = 0
    for split in splits:
        key = split.partition, split.bucket
        bucket_splits[key] = split
        removed.setdefault(key, []).extend(split.files)
        rows += sum(_count_live_rows(group) for group in RowGroup.of_split(split))
    old_vectors: Vectors = read_bucket_vectors(context, change.snapshot)
    messages = []
    for key, files in removed.items():
        index = write_vectors(context, get_bucket_vectors(old_vectors, key), {}, removed={f.file_name for f in files})
        increment = DataIncrement(deleted_files=files, new_index_files=index.new, deleted_index_files=index.deleted)
        messages.append(_build_message(bucket_splits[key], increment, change.snapshot.id))
    return WrittenChanges(messages, rows)


def _count_live_rows(group: RowGroup) -> int:
    deleted = None if group.vector is None else group.vector.range.cardinality
    return group.rows - (deleted or 0)


def _build_message(split: DataSplit, increment: DataIncrement, base: int | None) -> CommitMessage:
    return CommitMessage(
        split.partition, split.bucket, split.total_buckets, split.bucket_path, increment, row_base=base
    )
