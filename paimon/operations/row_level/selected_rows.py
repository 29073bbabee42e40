"""Write deletes and updates of the rows that a predicate selects, in append and primary-key tables.

Source: `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`, `PaimonRowLevelCommand.collectDeletionVectors`.
"""

# Append tables change rows by their positions. A file of five rows, whose row 1 was deleted earlier, and WHERE v = 'x':
#
#     position   0  1  2  3  4
#     v          a  x  x  b  x
#     before     .  D  .  .  .       `FileMatch.before`
#     after      .  D  D  .  D       `FileMatch.after`; the rows found are 2 and 4
#
#                             delete                          update
#     deletion vectors        vector {1, 2, 4}                vector {1, 2, 4}, and 2' 4' in a new file
#     without                 file with 0 3 replaces it       file with 0 2' 3 4' replaces it
#
# A file without a remaining live row is removed with its vector. The first pass finds the rows, in all splits
# concurrently; it reads only the columns of the predicate. The second pass reads the files with rows found again, with
# all columns. One message for each bucket removes the old rows, because the vectors of a bucket share index files. All
# become one OVERWRITE snapshot, which is refused if another commit changed the same files.
#
# Primary-key tables change rows by their keys. The merged rows are read, and written again as deletes or new versions;
# the writer does the rest. The read includes the rows of level 0 that other reads skip before a compaction: all written
# rows are changed (Java changes only the rows that it shows).

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.assignment.expression import Assignment
from paimon.domain.columns.convert import convert_array
from paimon.domain.columns.replace_rows import filter_rows, replace_rows
from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.deletion.vector import DeletionVector, Mask
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.row_checks import check_versions
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.row.kinds import RowKind, repeat_kind
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.system_columns import LEVEL
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import (
    BucketVectors,
    delete_index_files,
    get_bucket_vectors,
    read_bucket_vectors,
    read_vector,
    write_vectors,
)
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.read.evaluate import evaluate_condition, evaluate_expression
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import select_fields
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine

ChangeRows: TypeAlias = Callable[[pa.RecordBatch], pa.Table]
"""Returns new versions of rows."""


@frozen(eq=False)
class FileMatch:
    """The rows found in one file."""

    file: DataFileMeta
    before: DeletionVector
    after: DeletionVector

    @property
    def count(self) -> int:
        """The number of rows found."""
        return self.after.cardinality - self.before.cardinality

    @property
    def removes_all_rows(self) -> bool:
        """Whether no other row of the file is live."""
        return self.after.cardinality == self.file.row_count

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Return a mask of the rows found among `row_count` rows from position `first_row` on."""
        found: Mask = self.after.mask(first_row, row_count) & ~self.before.mask(first_row, row_count)
        return found


def _to_assignments(values: Iterable[Assignment]) -> tuple[Assignment, ...]:
    return tuple(values)


@frozen(eq=False)
class SelectedChange:
    """A delete or an update of the rows that a predicate selects."""

    snapshot: Snapshot
    # Over stored columns
    predicate: Predicate
    # The new values; if empty, the rows are deleted
    assignments: tuple[Assignment, ...] = field(converter=_to_assignments)
    commit_user: str


@frozen(eq=False)
class WrittenChanges:
    """What to commit for a delete or an update, and the number of changed rows."""

    messages: Sequence[CommitMessage]
    rows: int


def _to_tuple(values: Iterable[FileMatch]) -> tuple[FileMatch, ...]:
    return tuple(values)


@frozen(eq=False)
class BucketMatches:
    """The files of one bucket in which rows were found; `split` has their location."""

    split: DataSplit
    files: tuple[FileMatch, ...] = field(converter=_to_tuple)

    @property
    def count(self) -> int:
        """The number of rows found."""
        return sum(match.count for match in self.files)


def find_rows(context: TableContext, snapshot: Snapshot, predicate: Predicate) -> list[BucketMatches]:
    """Find the buckets with rows for which a predicate over stored columns is true, split by split."""
    splits = plan_scan(context, ScanRequest(snapshot, predicate)).splits
    task = partial(find_in_split, context.for_tasks(len(splits)), predicate)
    found: dict[BucketKey, BucketMatches] = {}
    for split, files in zip(splits, context.engine.executor.map(task, splits), strict=True):
        if files:
            earlier = found.setdefault((split.partition, split.bucket), BucketMatches(split, ()))
            found[split.partition, split.bucket] = BucketMatches(split, (*earlier.files, *files))
    return list(found.values())


def find_in_split(context: TableContext, predicate: Predicate, split: DataSplit) -> Sequence[FileMatch]:
    """Find the rows of one split for which a predicate over stored columns is true; skip files without any."""
    bucket = Bucket.of(context, split)
    found = [
        _find_in_file(bucket, predicate, file, deleted)
        for file, deleted in file_vectors(split.files, split.deletion_files)
    ]
    return [match for match in found if match.count]


def _find_in_file(bucket: Bucket, predicate: Predicate, file: DataFileMeta, deleted: DeletionFile | None) -> FileMatch:
    before = read_old_vector(bucket.context, deleted)
    columns = select_fields(bucket.context.schema.fields, columns_of(predicate)) or (LEVEL,)
    start = 0
    found = [np.empty(0, np.int64)]
    # No row group may be skipped, because the position of a row is the number of rows before it.
    for batch in read_data_file(bucket, file, columns):
        live = ~before.mask(start, batch.num_rows)
        mask = to_numpy(evaluate_condition(bucket.context.engine, predicate, batch)) & live
        found.append(np.flatnonzero(mask) + start)
        start += batch.num_rows
    return FileMatch(file, before, before.with_deleted(np.concatenate(found)))


def read_old_vector(context: TableContext, deleted: DeletionFile | None) -> DeletionVector:
    """Return the rows of a file that were deleted before the change."""
    return DeletionVector() if deleted is None else read_vector(context.engine, deleted)


def apply_assignments(engine: Engine, batch: pa.RecordBatch, assignments: Sequence[Assignment]) -> pa.Table:
    """Return the rows of a batch, which has all columns of the table, after the assignments."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for assignment in assignments:
        column = assignment.column
        values = evaluate_expression(engine, assignment.expression, batch, column)
        columns[column.name] = convert_array(values, column.type, column.name)
    return pa.Table.from_arrays(list(columns.values()), schema=batch.schema)


