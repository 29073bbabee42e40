"""Number the rows of an append table, so that a query engine can find the rows to delete or update by their numbers.

Invariant: the result is that of `selected_rows` for the same rows. The changes stream; memory holds those of one file,
and the positions of deleted rows. A commit of another user that changed rows after the snapshot refuses the change.
"""

# SQL statements with subqueries let the query engine find the rows. Rows of append tables have no key, so each gets a
# number, which the query returns with the new values, in ascending order:
#
#     file       f0          f1        f2
#     position   0  1  2     0  1      0  1  2  3
#     number     0  1  2     3  4      5  6  7  8
#     found         1           4               8
#     taken      before 3    before 5  before 9
#
# Both streams are ordered, so `_Stream` gives each file its changes without holding the others. The position in the
# file is the number minus the number of its first row; deleted rows are counted, or this would not hold. Files that the
# condition excludes get no numbers, so numbers are valid for one plan alone. Spark gives each task whole files, with
# the part of the changes that lies in them.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import define, field, frozen

from paimon.domain.assignment.evaluate_columnar import evaluate_column, fit_values
from paimon.domain.assignment.expression import ColumnDefault
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.convert import convert_array
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import AmbiguousMerge, InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.schema.rules.row_level import check_changeable_by_query, check_deletable, check_updatable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.prepared_files import abort_on_refusal
from paimon.operations.data_files.deletion_vectors import (
    delete_index_files,
    get_bucket_vectors,
    read_bucket_vectors,
    read_vector,
)
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.metadata.snapshots import check_unexpired
from paimon.operations.read.evaluate import evaluate_condition
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import Projection, ReadPlan, bind_predicate, select_fields
from paimon.operations.row_level.delete_update import RowChange
from paimon.operations.row_level.selected_rows import (
    BucketMatches,
    ChangeRows,
    FileMatch,
    WrittenChanges,
    build_removal_message,
    open_append_writer,
    read_new_rows,
    read_old_vector,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows
from paimon.operations.write.writer import TableWriter

_Rows: TypeAlias = tuple[pa.RecordBatch, npt.NDArray[np.int64]]
"""Rows and their numbers."""


@frozen(eq=False)
class NumberedFile:
    """A file and the numbers of its rows."""

    split: DataSplit
    file: DataFileMeta
    deleted: DeletionFile | None
    first: int

    @property
    def end(self) -> int:
        """The number of the first row after the file."""
        return self.first + self.file.row_count


def _to_tuple(values: Iterable[NumberedFile]) -> tuple[NumberedFile, ...]:
    return tuple(values)


@frozen(eq=False)
class NumberedRows:
    """The live rows of an append table at one snapshot, with their numbers."""

    context: TableContext
    # None for an empty table
    snapshot: Snapshot | None
    # The columns, without the number, and the condition
    read: ReadPlan
    number_name: str
    # The files in which the condition can be true, in the order of their numbers
    files: tuple[NumberedFile, ...] = field(converter=_to_tuple)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, and the number as int64 at the end."""
        schema = Projection.of(self.context.table, self.read).schema
        return schema.append(pa.field(self.number_name, pa.int64(), nullable=False))

    def to_batches(self) -> pa.RecordBatchReader:
        """Read the rows; each call reads them again."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self._read())

    def explain(self) -> str:
        """Describe what is read, in lines for people."""
        condition = "" if self.read.predicate is None else f"\n  where:   {format_predicate(self.read.predicate)}"
        return f"  columns: {', '.join(self.read.columns)}, and the number of each row{condition}"

    def _read(self) -> Iterator[pa.RecordBatch]:
        projection = Projection.of(self.context.table, self.read)
        names = {*self.read.columns, *self.read.predicate_columns}
        columns = select_fields(self.context.schema.fields, names) or (LEVEL,)
        schema = self.arrow_schema
        for numbered in self.files:
            for rows, numbers in self._read_file(numbered, columns):
                shown = projection.apply(rows).columns
                yield pa.RecordBatch.from_arrays([*shown, pa.array(numbers)], schema=schema)

    def _read_file(self, numbered: NumberedFile, columns: Sequence[DataField]) -> Iterator[_Rows]:
        engine, predicate = self.context.engine, self.read.predicate
        vector = None if numbered.deleted is None else read_vector(engine, numbered.deleted)
        start = 0
        # No row group may be skipped, because the position of a row is the number of rows before it.
        for batch in read_data_file(Bucket.of(self.context, numbered.split), numbered.file, columns):
            live = np.ones(batch.num_rows, np.bool_) if vector is None else ~vector.mask(start, batch.num_rows)
            if predicate is not None:
                live &= evaluate_condition(engine, predicate, batch).to_numpy(zero_copy_only=False)
            numbers = np.flatnonzero(live)
            yield batch if live.all() else batch.take(pa.array(numbers)), numbers + (numbered.first + start)
            start += batch.num_rows


def plan_numbered_rows(
    context: TableContext,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    predicate: Predicate | None,
    number_name: str,
) -> NumberedRows:
    """Plan numbered rows of an append table, without reads; `predicate` is on columns as reads show them."""
    bound = None if predicate is None else bind_predicate(predicate, context.table, context.schema.fields)
    files: list[NumberedFile] = []
    first = 0
    for split in plan_scan(context, ScanRequest(snapshot, bound)).splits if snapshot is not None else ():
        for file, deleted in file_vectors(split.files, split.deletion_files):
            files.append(NumberedFile(split, file, deleted, first))
            first += file.row_count
    return NumberedRows(context, snapshot, ReadPlan(tuple(columns), bound), number_name, files)


def check_numbered_change(
    context: TableContext, columns: Sequence[str] | None, moves_rows: bool = False
) -> tuple[DataField, ...]:
    """Check a change of numbered rows before the query; `moves_rows` allows new partition values."""
    check_changeable_by_query(context.table)
    if columns is not None:
        return check_updatable(context.table, columns, moves_rows)
    check_deletable(context.table)
    return ()


@frozen(eq=False)
class NumberedChange:
    """A delete or an update of rows that a query finds by their numbers."""

    # The rows among which the query looks
    rows: NumberedRows
    # The columns that get new values; if empty, the rows are deleted
    columns: tuple[DataField, ...]
    commit_user: str
    # The columns that get their default; the query has no values for them
    defaults: frozenset[str] = frozenset()
    # Whether the query is a MERGE, whose second column is true for rows to delete instead
    marks_deletes: bool = False

    @property
    def context(self) -> TableContext:
        """Engine and table."""
        return self.rows.context

    @property
    def computed(self) -> list[DataField]:
        """The columns whose values the query has, after the number of the row and the mark."""
        return [column for column in self.columns if column.name not in self.defaults]

    @property
    def first_value(self) -> int:
        """The position of the first value among the columns of the query."""
        return 2 if self.marks_deletes else 1

    @property
    def operation(self) -> str:
        """What the snapshot reports."""
        return "MERGE" if self.marks_deletes else "UPDATE" if self.columns else "DELETE"


WriteNumberedChange: TypeAlias = Callable[[NumberedChange], WrittenChanges]
"""Runs the query, and writes the files of a change."""


def change_numbered_rows(
    change: NumberedChange, write: WriteNumberedChange, properties: Mapping[str, str] | None = None
) -> RowChange:
    """Delete or update rows in one commit.

    `write` calls `write_numbered_changes` with the result of the query, here or in tasks. CommitConflict: another user
    changed rows, or the snapshot expired during the call; nothing was changed.
    """
    context, snapshot = change.context, change.rows.snapshot
    with check_unexpired(context, snapshot, "run the statement again"):
        written = write(change)
    request = CommitRequest(
        written.messages,
        change.commit_user,
        properties=properties or {},
        operation=change.operation,
        read_state=ReadState.of(snapshot),
    )
    with abort_on_refusal(context, written.messages, change.commit_user, snapshot):
        return RowChange(commit_rows(context, request), written.rows)


def write_numbered_changes(
    change: NumberedChange, changes: pa.RecordBatchReader, concurrent: bool = False
) -> WrittenChanges:
    """Write the files and the deletion vectors of a change.

    `changes` has the numbers of the rows, ascending and all different, the mark of a MERGE, and the new values. If they
    are a part of the changes, no other part has rows of the same files or deletion vectors. `concurrent` encodes
    columns in the executor; a task must not set it.
    """
    job = _Job.start(change, changes, concurrent)
    with undo_on_failure(job.undo):
        job.change_files()
        job.remove_rows()
        return WrittenChanges([*job.messages, *job.writer.prepare_commit()], job.count)


def write_new_versions(
    change: NumberedChange, changes: pa.RecordBatchReader
) -> tuple[Sequence[BucketMatches], Sequence[CommitMessage]]:
    """Write the new versions of rows, and leave it to the caller to remove the old ones.

    The arguments are those of `write_numbered_changes`, except that other parts may have rows of the same deletion
    vectors.
    """
    job = _Job.start(change, changes)
    with undo_on_failure(job.undo):
        job.change_files()
        return list(job.found.values()), job.writer.prepare_commit()


def check_value_types(change: NumberedChange, schema: pa.Schema) -> None:
    """Refuse types of new values that do not fit, also if no row changes."""
    for column, given in zip(change.computed, schema.types[change.first_value :], strict=True):
        fit_values(pa.nulls(0, given), column)


@frozen(eq=False)
class _Job:
    """A change that is being written."""

    change: NumberedChange
    writer: TableWriter
    changes: _Stream
    found: dict[tuple[bytes, int], BucketMatches] = field(factory=dict)
    messages: list[CommitMessage] = field(factory=list)

    @classmethod
    def start(cls, change: NumberedChange, changes: pa.RecordBatchReader, concurrent: bool = False) -> _Job:
        """Open a writer for a change."""
        check_value_types(change, changes.schema)
        stream = _Stream(changes, change.context.table.table_name if change.marks_deletes else None)
        return cls(change, open_append_writer(change.context, change.commit_user, concurrent), stream)

    @property
    def context(self) -> TableContext:
        """Engine and table."""
        return self.change.context

    @property
    def count(self) -> int:
        """The number of changed rows."""
        return sum(found.count for found in self.found.values())

    def undo(self) -> None:
        """Delete what was written before an error."""
        self.writer.abort()
        delete_index_files(self.context, [e for m in self.messages for e in m.data.new_index_files])

    def change_files(self) -> None:
        """Write the new versions of all rows."""
        for file in self.change.rows.files:
            self.change_file(file)

    def change_file(self, file: NumberedFile) -> None:
        """Write the new versions of the rows of one file, and record the old ones."""
        changes = self.changes.take_before(file.end)
        if not changes.num_rows:
            return
        positions = changes.column(0).to_numpy() - file.first
        before = read_old_vector(self.context, file.deleted)
        match = FileMatch(file.file, before, before.with_deleted(positions))
        rewritten, change = match, None
        if self.change.marks_deletes:
            deleted = changes.column(1).to_numpy()
            left = before.with_deleted(positions[deleted])
            rewritten = match if deleted.all() else FileMatch(file.file, left, match.after)
            changes = changes.filter(pa.array(~deleted))
        if self.change.columns and changes.num_rows:
            change = self._plan_change(changes)
        for rows in read_new_rows(self.context, file.split, rewritten, change):
            self.writer.write(rows)
        key = file.split.partition, file.split.bucket
        earlier = self.found.setdefault(key, BucketMatches(file.split, ()))
        self.found[key] = BucketMatches(file.split, (*earlier.files, match))

    def remove_rows(self) -> None:
        """Make the messages that remove the old rows."""
        snapshot = self.change.rows.snapshot
        old_vectors = {} if snapshot is None or not self.found else read_bucket_vectors(self.context, snapshot)
        for key, matches in self.found.items():
            vectors = get_bucket_vectors(old_vectors, key)
            self.messages.append(build_removal_message(self.context, matches.split, matches.files, vectors))

    def _plan_change(self, changes: pa.Table) -> ChangeRows:
        """Return a function that replaces values of the changed rows, which it gets in the order of their numbers."""
        values = {
            column.name: convert_array(fit_values(combine_column(given), column), column.type, column.name)
            for column, given in zip(self.change.computed, changes.columns[self.change.first_value :], strict=True)
        }
        numbers = pa.RecordBatch.from_arrays([combine_column(changes.column(0))], ["number"])
        for column in self.change.columns:
            if column.name in self.change.defaults:
                default = evaluate_column(ColumnDefault(), numbers, column)
                values[column.name] = convert_array(default, column.type, column.name)
        position = 0

        def change(rows: pa.RecordBatch) -> pa.Table:
            """Return the next rows with their new values."""
            nonlocal position
            part = slice(position, position + rows.num_rows)
            position += rows.num_rows
            columns = [
                values[name][part] if name in values else old
                for name, old in zip(rows.schema.names, rows.columns, strict=True)
            ]
            return pa.Table.from_arrays(columns, schema=rows.schema)

        return change


@define(eq=False)
class _Stream:
    """A state machine: the changes that no file has taken yet, in ascending order of their numbers."""

    reader: pa.RecordBatchReader
    # The table of a MERGE, in which two rows of the source may match one row
    merged_table: str | None = None
    rest: pa.RecordBatch | None = None
    last: int = -1

    def take_before(self, end: int) -> pa.Table:
        """Return the changes below row number `end`; InvalidRequest if the engine broke the order."""
        parts: list[pa.RecordBatch] = []
        while self._load():
            assert self.rest is not None
            count = int(np.searchsorted(self.rest.column(0).to_numpy(), end))
            parts.append(self.rest.slice(0, count))
            self.rest = self.rest.slice(count)
            if self.rest.num_rows:
                break
        return pa.Table.from_batches(parts, self.reader.schema)

    def _load(self) -> bool:
        """Read the next batch if all rows of the one before it are taken; return whether there is a row."""
        while self.rest is None or not self.rest.num_rows:
            try:
                self.rest = self.reader.read_next_batch()
            except StopIteration:
                return False
            numbers = self.rest.column(0).to_numpy()
            if len(numbers):
                steps = np.diff(numbers, prepend=self.last)
                if self.merged_table is not None and (steps == 0).any():
                    wrong = f"Two rows of the source match the same row of table {self.merged_table!r}."
                    hint = "remove repeated keys from the source, or make the ON condition stricter"
                    raise AmbiguousMerge(wrong, subject="source", hint=hint)
                if (steps <= 0).any():
                    raise InvalidRequest("The query engine returned changed rows in the wrong order.", subject="engine")
                self.last = int(numbers[-1])
        return True
