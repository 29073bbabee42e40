"""Delete, update and merge rows with Spark tasks, from Python.

Invariant: the rules, the commit and the errors are those of `Table.delete`, `Table.update` and `Table.merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from paimon.builders.direct_writes import WriteResult, delete_where, update_where
from paimon.builders.merge_builder import MergeBuilder
from paimon.domain.predicate.expression import Predicate
from paimon.operations.row_level.merge import MergeRequest
from paimon.spark.remote import check_classic
from paimon.spark.row_level.change_rows import SparkRowChanges
from paimon.spark.row_level.merge import FrameSource
from paimon.spark.session import get_session
from paimon.spark.write import check_tasks, open_target
from paimon.table import Table


def delete(
    table: Table | str,
    where: str | Predicate,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteResult:
    """Delete the rows where `where` is true, with one Spark task per split or bucket, in one commit.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    where : str or Predicate
        The rows to delete, as in `Table.delete`.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.
    properties : mapping of str to str, optional
        Text to store in the snapshot.

    Returns
    -------
    WriteResult
        As `Table.delete` returns it.

    Raises
    ------
    InvalidRequest, Unsupported, CommitConflict
        As `Table.delete` raises them, or the session is one of Spark Connect. Nothing was deleted.
    StorageError
        A Spark task failed in all its attempts. Nothing was deleted.
    """
    running = get_session(spark)
    _check_counting(running, "delete")
    opened = open_target(table, options, running)
    return delete_where(opened.context, where, properties, SparkRowChanges(running))


def update(
    table: Table | str,
    set: Mapping[str, Any],
    where: str | Predicate,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteResult:
    """Set columns of the rows where `where` is true, with one Spark task per split or bucket, in one commit.

    Parameters
    ----------
    table : Table or str
        As in `delete`.
    set : mapping of str to object
        By column: SQL text over the row before the update, or a Python value that is not text; see `Table.update`.
    where : str or Predicate
        The rows to change.
    spark, options, properties : SparkSession, mapping of str to object, mapping of str to str
        As in `delete`.

    Returns
    -------
    WriteResult
        As `Table.update` returns it.

    Raises
    ------
    InvalidRequest, Unsupported, CommitConflict
        As `Table.update` raises them, or the session is one of Spark Connect. Nothing was updated.
    StorageError
        A Spark task failed in all its attempts. Nothing was updated.
    """
    running = get_session(spark)
    _check_counting(running, "update")
    opened = open_target(table, options, running)
    return update_where(opened.context, set, where, properties, SparkRowChanges(running))


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
        The table is a system table, or lies in the memory of this process, or the session is one of Spark Connect.
    """
    check_tasks(tasks)
    running = frame.sparkSession if isinstance(frame, DataFrame) else get_session(None)
    _check_counting(running, "merge")
    context = open_target(table, options, running).context
    if not callable(frame):
        FrameSource.of(context, frame)  # data of another kind is refused here
    open_source = partial(FrameSource.of, tasks=tasks)
    return MergeBuilder(context, frame, MergeRequest(on, target_alias, source_alias), open_source)


def _check_counting(spark: SparkSession, name: str) -> None:
    """Refuse Spark Connect: the numbers of changed rows come from accumulators, which it does not have."""
    check_classic(spark, name, f"use a classic Spark session, or Table.{name} in this process")
