"""Delete, upsert and merge rows of tables with `data-evolution.enabled`, whose row ids never change.

Deletes mark rows by deletion vectors, and the files stay. The vector of rows whose columns lie in several files belongs
to the oldest of these files. Only whole partitions are deleted without deletion vectors: by removing their files.

A MERGE writes new files of the columns that are set: each group of rows once, with all columns that any clause sets.
Memory holds one part of the source, and the changed rows of one group.

Invariant: a key of an upsert only matches rows of its own partition. Nulls in keys are equal. Of several given rows
with one key the last one counts, and all rows of the table with this key are updated.
Source: `TableDeleteByRowId` of pypaimon 2.1.0, `retrieveAnchorFile` of Java 2.x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction, is_of_target, to_plain_name
from paimon.domain.assignment.merge_columnar import Mask
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.commit.message import CommitMessage, DataIncrement, RowGroupBase
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.row_id_groups import find_anchor_file
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.row_level import check_deletable
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataField
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
from paimon.operations.read.projection import select_fields
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.merge_changes import compute_insert_rows, group_by_clause, list_match_columns
from paimon.operations.row_level.merge_match import MergeMatcher, list_target_columns
from paimon.operations.row_level.row_id_updates import RowGroup, RowIds, RowIdUpdates
from paimon.operations.row_level.selected_rows import SelectedChange, WrittenChanges, open_append_writer
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import open_files, to_arrow_tables
from paimon.operations.write.writer import TableWriter

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


_Numbers = npt.NDArray[np.int64]
_MATCHED_ROWS = 4_000_000
"""How many rows of the table are compared with the source at once."""


def upsert_by_keys(
    context: TableContext,
    commit_user: str,
    data: Any,
    keys: Sequence[str],
    columns: Sequence[str] | None,
    updates: RowIdUpdates,
) -> list[CommitMessage]:
    """Write the files of an upsert: the updates, and the new rows.

    The data has any form that `Table.write` takes. `keys` identify a row together with the partition columns. `columns`
    are set in rows of the table; None sets all columns of the data.
    """
    schema = context.schema
    tables = list(to_arrow_tables(open_files(context.engine, data), schema.fields))
    given = pa.concat_tables(tables, promote_options="default") if tables else pa.table({})
    match_by = _find_keys(context, keys, given.column_names)
    if not given.num_rows:
        return []
    wanted = list(dict.fromkeys(given.column_names if columns is None else columns))
    key_names = [field.name for field in match_by]
    source_keys = conform_to_fields(given.select(key_names), match_by, f"the keys of table {context.table.table_name}")
    ids, matched = _match_keys(updates, match_by, source_keys)
    messages: list[CommitMessage] = []
    set_columns = [name for name in wanted if name not in schema.partition_keys]
    if len(ids) and set_columns:
        changed = given.select(set_columns).take(pa.array(matched))
        messages += updates.update(changed.append_column(ROW_ID.name, pa.array(ids)), read=key_names)
    new = np.setdiff1d(_last_of_each(_number_keys(source_keys)), matched)
    return [*messages, *_append(context, commit_user, given.take(pa.array(new)))]


def _find_keys(context: TableContext, keys: Sequence[str], given: Sequence[str]) -> tuple[DataField, ...]:
    fields = context.schema.fields_by_name
    if not keys:
        raise InvalidRequest("An upsert needs at least one key column", subject="keys", hint="name some columns")
    for name in keys:
        if name not in fields:
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, fields))
    names = dict.fromkeys([*context.schema.partition_keys, *keys])
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidRequest(f"Rows to upsert need the column {missing[0]!r}", subject=missing[0], hint="add it")
    return tuple(fields[name] for name in names)


def _match_keys(updates: RowIdUpdates, columns: Sequence[DataField], source: pa.Table) -> tuple[_Numbers, _Numbers]:
    """Return the ids of the rows that have a key of the source, and for each the last row of the source with this key.

    Memory holds the keys of some million rows of the table at once, and the ids that were found.
    """
    ids, matched = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for stored in _read_keys(updates, columns):
        codes = _number_keys(source, stored)
        source_codes, stored_codes = codes[: source.num_rows], codes[source.num_rows :]
        rows = _last_of_each(source_codes)
        positions = np.minimum(np.searchsorted(source_codes[rows], stored_codes), len(rows) - 1)
        matches = source_codes[rows][positions] == stored_codes
        ids.append(to_numpy(combine_column(stored[ROW_ID.name]))[matches])
        matched.append(rows[positions[matches]])
    return np.concatenate(ids), np.concatenate(matched)


def _read_keys(updates: RowIdUpdates, columns: Sequence[DataField]) -> Iterator[pa.Table]:
    """Yield the keys and ids of all rows, in parts of about the same size."""
    batches: list[pa.RecordBatch] = []
    for group in updates.groups:
        for batch in updates.read_live_rows(group, (*columns, ROW_ID)):
            batches.append(batch)
            if sum(b.num_rows for b in batches) >= _MATCHED_ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
    if batches:
        yield pa.Table.from_batches(batches)


def _number_keys(*tables: pa.Table) -> _Numbers:
    """Return a number for each key of all tables, equal for equal keys."""
    codes: _Numbers = np.zeros(sum(table.num_rows for table in tables), np.int64)
    for name in tables[0].column_names:
        column = combine_column(pa.chunked_array([chunk for table in tables for chunk in table[name].chunks]))
        encoded = column.dictionary_encode(null_encoding="encode")
        pairs = codes * len(encoded.dictionary) + to_numpy(encoded.indices)
        codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64).ravel()
    return codes


def _last_of_each(codes: _Numbers) -> _Numbers:
    """Return the last row of each key, in the order of the keys' numbers."""
    backwards = codes[::-1]
    return (len(codes) - 1 - np.unique(backwards, return_index=True)[1]).astype(np.int64)


