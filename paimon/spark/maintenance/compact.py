"""Compact on executors: one task per bucket, and one commit by the driver.

Invariant: a task runs the function that compacts a bucket embedded, and returns its encoded commit messages. Tasks that
fail or run twice leave orphan files at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import describe_jobs
from paimon.domain.errors import Unsupported
from paimon.domain.maintenance.sort_order import NO_STRATEGY, SortOrder, bind_sort_order, is_clustered_locally
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.operations.compact.compact import CompactResult
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.table_context import commit_user_of
from paimon.operations.write.compact_table import compact_postponed, compact_table
from paimon.scan import condition_of
from paimon.spark.maintenance.postponed import SparkPostponedCompaction
from paimon.spark.maintenance.sort import SparkSort
from paimon.spark.session import get_session
from paimon.spark.tasks.distribute import distribute_table
from paimon.spark.write import open_target
from paimon.table import Table


def compact(  # noqa: PLR0913  (what a caller may set)
    table: Table | str,
    full: bool = False,
    where: str | Predicate | None = None,
    *,
    order_strategy: str = NO_STRATEGY,
    order_by: Sequence[str] | str | None = None,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> CompactResult:
    """Compact a table once, with one Spark task per bucket.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    full : bool
        Compact each bucket into one sorted run, not only what the table options require now.
    where : str or Predicate, optional
        A condition on partition columns; only these partitions are compacted.
    order_strategy : str
        ``"order"``, ``"zorder"`` or ``"hilbert"``: rewrite all files of an append table, with the rows of each bucket
        sorted by `order_by`, or along a curve through these columns.
    order_by : sequence of str or str, optional
        The columns to sort by; a text separates them by commas.
    dry_run : bool
        Write nothing, and return what would be compacted. No Spark task runs.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    CompactResult
        The snapshot of the compaction, if there was anything to do, and counts of buckets, files and records.

    Raises
    ------
    CommitConflict
        Another compaction or an overwrite replaced the same files during the call. Compact again.
    InvalidRequest
        The table is a system table.
    StorageError
        A Spark task failed in all its attempts. Nothing was committed.
    """
    running = get_session(spark)
    opened = open_target(table, options, running)
    order = bind_sort_order(opened.definition, order_strategy, order_by)
    if order is not None and opened.definition.bucket_mode is BucketMode.DYNAMIC:
        raise Unsupported("a sorted compaction of dynamic buckets on Spark", hint="call Table.compact in one process")
    if dry_run:
        return opened.compact(full, where, order_strategy=order_strategy, order_by=order_by, dry_run=True)
    done = compact_in_tasks(opened, full, where, running, order)
    # Expiry of a write-only table runs where it is compacted.
    run_after_commit(opened.with_options({"write-only": False}).context, done.snapshot_ids)
    return done


def compact_in_tasks(
    table: Table,
    full: bool,
    where: str | Predicate | None,
    running: SparkSession,
    order: SortOrder | None = None,
) -> CompactResult:
    """Compact a table as `compact` does, without the maintenance that follows a commit."""
    with describe_jobs(running, "compact", table.definition.table_name):
        return _compact_in_tasks(table, full, where, running, order)


def _compact_in_tasks(
    table: Table, full: bool, where: str | Predicate | None, running: SparkSession, order: SortOrder | None
) -> CompactResult:
    predicate = None if where is None else condition_of(where)
    user = commit_user_of(table.context, None)
    if table.definition.options.bucket == POSTPONED:
        return compact_postponed(table.context, user, full, predicate, SparkPostponedCompaction(running))
    distributed = distribute_table(table, running).context
    options = table.definition.options
    is_sorted = order is not None or (options.clustering_incremental and not is_clustered_locally(options))
    sort = SparkSort(running) if is_sorted and table.definition.bucket_mode is BucketMode.UNAWARE else None
    return compact_table(distributed, user, full, predicate, order, sort)
