"""Check tables, expire snapshots, and remove orphan files on executors; do the maintenance that is due.

Invariant: tasks read, list or delete files by the functions that run embedded. The driver plans, commits and deletes
snapshots. Rows of data files stay in the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from paimon.adapters.executors.spark import describe_jobs
from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.fault import HealthReport
from paimon.operations.expire.expire_snapshots import Expired
from paimon.operations.maintenance.due_work import DueRequest, report_tables, run_due_work, to_report
from paimon.spark.maintenance.compact import compact_in_tasks
from paimon.spark.options import check_shared_storage
from paimon.spark.session import get_session
from paimon.spark.tasks.distribute import distribute_table
from paimon.spark.warehouse import open_session_catalog
from paimon.spark.write import open_target
from paimon.table import Table


def check(
    table: Table | str,
    *,
    deep: bool = False,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> HealthReport:
    """Check a table as `Maintain.check` does, with one Spark task per data file.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    deep : bool
        Also read the data files of the newest snapshots and of the tags.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    HealthReport
        The faults, and how much was checked.

    Raises
    ------
    StorageError
        A Spark task failed in all its attempts.
    """
    running = get_session(spark)
    opened = distribute_table(open_target(table, options, running), running)
    with describe_jobs(running, "check", opened.definition.table_name):
        return opened.maintain.check(deep=deep)


def remove_orphans(
    table: Table | str,
    older_than: object = None,
    *,
    dry_run: bool = True,
    allow_young: bool = False,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> pa.Table:
    """List or delete orphan files as `Maintain.remove_orphans` does; tasks list directories and delete files.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    older_than : timedelta, int, str or datetime, optional
        Only files last written before this moment, or older than this age; one day by default.
    dry_run : bool
        Only list; the default.
    allow_young : bool
        Allow `older_than` to be less than a day ago. This can delete files that writers have not committed yet.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    pa.Table
        One row for each file: `path`, `size` (bytes), `modified`.

    Raises
    ------
    InvalidRequest
        The moment of a deletion is in the future, or less than a day ago without `allow_young`.
    StorageError
        A Spark task failed in all its attempts. Some files may be deleted.
    """
    running = get_session(spark)
    opened = distribute_table(open_target(table, options, running), running)
    with describe_jobs(running, "remove_orphans", opened.definition.table_name):
        return opened.maintain.remove_orphans(older_than, dry_run=dry_run, allow_young=allow_young)


def expire_snapshots(  # noqa: PLR0913  (a public signature)
    table: Table | str,
    *,
    retain_min: int | None = None,
    retain_max: int | None = None,
    older_than: object = None,
    max_deletes: int | None = None,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
) -> Expired:
    """Expire snapshots as `Maintain.expire_snapshots` does; tasks delete the data files.

    Parameters
    ----------
    table : Table or str
        A table, or the path of one, or its name in the warehouse of the session.
    retain_min, retain_max : int, optional
        The smallest and the largest number of snapshots to keep.
    older_than : timedelta, int, str or datetime, optional
        Delete snapshots replaced before this moment, or before this age.
    max_deletes : int, optional
        The largest number of snapshots that this call deletes.
    dry_run : bool
        Delete nothing, and return the snapshots that would be deleted.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.
    options : mapping of str to object, optional
        Dynamic table options.

    Returns
    -------
    Expired
        The snapshots that are gone, and how many files were deleted.

    Raises
    ------
    InvalidRequest
        The limits contradict each other.
    StorageError
        A Spark task failed in all its attempts. The snapshots are gone, and some of their files are orphan files.
    """
    running = get_session(spark)
    opened = distribute_table(open_target(table, options, running), running)
    with describe_jobs(running, "expire_snapshots", opened.definition.table_name):
        return opened.maintain.expire_snapshots(
            retain_min=retain_min,
            retain_max=retain_max,
            older_than=older_than,
            max_deletes=max_deletes,
            dry_run=dry_run,
        )


def maintain(
    target: Table | Catalog | str,
    *,
    full: bool = False,
    orphans: bool = False,
    dry_run: bool = False,
    spark: SparkSession | None = None,
) -> pa.Table:
    """Do the maintenance that is due for a table, a database or a catalog, with Spark tasks.

    Parameters
    ----------
    target : Table, Catalog or str
        A table, its path or its name; or a catalog, or the name of a database, for all their tables.
    full : bool
        Compact each bucket into one sorted run, not only what the options require.
    orphans : bool
        Also delete orphan files that are older than a day.
    dry_run : bool
        Only count what is due.
    spark : SparkSession, optional
        The session; by default the active one, or a new local one.

    Returns
    -------
    pa.Table
        One row for each action that changed something or failed: `table`, `action`, `count`, `unit`, `error`. An error
        of one action does not stop the others.

    Raises
    ------
    InvalidRequest
        The session has no warehouse, in which a database could be.
    NotFound
        There is no such table or database.
    """
    running = get_session(spark)
    request = DueRequest(full, orphans, dry_run)

    def run_due(table: Table) -> pa.Table:
        """Do what is due for one table, with tasks."""
        return _run_due_work(table, request, running)

    if isinstance(target, Catalog):
        return report_tables(target, target.table, run_due)
    if isinstance(target, str) and not {"/", "."}.intersection(target):
        catalog = open_session_catalog(running)
        if catalog is None:
            raise InvalidRequest(
                f"The session has no warehouse with a database {target!r}.",
                subject=target,
                hint="call paimon.spark.register(spark, warehouse=…), or give the path of a table",
            )
        names = [f"{target}.{name}" for name in catalog.tables(target)]
        return report_tables(names, catalog.table, run_due)
    return run_due(open_target(target, None, running))


def _run_due_work(table: Table, request: DueRequest, spark: SparkSession) -> pa.Table:
    check_shared_storage(table)
    context = distribute_table(table, spark).context
    with describe_jobs(spark, "maintain", table.definition.table_name):
        return to_report(
            run_due_work(context, request, lambda: compact_in_tasks(table, request.full, None, spark).buckets)
        )
