"""MERGE into append tables with Spark tasks: rows of both sides meet by key, and changes go to splits.

Invariant: each step calls the functions that run embedded. Unchanged rows are not shuffled.
"""

# The task that finds the change of a row has the key, and the task that makes it has the file. So rows travel twice:
#
#     source --+                               units --+
#              +-- by key --> _MergeRows -- by unit ---+--> _WriteFiles                       (buckets, or no vectors)
#     target --+                                       +--> _WriteSplits -- by partition --> RemoveRows   (otherwise)
#
# A row of unit 5 with id 1, at position 7 of the second file of its first split, which task 2 writes:
#
#     by key       (source 5, position n)    id 1, position 7      metadata: split 0, file 1, task 2
#     by unit      (source 5, position 0)    position 7, clause 0, source.v 'x'             to task 2, position = split
#     received     (5, -1) the unit; (5, 0) changes of its split 0; (5, 1) of its split 1; ...; (LAST + n, ...) inserts
#
# Unchanged rows do not travel, and of the target only the columns that conditions need. `_WriteFiles` reads the changed
# files again. What it received is its source, in which row n belongs to the n-th change: the columns of the source that
# new values need came along.
#
# Inserted rows of tables with buckets go to the task that writes their bucket (`_RoutedInserts`), because a bucket has
# one writer. Tables without buckets have no such task: `_MergeRows` writes them, and sends only the messages of the new
# files (`_WrittenInserts`).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.adapters.executors.spark import distribute_tasks, get_parallelism, read_tasks
from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction
from paimon.domain.assignment.merge_columnar import SourceIndex
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.splits import DataSplit
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import BucketVectors
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.row_level.merge_changes import (
    FileChanges,
    compute_insert_rows,
    group_by_clause,
    read_file_vectors,
    read_live_rows,
    read_merged_rows,
)
from paimon.operations.row_level.merge_match import MergeMatcher, RowChanges
from paimon.operations.row_level.selected_rows import BucketMatches, build_removal_message, open_append_writer
from paimon.spark.row_level.keyed_write import LAST
from paimon.spark.row_level.merge_tasks import (
    CONTENT,
    UNIT,
    MergeJob,
    MergePart,
    MergeRun,
    TaskShare,
    find_bucket_tasks,
    receive_unit,
    send_units,
)
from paimon.spark.row_level.work_units import RemoveRows, WorkUnit, has_partial_units, send_removals
from paimon.spark.tasks.message_tasks import (
    CountedWrite,
    ForwardCounts,
    Prepared,
    add_prepared,
    run_message_tasks,
)
from paimon.spark.tasks.routing import RowRouting, is_routed
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, ReceivedRows, receive_rows, send_rows, shuffle_rows

_POSITION, _CLAUSE, _DATA = "__paimon_position", "__paimon_clause", "data"
_MESSAGES, _CHANGES, _INSERTS = b"messages", b"changes", b"inserts"
"""What a table of sent rows contains, in the metadata of its schema."""


def merge_append_rows(
    run: MergeRun, units: Sequence[WorkUnit], old_vectors: Mapping[BucketKey, BucketVectors]
) -> Iterator[CommitMessage]:
    """Write the changes of a MERGE into an append table; `old_vectors` has its deletion vectors before the change.

    Yields the messages of all tasks. If Spark fails, yields those of the successful tasks, then raises the error.
    """
    spark, job, commit_user = run.spark, run.job, run.commit_user
    context, writers, sent = job.context, get_parallelism(spark), run.source
    if units and job.follows_buckets:
        sent = sent.union(send_units(run, units, find_bucket_tasks(units, job.tasks)))
    elif units:
        sent = sent.union(distribute_tasks(spark, units).mapInArrow(_SendTarget(job, writers), ROWS_SCHEMA))
    merge = _MergeRows(job, RowRouting.of(context, writers), commit_user, run.prepared)
    changed = shuffle_rows(sent, job.tasks).mapInArrow(merge, ROWS_SCHEMA)
    if units:
        changed = changed.union(
            send_units(run, units, [_choose_writer(job, n, u, writers) for n, u in enumerate(units)])
        )
    received = shuffle_rows(changed, writers)
    if not has_partial_units(context, old_vectors):
        write = CountedWrite(_WriteFiles(job, commit_user))
        yield from run_message_tasks(received, write, run.prepared, run.counts)
        return
    tasks = min(writers, len({unit.key for unit in units}) or 1)
    removed = received.mapInArrow(ForwardCounts(_WriteSplits(job, commit_user, tasks, run.prepared)), ROWS_SCHEMA)
    remove = CountedWrite(RemoveRows(context, old_vectors))
    yield from run_message_tasks(shuffle_rows(removed, tasks), remove, run.prepared, run.counts)


