"""Read rows of the target of a MERGE, find which of them change, and compute what is written for them.

Invariant: the functions keep no state, so a task of any executor can call them for its splits and its share of the
source. A position of an append table counts all rows of its file, also deleted ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction, MergeClause, is_of_target, to_plain_name
from paimon.domain.assignment.merge_columnar import Integers, Mask
from paimon.domain.columns.replace_rows import filter_rows, replace_rows
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.row_checks import check_versions, list_version_columns
from paimon.domain.predicate.expression import Predicate
from paimon.domain.row.kinds import RowKind, repeat_kind
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.read.projection import select_fields
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.merge_match import MergeMatcher, RowChanges, list_target_columns
from paimon.operations.row_level.selected_rows import FileMatch, read_old_vector
from paimon.operations.table_context import TableContext

_INSERT_ROWS = 1 << 17


def list_match_columns(context: TableContext, merge: BoundMerge) -> tuple[DataField, ...]:
    """Return the columns of the target that decide which clause applies; at least one column."""
    conditions = [clause for clause in merge.changing if clause.condition is not None]
    names = {n for clause in conditions for n in clause.columns() if is_of_target(n)} | merge.on.target_columns
    known = list_target_columns(context)
    fields = select_fields(known, sorted({to_plain_name(name) for name in names}))
    whole = {f.name: f for f in known}
    return tuple(whole[f.name] for f in fields) or context.schema.fields[:1]


def list_read_columns(context: TableContext, merge: BoundMerge) -> tuple[str, ...]:
    """Return the columns to read of a primary-key table: whole rows only where a clause needs them."""
    names = {field.name for field in list_match_columns(context, merge)} | list_version_columns(context.table)
    all_names = context.schema.names
    for clause in merge.changing:
        set_columns = {a.column.name for a in clause.assignments}
        if clause.action is MergeAction.DELETE or context.options.merge_engine == "partial-update":
            return all_names
        read = {to_plain_name(name) for name in clause.columns() if is_of_target(name)}
        columns = {f.name for f in select_fields(context.schema.fields, sorted(read))}
        names |= columns | (set(all_names) - set_columns)
    return tuple(name for name in all_names if name in names)


def read_keyed_target(
    context: TableContext, merge: BoundMerge, condition: Predicate | None, split: DataSplit
) -> Iterator[pa.RecordBatch]:
    """Read a split of a primary-key table, also the rows that reads skip before a compaction.

    The batches have the columns of `list_read_columns`. `condition` is true for each row that can matter; None if all
    can.
    """
    return read_split(context.with_hidden_rows(), split, ReadPlan(list_read_columns(context, merge), condition))


@frozen(eq=False)
class LiveRows:
    """Live rows of a file of an append table."""

    # The columns of `list_match_columns`
    rows: pa.RecordBatch
    # Their positions in the file, ascending
    positions: Integers

    @classmethod
    def of(cls, batch: pa.RecordBatch, start: int, before: DeletionVector) -> LiveRows:
        """Return a batch's live rows; its first one is at `start` of the file, `before` were deleted before."""
        live = np.flatnonzero(~before.mask(start, batch.num_rows))
        return cls(batch if len(live) == batch.num_rows else batch.take(pa.array(live)), live + start)


def read_file_vectors(context: TableContext, split: DataSplit) -> list[tuple[DataFileMeta, DeletionVector]]:
    """Return the files of a split with the rows that are deleted before the change."""
    return [
        (file, read_old_vector(context, deleted)) for file, deleted in file_vectors(split.files, split.deletion_files)
    ]


def read_live_rows(
    context: TableContext, merge: BoundMerge, bucket: Bucket, file: DataFileMeta, before: DeletionVector
) -> Iterator[LiveRows]:
    """Read the columns that choose clauses, of the rows of an append file that are not deleted `before`."""
    start = 0
    # No row group may be skipped, because the position of a row is the number of rows before it.
    for batch in read_data_file(bucket, file, list_match_columns(context, merge)):
        yield LiveRows.of(batch, start, before)
        start += batch.num_rows


