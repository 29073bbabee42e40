"""MERGE into primary-key tables with Spark tasks: rows of both sides meet by key, and changes go to their buckets.

Invariant: a task finds and computes changes with the functions that run embedded. Inserted rows are newer than changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import cast

import pyarrow as pa
from attrs import frozen

from paimon.adapters.executors.spark import distribute_tasks, read_tasks
from paimon.domain.assignment.merge_clauses import MergeAction, MergeClause
from paimon.domain.commit.message import CommitMessage
from paimon.domain.predicate.expression import Predicate
from paimon.operations.row_level.merge_changes import compute_insert_rows, compute_keyed_rows, read_keyed_target
from paimon.spark.row_level.keyed_write import ChangedRowSender, KeyedWrite
from paimon.spark.row_level.merge_tasks import (
    MergeJob,
    MergePart,
    MergeRun,
    TaskShare,
    find_bucket_tasks,
    receive_unit,
    send_units,
)
from paimon.spark.row_level.work_units import WorkUnit
from paimon.spark.tasks.routing import choose_tasks
from paimon.spark.tasks.shuffle import ROWS_SCHEMA, ReceivedRows, send_rows, shuffle_rows


def merge_keyed_rows(run: MergeRun, units: Sequence[WorkUnit], condition: Predicate | None) -> Iterator[CommitMessage]:
    """Write the changes of a MERGE into a primary-key table.

    `condition` is true for each target row that can matter to the merge.

    Yields the messages of all tasks. If Spark fails, yields those of the successful tasks, then raises the error.
    """
    job, sent = run.job, run.source
    if units and job.follows_buckets:
        sent = sent.union(send_units(run, units, find_bucket_tasks(units, job.tasks)))
    elif units:
        sent = sent.union(distribute_tasks(run.spark, units).mapInArrow(_SendTarget(job, condition), ROWS_SCHEMA))
    write = KeyedWrite.start(job.context, run.commit_user, choose_tasks(run.spark, job.context.table))
    merged = shuffle_rows(sent, job.tasks).mapInArrow(_MergeRows(job, condition, write.sender), ROWS_SCHEMA)
    yield from write.run(merged, run.prepared, run.counts)


@frozen(eq=False)
class _SendTarget:
    """The task that reads rows of the target, and sends each to the task that merges the rows with its key."""

    job: MergeJob
    condition: Predicate | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self.job
        for number, unit in read_tasks(batches):
            position = 0
            for split in cast(WorkUnit, unit).splits:
                for batch in read_keyed_target(job.context, job.merge, self.condition, split):
                    keys = [batch[name] for name, _ in job.merge.on.pairs]
                    rows = pa.Table.from_batches([batch])
                    yield from send_rows(rows, job.find_tasks(keys, rows.num_rows), number, position)
                    position += 1


@frozen(eq=False)
class _MergeRows:
    """The task that merges the rows of some keys, and sends what changes to the tasks that write it."""

    job: MergeJob
    condition: Predicate | None
    sender: ChangedRowSender

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        share = TaskShare.receive(self.job, batches)
        if share is None:
            return
        output, positions = self.sender.open(share.number), count()
        for part in share.parts():
            for clause, rows, kinds in self._find_changes(part):
                yield from output.send(rows, kinds, next(positions))
                share.counts[clause.action] += rows.num_rows
            for rows, kinds in compute_insert_rows(self.job.context, part.matcher, part.matched):
                yield from output.send(rows, kinds, next(positions), comes_last=True)
                share.counts[MergeAction.INSERT] += rows.num_rows
        yield from share.send_counts()

    def _find_changes(self, part: MergePart) -> Iterator[tuple[MergeClause, pa.Table, pa.Int8Array]]:
        for received in part.target:
            for batch in self._list_batches(received):
                yield from compute_keyed_rows(self.job.context, part.matcher, batch, part.find_changes(batch))

    def _list_batches(self, received: ReceivedRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the target that the task received; if these are a unit, it reads them now."""
        unit = receive_unit(received)
        if unit is None:
            yield from received.rows.combine_chunks().to_batches()
        else:
            for split in unit.splits:
                yield from read_keyed_target(self.job.context, self.job.merge, self.condition, split)