def _append(context: TableContext, commit_user: str, rows: pa.Table) -> list[CommitMessage]:
    if not rows.num_rows:
        return []
    writer = TableWriter(context, commit_user)
    try:
        writer.write(rows)
        return writer.prepare_commit()
    finally:
        writer.close()


OpenMatcher: TypeAlias = Callable[[], MergeMatcher]
"""Reads a part of the source, and returns the merge with it."""


@frozen(eq=False)
class _Output:
    """What a merge writes."""

    updates: RowIdUpdates
    writer: TableWriter
    messages: list[CommitMessage] = field(factory=list)
    deleted: list[RowIds] = field(factory=list)
    counts: Counter[MergeAction] = field(factory=Counter)

    def undo(self, context: TableContext) -> None:
        """Delete what was written before an error."""
        self.writer.abort()
        self.updates.abort(self.messages)
        delete_index_files(context, [e for m in self.messages for e in m.data.new_index_files])


def write_row_id_merge(
    context: TableContext, updates: RowIdUpdates, parts: Sequence[OpenMatcher], commit_user: str
) -> tuple[list[CommitMessage], Counter[MergeAction]]:
    """Write a MERGE, a part of the source for each of `parts`; return messages and counts by action."""
    # A group is written once, so it meets all parts of the source before the next group: several parts are read again
    # for each group, a single one is read once.
    opened: list[OpenMatcher] = [cache(parts[0])] if len(parts) == 1 else list(parts)
    matched = [np.zeros(part().source.num_rows, np.bool_) for part in opened]
    output = _Output(updates, open_append_writer(context, commit_user, concurrent=True))
    with undo_on_failure(partial(output.undo, context)):
        for group in updates.groups:
            _change_group(context, group, opened, matched, output)
        if output.deleted:
            output.messages.extend(delete_row_ids(context, updates, np.concatenate(output.deleted)))
        for part, mask in zip(opened, matched, strict=True):
            for rows, _ in compute_insert_rows(context, part(), mask):
                output.writer.write(rows)
                output.counts[MergeAction.INSERT] += rows.num_rows
        return [*output.messages, *output.writer.prepare_commit()], output.counts


def _change_group(
    context: TableContext,
    group: RowGroup,
    parts: Sequence[OpenMatcher],
    matched: Sequence[Mask],
    output: _Output,
) -> None:
    """Write the new columns of a group of rows, and collect its rows to delete."""
    changed: list[pa.Table] = []
    read: set[str] = set()
    for part, mask in zip(parts, matched, strict=True):
        matcher = part()
        if not len(mask) and not matcher.merge.not_matched_by_source:
            continue  # without a row in the source, only rows that it does not match can change
        columns = _list_columns(context, matcher.merge)
        read |= {column.name for column in columns}
        for batch in output.updates.read_live_rows(group, (*columns, ROW_ID)):
            changed.extend(_change_batch(context, matcher, mask, batch, output))
    if changed:
        output.messages.extend(output.updates.update(changed, read=read))


def _change_batch(
    context: TableContext, matcher: MergeMatcher, mask: Mask, batch: pa.RecordBatch, output: _Output
) -> Iterator[pa.Table]:
    """Yield the ids and the new values of updated rows."""
    changes = matcher.find_changes(batch)
    mask[changes.matched] = True
    set_columns = _list_set_columns(context, matcher.merge)
    for clause, rows, sources in group_by_clause(matcher.merge, changes):
        before = batch.take(pa.array(rows))
        output.counts[clause.action] += len(rows)
        if clause.action is MergeAction.DELETE:
            output.deleted.append(to_numpy(before[ROW_ID.name]))
        elif set_columns:
            after = matcher.compute_rows(clause, set_columns, before, sources)
            yield after.append_column(ROW_ID.name, before[ROW_ID.name])


def _list_set_columns(context: TableContext, merge: BoundMerge) -> tuple[DataField, ...]:
    """Return the columns that any clause sets in rows of the table."""
    names = {assignment.column.name for clause in merge.changing for assignment in clause.assignments}
    return tuple(column for column in context.schema.fields if column.name in names)


def _list_columns(context: TableContext, merge: BoundMerge) -> tuple[DataField, ...]:
    """Return the columns to read: those that decide, those that are set, and those that new values need."""
    names = {to_plain_name(name) for clause in merge.changing for name in clause.columns() if is_of_target(name)}
    used = {column.name for column in select_fields(list_target_columns(context), sorted(names))}
    used |= {column.name for column in (*list_match_columns(context, merge), *_list_set_columns(context, merge))}
    return tuple(column for column in context.schema.fields if column.name in used)