def compute_insert_rows(
    context: TableContext, matcher: MergeMatcher, matched: Mask
) -> Iterator[tuple[pa.Table, pa.Int8Array | None]]:
    """Compute the rows to insert for the rows of the source without a match, with row kinds for a primary-key table.

    `matched` has for each row of the source whether it matches. The rows have only the columns that a clause sets.
    """
    for clause, numbers in matcher.find_inserts(matched):
        for start in range(0, len(numbers), _INSERT_ROWS):
            rows = matcher.compute_inserts(clause, numbers[start : start + _INSERT_ROWS])
            yield rows, repeat_kind(RowKind.INSERT, rows.num_rows) if context.schema.primary_keys else None


def compute_keyed_rows(
    context: TableContext, matcher: MergeMatcher, batch: pa.RecordBatch, changes: RowChanges
) -> Iterator[tuple[MergeClause, pa.Table, pa.Int8Array]]:
    """Yield each clause with its rows for a primary-key table and their kinds; `changes` are of `batch`."""
    for clause, rows, sources in group_by_clause(matcher.merge, changes):
        before = batch.take(pa.array(rows))
        if clause.action is MergeAction.UPDATE:
            after = matcher.compute_rows(clause, context.schema.fields, before, sources)
            check_versions(context.table, before, after, clause.assignments)
            yield clause, after, repeat_kind(RowKind.UPDATE_AFTER, len(rows))
        else:
            yield clause, pa.Table.from_batches([before]), repeat_kind(RowKind.DELETE, len(rows))


def group_by_clause(merge: BoundMerge, changes: RowChanges) -> Iterator[tuple[MergeClause, Integers, Integers | None]]:
    """Yield each clause that applies to a row, with its rows and their rows of the source."""
    for number, clause in enumerate(merge.changing):
        chosen = changes.clauses == number
        if chosen.any():
            sources = changes.source_rows[chosen] if number < len(merge.matched) else None
            yield clause, changes.rows[chosen], sources


@frozen(eq=False)
class FileChanges:
    """The changed rows of one file, by their positions in it."""

    match: FileMatch
    changes: RowChanges

    @classmethod
    def of(cls, file: DataFileMeta, before: DeletionVector, changes: RowChanges) -> FileChanges:
        """Return the changes of a file, by positions in it; the rows of `before` were deleted earlier."""
        return cls(FileMatch(file, before, before.with_deleted(changes.rows)), changes)


def read_merged_rows(
    context: TableContext, matcher: MergeMatcher, split: DataSplit, file: FileChanges, whole_files: bool
) -> Iterator[pa.Table]:
    """Compute the new versions of a file's changed rows in order; `whole_files` adds the unchanged rows."""
    clauses = matcher.merge.changing
    updates = any(clauses[int(n)].action is MergeAction.UPDATE for n in np.unique(file.changes.clauses))
    if not updates and (file.match.removes_all_rows or not whole_files):
        return
    replace = partial(_replace_changed, context, matcher, file, whole_files)
    # One thread decodes the file, and others replace rows.
    for rows in context.engine.executor.map(replace, _read_whole_rows(context, split, file.match.file)):
        if rows.num_rows:
            yield rows


def merge_file(
    context: TableContext, matcher: MergeMatcher, split: DataSplit, file: DataFileMeta, before: DeletionVector
) -> Iterator[tuple[pa.Table, RowChanges]]:
    """Read a file of an append table once: find its changed rows, and compute all rows of the file that replaces it.

    Yield the remaining rows of each part of the file, with the changed rows of the part by their positions in the file.
    `before` are the rows that are deleted before the change.
    """
    batches = _read_whole_rows(context, split, file)
    yield from context.engine.executor.map(partial(_merge_batch, context, matcher, before), batches)