def _choose_writer(job: MergeJob, number: int, unit: WorkUnit, writers: int) -> int:
    """Return the number of the task that writes a unit; it also writes the rows inserted into its bucket."""
    return find_bucket_tasks([unit], writers)[0] if job.context.table.is_bucketed else number % writers


@frozen(eq=False)
class _SendTarget:
    """The task that reads rows of the target, and sends each to the task that merges the rows with its key."""

    job: MergeJob
    writers: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, task in read_tasks(batches):
            unit = cast(WorkUnit, task)
            writer = _choose_writer(self.job, number, unit, self.writers)
            for position, rows in enumerate(_read_rows(self.job, unit, writer)):
                keys = [combine_column(rows[name]) for name, _ in self.job.merge.on.pairs]
                yield from send_rows(rows, self.job.find_tasks(keys, rows.num_rows), number, position)


def _read_rows(job: MergeJob, unit: WorkUnit, writer: int) -> Iterator[pa.Table]:
    """Yield the columns that decide which clause applies, with positions.

    The metadata says in which file the rows are, and which task writes it.
    """
    for split_number, split in enumerate(unit.splits):
        bucket = Bucket.of(job.context, split)
        for file_number, (file, before) in enumerate(read_file_vectors(job.context, split)):
            origin = {b"split": str(split_number), b"file": str(file_number), b"task": str(writer)}
            for live in read_live_rows(job.context, job.merge, bucket, file, before):
                rows = pa.Table.from_batches([live.rows]).append_column(_POSITION, pa.array(live.positions))
                yield rows.replace_schema_metadata(origin)