def write_append_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the files and deletion vectors that change the selected rows."""
    found = find_rows(context, change.snapshot, change.predicate)
    old_vectors = read_bucket_vectors(context, change.snapshot)
    writer = open_append_writer(context, change.commit_user, concurrent=True)
    messages: list[CommitMessage] = []

    def undo() -> None:
        """Delete what was written before an error."""
        writer.abort()
        delete_index_files(context, [e for m in messages for e in m.data.new_index_files])

    with undo_on_failure(undo):
        for matches in found:
            write_new_rows(context, writer, matches, change.assignments)
            key = matches.split.partition, matches.split.bucket
            vectors = get_bucket_vectors(old_vectors, key)
            messages.append(build_removal_message(context, matches.split, matches.files, vectors))
        return WrittenChanges([*messages, *writer.prepare_commit()], sum(matches.count for matches in found))


def open_append_writer(context: TableContext, commit_user: str, concurrent: bool = False) -> TableWriter:
    """Return an append writer without compaction; `concurrent` encoding is not for writers in tasks."""
    options = context.options.with_values({"write-only": "true"})
    target = context.with_table(evolve(context.table, options=options))
    return TableWriter(target, commit_user, concurrent=concurrent)


def write_new_rows(
    context: TableContext, writer: TableWriter, matches: BucketMatches, assignments: Sequence[Assignment]
) -> None:
    """Write new versions of rows (None deletes); without deletion vectors also the unchanged rows."""
    change = partial(apply_assignments, context.engine, assignments=assignments) if assignments else None
    for match in matches.files:
        for rows in read_new_rows(context, matches.split, match, change):
            writer.write(rows)


def read_new_rows(
    context: TableContext, split: DataSplit, match: FileMatch, change: ChangeRows | None
) -> Iterator[pa.Table]:
    """Read what replaces the rows found in a file; without deletion vectors also the other live rows of the file.

    All columns are read, in the order of the file. `change` gets the rows found in this order; None deletes them.
    """
    whole_files = not context.options.deletion_vectors_enabled
    if change is None and (match.removes_all_rows or not whole_files):
        return
    start = 0
    for batch in read_data_file(Bucket.of(context, split), match.file, context.schema.fields):
        rows = _select_new_rows(batch, match, start, change, whole_files)
        start += batch.num_rows
        if rows.num_rows:
            yield rows


def _select_new_rows(
    batch: pa.RecordBatch, match: FileMatch, start: int, change: ChangeRows | None, whole_files: bool
) -> pa.Table:
    found, deleted = match.mask(start, batch.num_rows), match.before.mask(start, batch.num_rows)
    if change is None:
        return pa.Table.from_batches([filter_rows(batch, ~found & ~deleted)])
    changed = change(batch.filter(pa.array(found)))
    if not whole_files:
        return changed
    replaced = replace_rows(batch, np.flatnonzero(found), changed)
    return pa.Table.from_batches([filter_rows(replaced, ~deleted)])


def build_removal_message(
    context: TableContext, bucket: DataSplit | CommitMessage, files: Sequence[FileMatch], vectors: BucketVectors
) -> CommitMessage:
    """Return the message that removes rows of a bucket by deletion vectors, or whole files with their vectors.

    `bucket` has the location of the files. Without `deletion-vectors.enabled` whole files are removed.
    """
    whole_files = not context.options.deletion_vectors_enabled
    removed_files = [match.file for match in files if match.removes_all_rows or whole_files]
    changed = {m.file.file_name: m.after for m in files if not (whole_files or m.removes_all_rows)}
    change = write_vectors(context, vectors, changed, removed={f.file_name for f in removed_files})
    return CommitMessage(
        bucket.partition,
        bucket.bucket,
        bucket.total_buckets,
        bucket.bucket_path,
        DataIncrement(
            deleted_files=removed_files,
            new_index_files=change.new,
            deleted_index_files=change.deleted,
        ),
    )


def write_keyed_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the changes of selected rows with one writer."""
    writer = TableWriter(context, change.commit_user)
    count = 0
    with undo_on_failure(writer.abort):
        for split in plan_scan(context.with_hidden_rows(), ScanRequest(change.snapshot, change.predicate)).splits:
            for rows, kinds in read_keyed_changes(context.with_half_memory(), split, change):
                writer.write(rows, kinds)
                count += rows.num_rows
        return WrittenChanges(writer.prepare_commit(), count)


def read_keyed_changes(
    context: TableContext, split: DataSplit, change: SelectedChange
) -> Iterator[tuple[pa.Table, pa.Int8Array]]:
    """Read the selected rows of a split as the changes to write: all columns after the change, and the row kinds."""
    read, assignments = ReadPlan(context.schema.names, change.predicate), change.assignments
    kind = RowKind.UPDATE_AFTER if assignments else RowKind.DELETE
    for batch in read_split(context.with_hidden_rows(), split, read):
        rows = apply_assignments(context.engine, batch, assignments)
        check_versions(context.table, batch, rows, assignments)
        yield rows, repeat_kind(kind, rows.num_rows)