def _read_whole_rows(
    context: TableContext, split: DataSplit, file: DataFileMeta
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each batch of a file, with all columns, together with the position of its first row."""
    start = 0
    for batch in read_data_file(Bucket.of(context, split), file, context.schema.fields):
        yield start, batch
        start += batch.num_rows


def _replace_changed(
    context: TableContext,
    matcher: MergeMatcher,
    file: FileChanges,
    whole_files: bool,
    numbered: tuple[int, pa.RecordBatch],
) -> pa.Table:
    """Return the unchanged rows of a batch together with the new versions of the known changed ones."""
    start, batch = numbered
    changes = file.changes.between(start, start + batch.num_rows)
    unchanged = ~file.match.after.mask(start, batch.num_rows) & whole_files
    return _replace_rows(context, matcher, batch, changes, unchanged)


def _merge_batch(
    context: TableContext, matcher: MergeMatcher, before: DeletionVector, numbered: tuple[int, pa.RecordBatch]
) -> tuple[pa.Table, RowChanges]:
    """Find the changed rows of a batch, and return all of its rows after the change."""
    start, batch = numbered
    names = [field.name for field in list_match_columns(context, matcher.merge)]
    found = _find_in_rows(matcher, LiveRows.of(batch.select(names), start, before))
    changes = found.between(start, start + batch.num_rows)
    unchanged = ~before.mask(start, batch.num_rows)
    unchanged[changes.rows] = False
    return _replace_rows(context, matcher, batch, changes, unchanged), found


def _replace_rows(
    context: TableContext, matcher: MergeMatcher, batch: pa.RecordBatch, changes: RowChanges, unchanged: Mask
) -> pa.Table:
    """Return the unchanged rows of a batch together with the new versions of others, in the order of the batch."""
    changed, parts = [np.empty(0, np.int64)], []
    for clause, rows, sources in group_by_clause(matcher.merge, changes):
        if clause.action is MergeAction.UPDATE:
            before = batch.take(pa.array(rows))
            parts.append(matcher.compute_rows(clause, context.schema.fields, before, sources))
            changed.append(rows)
    numbers = np.concatenate(changed)
    new = pa.concat_tables(parts) if parts else pa.Table.from_batches([], batch.schema)
    if len(parts) > 1:
        order = np.argsort(numbers)
        numbers, new = numbers[order], new.take(pa.array(order))
    if not unchanged.any():
        return new
    remaining = unchanged.copy()
    remaining[numbers] = True
    return pa.Table.from_batches([filter_rows(replace_rows(batch, numbers, new), remaining)])


@frozen(eq=False)
class SplitChanges:
    """The files of a split with changed rows, and the rows of the source that match a row of the split."""

    files: tuple[FileChanges, ...]
    matched: Integers


def find_changes_in_split(context: TableContext, matcher: MergeMatcher, split: DataSplit) -> SplitChanges:
    """Find the rows of one split of an append table that a MERGE changes; files without such rows are left out."""
    bucket = Bucket.of(context, split)
    found = [
        _find_in_file(context, matcher, bucket, file, before) for file, before in read_file_vectors(context, split)
    ]
    matched = np.unique(np.concatenate([np.empty(0, np.int64), *(f.changes.matched for f in found)]))
    return SplitChanges(tuple(f for f in found if len(f.changes.rows)), matched)


@frozen(eq=False)
class ChangedFiles:
    """The files of a split with changed rows, and what the source matches in the others."""

    # Each with its rows that are deleted before the change
    files: tuple[tuple[DataFileMeta, DeletionVector], ...]
    # The rows of the source that match a row of another file
    matched: Integers


def find_changed_files(context: TableContext, matcher: MergeMatcher, split: DataSplit) -> ChangedFiles:
    """Find the files of one split of an append table that a MERGE changes; each is read up to its first changed row."""
    bucket = Bucket.of(context, split)
    changed, matched = [], [np.empty(0, np.int64)]
    for file, before in read_file_vectors(context, split):
        parts = []
        with closing(_search_file(context, matcher, bucket, file, before)) as found:
            for part in found:
                parts.append(part.matched)
                if len(part.rows):
                    changed.append((file, before))
                    break
            else:
                matched += parts
    return ChangedFiles(tuple(changed), np.unique(np.concatenate(matched)))


def _find_in_file(
    context: TableContext, matcher: MergeMatcher, bucket: Bucket, file: DataFileMeta, before: DeletionVector
) -> FileChanges:
    parts = list(_search_file(context, matcher, bucket, file, before))
    return FileChanges.of(file, before, RowChanges.of_parts(parts))


def _search_file(
    context: TableContext, matcher: MergeMatcher, bucket: Bucket, file: DataFileMeta, before: DeletionVector
) -> Generator[RowChanges]:
    """Yield the changed rows of each batch of a file."""
    rows = read_live_rows(context, matcher.merge, bucket, file, before)
    # One thread decodes the file, and others search the batches.
    yield from context.engine.executor.map(partial(_find_in_rows, matcher), rows)


def _find_in_rows(matcher: MergeMatcher, live: LiveRows) -> RowChanges:
    return matcher.find_changes(live.rows).at(live.positions)