@frozen(eq=False)
class _MergeRows:
    """The task that merges the rows of some keys, and sends what changes to the tasks of the splits."""

    job: MergeJob
    routing: RowRouting
    commit_user: str
    prepared: Prepared

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        share = TaskShare.receive(self.job, batches)
        if share is None:
            return
        output = _RoutedInserts(self, share) if is_routed(self.job.context.table) else _WrittenInserts(self, share)
        with undo_on_failure(output.undo):
            for part in share.parts():
                for received in part.target:
                    unit = receive_unit(received)
                    target = [received.rows] if unit is None else self._read_unit(received.source, unit)
                    for rows in target:
                        for batch in rows.combine_chunks().to_batches():
                            yield from self._send_changes(share, part, received.source, batch)
                for rows, _ in compute_insert_rows(self.job.context, part.matcher, part.matched):
                    share.counts[MergeAction.INSERT] += rows.num_rows
                    yield from output.insert(rows)
        yield from output.finish()
        yield from share.send_counts()

    def _read_unit(self, number: int, unit: WorkUnit) -> Iterator[pa.Table]:
        return _read_rows(self.job, unit, _choose_writer(self.job, number, unit, self.routing.tasks))

    def _send_changes(
        self, share: TaskShare, part: MergePart, unit: int, batch: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        changes = part.find_changes(batch.drop_columns([_POSITION]))
        if not len(changes.rows):
            return
        for clause, numbers, _ in group_by_clause(self.job.merge, changes):
            share.counts[clause.action] += len(numbers)
        sources = pa.array(changes.source_rows, mask=changes.source_rows < 0)
        names = _list_source_columns(self.job.merge, part.matcher.source.schema.names)
        columns = {_POSITION: batch[_POSITION].take(pa.array(changes.rows)), _CLAUSE: pa.array(changes.clauses)}
        columns |= {name: part.matcher.source[name].take(sources) for name in names}
        origin = batch.schema.metadata
        rows = pa.table(columns).replace_schema_metadata({**origin, CONTENT: _CHANGES})
        task = np.full(rows.num_rows, int(origin[b"task"]), np.int32)
        yield from send_rows(rows, task, unit, int(origin[b"split"]))


class _RoutedInserts:
    """The inserted rows of one task, which are sent to the tasks of their buckets."""

    def __init__(self, task: _MergeRows, share: TaskShare) -> None:
        self._context = task.job.context
        self._router = task.routing.open(share.number)
        self._source = LAST + share.number
        self._position = 0

    def insert(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Send rows."""
        whole = conform_to_fields(rows, self._context.schema.fields, f"table {self._context.table.table_name}")
        named = whole.replace_schema_metadata({CONTENT: _INSERTS})
        yield from send_rows(named, self._router.find_tasks(whole), self._source, self._position)
        self._position += 1

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send nothing more."""
        yield from ()

    def undo(self) -> None:
        """Do nothing: this task wrote no file."""


class _WrittenInserts:
    """The inserted rows of one task into a table without buckets, which are written here; their messages are sent."""

    def __init__(self, task: _MergeRows, share: TaskShare) -> None:
        self._writer = open_append_writer(task.job.context, task.commit_user)
        self._prepared = task.prepared
        self._task = np.full(1, share.number % task.routing.tasks, np.int32)
        self._source = LAST + share.number

    def insert(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Write rows."""
        self._writer.write(rows)
        yield from ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send the messages of all files."""
        with undo_on_failure(self.undo):
            data = encode(self._writer.prepare_commit())
        add_prepared(self._prepared, data)
        messages = pa.table({_DATA: pa.array([data], pa.binary())}).replace_schema_metadata({CONTENT: _MESSAGES})
        yield from send_rows(messages, self._task, self._source, 0)

    def undo(self) -> None:
        """Delete the files."""
        self._writer.abort()


def _list_source_columns(merge: BoundMerge, names: Sequence[str]) -> list[str]:
    """Return the columns of the source that the new values of updated rows need, under canonical names."""
    used = {name for clause in merge.matched for name in clause.value_columns()}
    return [name for name in names if any(n == name or n.startswith(f"{name}.") for n in used)]


@frozen(eq=False)
class _Written:
    """What a task wrote: the changed files by unit, and the messages of new files."""

    found: list[tuple[WorkUnit, list[BucketMatches]]]
    messages: list[CommitMessage]


@frozen(eq=False)
class _WriteFiles:
    """The task that writes changes of its units, and removes the old rows itself."""

    job: MergeJob
    commit_user: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        written = self.write(batches)
        messages = written.messages
        for unit, found in written.found:
            files = [match for matches in found for match in matches.files]
            messages.append(build_removal_message(self.job.context, unit.splits[0], files, unit.vectors))
        return encode(messages)

    def write(self, batches: Iterator[pa.RecordBatch]) -> _Written:
        """Write the changes of the units that this task received, and the rows inserted into its buckets.

        The batches contain units, their changes, and inserted rows or the commit messages of rows that are already
        written.
        """
        writer = open_append_writer(self.job.context, self.commit_user)
        written = _Written([], [])
        with undo_on_failure(writer.abort):
            for _, group in groupby(receive_rows(batches), key=lambda item: item.source):
                unit: WorkUnit | None = None
                found: list[BucketMatches] = []
                for (content, split), items in groupby(group, key=_get_content):
                    received = list(items)
                    rows = [item.rows for item in received]
                    if content == UNIT:
                        unit = receive_unit(received[0])
                    elif content == _MESSAGES:
                        written.messages.extend(m for table in rows for m in decode(table[_DATA][0].as_py()))
                    elif content == _INSERTS:
                        for table in rows:
                            writer.write(table)
                    elif unit is not None:
                        changed = self._compute_changes(unit.splits[split], rows)
                        found.append(changed[1])
                        for table in changed[0]:
                            writer.write(table)
                if unit is not None and found:
                    written.found.append((unit, found))
            written.messages.extend(writer.prepare_commit())
        return written

    def _compute_changes(
        self, split: DataSplit, tables: Sequence[pa.Table]
    ) -> tuple[Iterator[pa.Table], BucketMatches]:
        """Return the rows to write for a split, and the rows to remove."""
        context, merge = self.job.context, self.job.merge
        files = read_file_vectors(context, split)
        rows = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
        numbers = np.repeat([int(t.schema.metadata[b"file"]) for t in tables], [t.num_rows for t in tables])
        names = [name for name in rows.column_names if name not in (_POSITION, _CLAUSE)]
        source = pa.RecordBatch.from_arrays([combine_column(rows[name]) for name in names], names)
        index = SourceIndex.of([], rows.num_rows)
        matcher = MergeMatcher(context.engine, context.table.table_name, merge, source, index, is_share=True)
        present = set(numbers.tolist())
        changes = [
            FileChanges.of(file, before, _select_changes(rows, np.flatnonzero(numbers == number)))
            for number, (file, before) in enumerate(files)
            if number in present
        ]
        whole_files = not context.options.deletion_vectors_enabled
        new = (row for file in changes for row in read_merged_rows(context, matcher, split, file, whole_files))
        return new, BucketMatches(split, [file.match for file in changes])


def _get_content(received: ReceivedRows) -> tuple[bytes, int]:
    metadata = received.rows.schema.metadata
    return metadata[CONTENT], int(metadata.get(b"split", b"-1"))


def _select_changes(rows: pa.Table, chosen: npt.NDArray[np.int64]) -> RowChanges:
    positions, clauses = (np.asarray(combine_column(rows[name]))[chosen] for name in (_POSITION, _CLAUSE))
    return RowChanges.of_parts([RowChanges(positions, clauses, chosen, np.empty(0, np.int64))])


@frozen(eq=False)
class _WriteSplits:
    """The task that writes changes of its splits, and sends the rows to remove to the tasks of the partitions."""

    job: MergeJob
    commit_user: str
    tasks: int
    prepared: Prepared

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        own = int(first["task"][0].as_py())
        written = _WriteFiles(self.job, self.commit_user).write(_chain(first, batches))
        add_prepared(self.prepared, encode(written.messages))
        found = [matches for _, unit in written.found for matches in unit]
        yield from send_removals(found, written.messages, self.tasks, own)


def _chain(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others
