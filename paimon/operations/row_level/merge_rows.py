"""Write what a MERGE changes: rows of primary-key tables as changes, rows of append tables as new files or vectors.

Invariant: one writer writes all new rows, so that the merge becomes one commit. The target streams; memory holds the
source, and for append tables the numbers of the changed rows. Source: `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.assignment.merge_clauses import Merge, MergeAction, MergeClause, is_of_target, to_plain_name
from paimon.domain.assignment.merge_columnar import Integers, Mask
from paimon.domain.commit.message import CommitMessage
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.row.kinds import RowKind
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.deletion_vector_files import BucketVectors, delete_index_files, read_bucket_vectors
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.data_files.undo import undo_on_failure
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import select_fields
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.append_rows import build_removal_message, without_compaction
from paimon.operations.row_level.keyed_rows import check_nulls
from paimon.operations.row_level.matches import BucketMatches, FileMatch
from paimon.operations.row_level.merge_match import Matching, RowChanges
from paimon.operations.row_level.replace_rows import filter_rows, replace_rows
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

_INSERT_ROWS = 1 << 17


@frozen(eq=False)
class WrittenMerge:
    """What to commit, and how many rows each action changed."""

    messages: list[CommitMessage]
    counts: Mapping[MergeAction, int]


def write_merge(
    context: TableContext, snapshot: Snapshot | None, matching: Matching, condition: Predicate | None, commit_user: str
) -> WrittenMerge:
    """Write the changes of a MERGE.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    snapshot : Snapshot, optional
        The snapshot to read; None for a table without rows.
    matching : Matching
        The merge and its source.
    condition : Predicate, optional
        True for each row of the target that can matter.
    commit_user : str
        The user of the commit to come.

    Returns
    -------
    WrittenMerge
        The messages, and the numbers of rows.
    """
    has_keys = bool(context.schema.primary_keys)
    writing = context if has_keys else context.with_table(without_compaction(context.table))
    writer = TableWriter(writing, commit_user)
    job = _Job(context, matching, condition, writer, np.zeros(matching.source.num_rows, np.bool_), Counter(), [])
    with undo_on_failure(job.undo):
        # Without a row in the source, only rows that it does not match can change.
        if snapshot is not None and (matching.source.num_rows or matching.merge.not_matched_by_source):
            if has_keys:
                job.change_keyed_rows(snapshot)
            else:
                job.change_append_rows(snapshot)
        job.insert_rows()
        return WrittenMerge([*job.messages, *writer.prepare_commit()], job.counts)


@frozen(eq=False)
class _Job:
    """A merge that is being written: its writer, the rows of the source that matched so far, and the counts."""

    context: TableContext
    matching: Matching
    condition: Predicate | None
    writer: TableWriter
    matched: Mask
    counts: Counter[MergeAction]
    messages: list[CommitMessage]

    def undo(self) -> None:
        """Delete what was written before an error."""
        self.writer.abort()
        delete_index_files(self.context, [e for m in self.messages for e in m.data.new_index_files])

    def insert_rows(self) -> None:
        """Write the rows of the source without a match."""
        kinds = bool(self.context.schema.primary_keys)
        for clause, numbers in self.matching.find_inserts(self.matched):
            for start in range(0, len(numbers), _INSERT_ROWS):
                rows = self.matching.compute_inserts(clause, numbers[start : start + _INSERT_ROWS])
                self.writer.write(rows, _repeat_kind(RowKind.INSERT, rows.num_rows) if kinds else None)
            self.counts[MergeAction.INSERT] += len(numbers)

    def change_keyed_rows(self, snapshot: Snapshot) -> None:
        """Read the rows of a primary-key table, also those that reads skip before a compaction, and write changes."""
        options = self.context.options.with_values({"deletion-vectors.merge-on-read": "true"})
        context = self.context.with_table(evolve(self.context.table, options=options))
        read = ReadPlan(_list_read_columns(context, self.matching.merge), self.condition)
        for split in plan_scan(context, ScanRequest(snapshot, self.condition)).splits:
            for batch in read_split(context, split, read):
                changes = self.matching.find_changes(batch)
                self.matched[changes.matched] = True
                self._write_keyed_changes(batch, changes)

    def _write_keyed_changes(self, batch: pa.RecordBatch, changes: RowChanges) -> None:
        for clause, rows, sources in _group_by_clause(self.matching.merge, changes):
            before = batch.take(pa.array(rows))
            kind = RowKind.DELETE
            after: pa.RecordBatch | pa.Table = before
            if clause.action is MergeAction.UPDATE:
                kind = RowKind.UPDATE_AFTER
                after = self.matching.compute_rows(clause, self.context.schema.fields, before, sources)
                check_nulls(self.context.table, before, after, clause.assignments)
            self.writer.write(after, _repeat_kind(kind, len(rows)))
            self.counts[clause.action] += len(rows)

    def change_append_rows(self, snapshot: Snapshot) -> None:
        """Find the changed rows of an append table, then write their files or vectors, and their new versions."""
        marks = self.context.options.deletion_vectors_enabled
        held = read_bucket_vectors(self.context, snapshot)
        for bucket in self._find_buckets(snapshot):
            for file in bucket.files:
                for rows in self._read_new_rows(bucket.split, file, whole_files=not marks):
                    self.writer.write(rows)
                for clause, numbers, _ in _group_by_clause(self.matching.merge, file.changes):
                    self.counts[clause.action] += len(numbers)
            key = bucket.split.partition, bucket.split.bucket
            matches = BucketMatches(bucket.split, (file.match for file in bucket.files))
            self.messages.append(
                build_removal_message(self.context, matches, held.get(key, BucketVectors(*key)), marks)
            )

    def _find_buckets(self, snapshot: Snapshot) -> Sequence[_BucketChanges]:
        """Search all splits, concurrently, and group the changed files by bucket."""
        splits = plan_scan(self.context, ScanRequest(snapshot, self.condition)).splits
        task = partial(find_changes_in_split, self.context, self.matching)
        found: dict[BucketKey, _BucketChanges] = {}
        for split, done in zip(splits, self.context.engine.executor.map(task, splits), strict=True):
            self.matched[done.matched] = True
            if done.files:
                earlier = found.setdefault((split.partition, split.bucket), _BucketChanges(split, ()))
                found[split.partition, split.bucket] = _BucketChanges(split, (*earlier.files, *done.files))
        return list(found.values())

    def _read_new_rows(self, split: DataSplit, file: _FileChanges, whole_files: bool) -> Iterator[pa.Table]:
        """Yield the rows to write for one file, in its order; with `whole_files` also the unchanged rows."""
        clauses, fields = self.matching.merge.changing, self.context.schema.fields
        updates = any(clauses[int(n)].action is MergeAction.UPDATE for n in np.unique(file.changes.clauses))
        if not updates and (file.match.removes_all_rows or not whole_files):
            return
        start = 0
        for batch in read_data_file(Bucket.of(self.context, split), file.match.file, fields):
            changes = file.changes.between(start, start + batch.num_rows)
            unchanged = ~file.match.after.mask(start, batch.num_rows) & whole_files
            start += batch.num_rows
            rows = self._replace_rows(batch, changes, unchanged)
            if rows.num_rows:
                yield rows

    def _replace_rows(self, batch: pa.RecordBatch, changes: RowChanges, unchanged: Mask) -> pa.Table:
        """Return the unchanged rows of a batch together with the new versions of others, in the order of the batch."""
        changed, parts = [np.empty(0, np.int64)], []
        for clause, rows, sources in _group_by_clause(self.matching.merge, changes):
            if clause.action is MergeAction.UPDATE:
                before = batch.take(pa.array(rows))
                parts.append(self.matching.compute_rows(clause, self.context.schema.fields, before, sources))
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


def _repeat_kind(kind: RowKind, count: int) -> pa.Array:
    return pa.array(np.full(count, kind, np.int8))


def _group_by_clause(merge: Merge, changes: RowChanges) -> Iterator[tuple[MergeClause, Integers, Integers | None]]:
    """Yield each clause that applies to a row, with its rows and their rows of the source."""
    for number, clause in enumerate(merge.changing):
        chosen = changes.clauses == number
        if chosen.any():
            sources = changes.source_rows[chosen] if number < len(merge.matched) else None
            yield clause, changes.rows[chosen], sources


def _list_match_columns(context: TableContext, merge: Merge) -> tuple[DataField, ...]:
    """Return the columns of the target that decide which clause applies; at least one column."""
    conditions = [clause for clause in merge.changing if clause.condition is not None]
    names = {n for clause in conditions for n in clause.columns() if is_of_target(n)} | merge.on.target_columns
    fields = select_fields(context.schema.fields, sorted({to_plain_name(name) for name in names}))
    whole = {f.name: f for f in context.schema.fields}
    return tuple(whole[f.name] for f in fields) or context.schema.fields[:1]


def _list_read_columns(context: TableContext, merge: Merge) -> tuple[str, ...]:
    """Return the columns to read of a primary-key table: whole rows only where a clause needs them."""
    names = {field.name for field in _list_match_columns(context, merge)}
    all_names = context.schema.names
    for clause in merge.changing:
        set_columns = {a.column.name for a in clause.assignments}
        if clause.action is MergeAction.DELETE or context.options.merge_engine == "partial-update":
            return all_names
        read = {to_plain_name(name) for name in clause.columns() if is_of_target(name)}
        columns = {f.name for f in select_fields(context.schema.fields, sorted(read))}
        names |= columns | (set(all_names) - set_columns)
    return tuple(name for name in all_names if name in names)


@frozen(eq=False)
class _FileChanges:
    """The changed rows of one file, by their positions in it."""

    match: FileMatch
    changes: RowChanges


@frozen(eq=False)
class _BucketChanges:
    """The files of one bucket with changed rows."""

    split: DataSplit
    files: tuple[_FileChanges, ...]


@frozen(eq=False)
class SplitChanges:
    """The files of a split with changed rows, and the rows of the source that match a row of the split."""

    files: tuple[_FileChanges, ...]
    matched: Integers


def find_changes_in_split(context: TableContext, matching: Matching, split: DataSplit) -> SplitChanges:
    """Find the rows of one split of an append table that a MERGE changes.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    matching : Matching
        The merge and its source.
    split : DataSplit
        The split to search.

    Returns
    -------
    SplitChanges
        Only files with changed rows.
    """
    found = [
        _find_in_file(context, matching, split, file, deleted)
        for file, deleted in file_vectors(split.files, split.deletion_files)
    ]
    matched = np.unique(np.concatenate([np.empty(0, np.int64), *(f.changes.matched for f in found)]))
    return SplitChanges(tuple(f for f in found if len(f.changes.rows)), matched)


def _find_in_file(
    context: TableContext, matching: Matching, split: DataSplit, file: DataFileMeta, deleted: DeletionFile | None
) -> _FileChanges:
    before = DeletionVector() if deleted is None else read_vector(context.engine, deleted)
    columns = _list_match_columns(context, matching.merge)
    start, parts = 0, []
    # No row group may be skipped, because the position of a row is the number of rows before it.
    for batch in read_data_file(Bucket.of(context, split), file, columns):
        live = np.flatnonzero(~before.mask(start, batch.num_rows))
        rows = batch if len(live) == batch.num_rows else batch.take(pa.array(live))
        parts.append(matching.find_changes(rows).at(live + start))
        start += batch.num_rows
    changes = RowChanges.of_parts(parts)
    return _FileChanges(FileMatch(file, before, before.with_deleted(changes.rows)), changes)
