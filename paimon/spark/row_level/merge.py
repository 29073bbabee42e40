"""A data frame as the source of a MERGE: its rows stay in Spark, and tasks merge them.

Invariant: the driver plans, commits once, and gets no row. The rows of the source are computed once and kept by Spark
until the merge ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, frozen
from pyspark.sql import DataFrame

from paimon.adapters.executors.spark import describe_jobs, drop_cached_rows, get_parallelism
from paimon.builders.merge_builder import MergeBuilder
from paimon.domain.assignment.merge_clauses import BoundMerge
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import Predicate
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.operations.commit.prepared_files import abort_on_failure
from paimon.operations.data_files.deletion_vectors import read_bucket_vectors
from paimon.operations.row_level.merge import MergeRequest, WrittenMerge
from paimon.operations.row_level.merge_source import convert_keys, describe_source, find_target_condition
from paimon.operations.table_context import TableContext
from paimon.spark.options import check_shared_location
from paimon.spark.row_level.merge_append import merge_append_rows
from paimon.spark.row_level.merge_keyed import merge_keyed_rows
from paimon.spark.row_level.merge_tasks import (
    MergeJob,
    MergeRun,
    can_follow_buckets,
    send_source,
    send_source_again,
    summarize_source,
    to_action_counts,
)
from paimon.spark.row_level.work_units import WorkUnit, plan_units
from paimon.spark.session import get_session, register
from paimon.spark.tasks.message_tasks import collect_prepared
from paimon.spark.tasks.routing import check_writers
from paimon.spark.types import to_batch_schema
from paimon.spark.write import check_tasks, open_target
from paimon.table import Table


def merge(
    frame: DataFrame | Callable[[], DataFrame],
    table: Table | str,
    on: str | Sequence[str] | Predicate,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    tasks: int | None = None,
    options: Mapping[str, object] | None = None,
) -> MergeBuilder:
    """Merge a data frame into a table with Spark tasks: update, delete and insert in one commit.

    Add clauses to the result, then call `execute`. Rows of the frame and of the table are shuffled by the columns that
    must be equal. Without such columns, one task merges all rows.

    Parameters
    ----------
    frame : DataFrame or callable
        The source, whose rows stay in Spark. A function that returns it is called again after other users changed the
        table, so the frame may be computed from the table. A frame of the table itself is refused then.
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    on : str, sequence of str or Predicate
        When a row of the frame matches a row of the table; see `Table.merge`.
    source_alias, target_alias : str
        The names of the sides in SQL text.
    tasks : int, optional
        The number of tasks that merge; Spark's default parallelism by default. Each spills its share of the frame if
        that is too large for the memory budget.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    MergeBuilder
        A merge without clauses.

    Raises
    ------
    InvalidRequest, Unsupported
        The table is a system table, or lies in the memory of this process.
    """
    check_tasks(tasks)
    running = get_session(frame.sparkSession if isinstance(frame, DataFrame) else None)
    context = open_target(table, options, running).context
    if not callable(frame):
        FrameSource.of(context, frame)  # data of another kind is refused here
    open_source = partial(FrameSource.of, tasks=tasks)
    return MergeBuilder(context, frame, MergeRequest(on, target_alias, source_alias), open_source)


@frozen(eq=False)
class FrameSource:
    """A source in Spark; see `paimon.operations.row_level.merge.MergeSource`."""

    frame: DataFrame
    fields: tuple[DataField, ...]
    # Number of tasks that merge; None means Spark's default parallelism
    tasks: int | None = None

    @classmethod
    def of(cls, context: TableContext, data: Any, tasks: int | None = None) -> FrameSource:
        """Return a data frame as a source, without reading it; refuse other data and repeated columns."""
        if not isinstance(data, DataFrame):
            message = f"The source of a merge on Spark must be a data frame, not {type(data).__name__!r}"
            raise InvalidRequest(message, subject="source", hint="use spark.createDataFrame, or Table.merge")
        register(data.sparkSession)
        return cls(data, describe_source(to_batch_schema(data.schema), context.schema.fields), tasks)

    def write(
        self, context: TableContext, snapshot: Snapshot | None, merge: BoundMerge, commit_user: str
    ) -> WrittenMerge:
        """Write the changes of a merge with Spark tasks.

        Raises `InvalidRequest` if two source rows match one row of the table. Refuses a table in the memory of this
        process.
        """
        if context.options.data_evolution_enabled:
            message = f"merging into table {context.table.table_name!r} with option 'data-evolution.enabled' on Spark"
            raise Unsupported(message, hint="use Table.merge, which merges in one process")
        check_shared_location(context.table.location)
        with describe_jobs(self.frame.sparkSession, "merge", context.table.table_name):
            return self._write(context, snapshot, merge, commit_user)

    def _write(
        self, context: TableContext, snapshot: Snapshot | None, merge: BoundMerge, commit_user: str
    ) -> WrittenMerge:
        spark = self.frame.sparkSession
        # Without columns that must be equal, each row of the source can match each row of the target.
        tasks = (self.tasks or get_parallelism(spark)) if merge.on.pairs else 1
        job = MergeJob(context, merge, self.fields, tasks, can_follow_buckets(context, merge))
        convert_keys(context, merge.on, job.make_empty_source())  # a type that does not fit is refused here
        sent = send_source(self.frame, job).persist()
        run = MergeRun(spark, job, sent, commit_user, collect_prepared(spark))
        messages: list[CommitMessage] = []
        try:
            with abort_on_failure(context, messages, commit_user, snapshot):
                messages.extend(_run_tasks(run, snapshot))
                check_writers(context.table, messages)
        finally:
            drop_cached_rows(sent)
        return WrittenMerge(messages, to_action_counts(run.counts))

    def drop(self) -> None:
        """Do nothing: Spark keeps the rows only while `write` runs."""


def _run_tasks(run: MergeRun, snapshot: Snapshot | None) -> Iterator[CommitMessage]:
    job, context = run.job, run.job.context
    summary = summarize_source(run.source, job)
    condition = find_target_condition(context, job.merge, summary.keys)
    # Without a row in the source, only rows that it does not match can change.
    read = snapshot if summary.rows or job.merge.not_matched_by_source else None
    if context.schema.primary_keys:
        units = [] if read is None else plan_units(context.with_hidden_rows(), read, condition)
        yield from merge_keyed_rows(_adapt_to_units(run, units), units, condition)
        return
    old_vectors = read_bucket_vectors(context, read)
    units = [] if read is None else plan_units(context, read, condition, old_vectors)
    yield from merge_append_rows(_adapt_to_units(run, units), units, old_vectors)


def _adapt_to_units(run: MergeRun, units: Sequence[WorkUnit]) -> MergeRun:
    """Return a run that shuffles both sides by key if a partition has another number of buckets than the table."""
    total = run.job.context.options.bucket
    if not run.job.follows_buckets or all(unit.splits[0].total_buckets == total for unit in units):
        return run
    job = evolve(run.job, follows_buckets=False)
    return evolve(run, job=job, source=send_source_again(run, job))
