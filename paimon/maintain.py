"""Maintenance of a table on request: the methods of ``table.maintain``, and compaction and rescale of partitions.

Invariant: a file that a reference needs is never deleted. Each method returns what it did, and can be called again
after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.fault import HealthReport
from paimon.domain.maintenance.health import TableHealth
from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.options.parse import parse_memory
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.operations.compact.compact import CompactResult
from paimon.operations.compact.compact_manifests import ManifestsCompacted, compact_manifests
from paimon.operations.compact.rewrite_indexes import IndexesRewritten, rewrite_file_indexes
from paimon.operations.expire.expire_partitions import expire_partitions, to_partition_retention
from paimon.operations.expire.expire_snapshots import Expired
from paimon.operations.expire.orphan_files import A_DAY, find_orphan_files, remove_orphans
from paimon.operations.expire.retention_reasons import expire_and_explain, expire_changelogs_and_explain
from paimon.operations.global_indexes import GlobalIndexChange, create_global_index, drop_global_index
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.maintenance.due_work import DueRequest, run_due_work, to_report
from paimon.operations.maintenance.missing_files import (
    RemovedManifests,
    RepairedEarliestSnapshot,
    remove_missing_files,
    remove_missing_manifests,
    repair_earliest,
)
from paimon.operations.maintenance.purge import Purged, purge
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.read.time_travel import to_epoch_millis
from paimon.operations.refs.mark_partitions import mark_partitions_done
from paimon.operations.refs.rollback import RolledBack, roll_back
from paimon.operations.refs.tags import expire_tags
from paimon.operations.rescale.rescale import RescaleResult, plan_rescale, rescale
from paimon.operations.rescale.sort_buckets import plan_bucket_sort, sort_buckets
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.operations.write.compact_table import compact_table, plan_table_compaction
from paimon.references import Age, age_millis, before_millis, to_older_than
from paimon.scan import condition_of


@frozen(eq=False, repr=False)
class Maintain:
    """Methods for expiry, orphan files, checks and rollback; see `Table.maintain`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    """

    _context: TableContext = field(alias="context")

    def expire_snapshots(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: object = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
    ) -> Expired:
        """Delete the oldest snapshots and the files that only they reference, as the options `snapshot.*` define.

        Parameters
        ----------
        retain_min, retain_max : int, optional
            The smallest and the largest number of snapshots to keep, instead of `snapshot.num-retained.min` and `.max`.
        older_than : timedelta, int, str or datetime, optional
            Delete snapshots replaced before this moment, instead of `snapshot.time-retained`: an age (timedelta), or a
            time as in `Table.scan`.
        max_deletes : int, optional
            The largest number of snapshots that this call deletes, instead of `snapshot.expire.limit`.
        dry_run : bool
            Delete nothing, and return the snapshots that would be deleted.

        Returns
        -------
        Expired
            The snapshots that are gone, and how many files were deleted. `retained_by` lists what retains the others:
            each consumer, tag or branch that holds back a snapshot or its files, then the option.

        Raises
        ------
        InvalidRequest
            The numbers contradict each other.
        CorruptTable, StorageError
            A reference that stays cannot be read; no data file was deleted.
        """
        retention = override_retention(
            self._context,
            Retention.of_snapshots(self._context.options),
            retain_min,
            retain_max,
            older_than,
            max_deletes,
        )
        return on_same_table(expire_and_explain)(self._context, retention, dry_run)

    def expire_changelogs(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: object = None,
        max_deletes: int | None = None,
        delete_all: bool = False,
        dry_run: bool = False,
    ) -> Expired:
        """Delete the oldest decoupled changelogs and their files, as the options `changelog.*` define.

        Parameters
        ----------
        retain_min, retain_max : int, optional
            The smallest and the largest number to keep, instead of `changelog.num-retained.min` and `.max`.
        older_than : timedelta, int, str or datetime, optional
            Delete changelogs older than this, instead of `changelog.time-retained`; as in `expire_snapshots`.
        max_deletes : int, optional
            The largest number of changelogs that this call deletes.
        delete_all : bool
            Delete all decoupled changelogs; the limits have no effect.
        dry_run : bool
            Delete nothing, and return the changelogs that would be deleted.

        Returns
        -------
        Expired
            The changelogs that are gone, and how many files were deleted. Its `retained_by` names what retains the
            others.

        Raises
        ------
        InvalidRequest
            The numbers contradict each other.
        CorruptTable, StorageError
            A reference that stays cannot be read; no data file was deleted.
        """
        retention = override_retention(
            self._context,
            Retention.of_changelogs(self._context.options),
            retain_min,
            retain_max,
            older_than,
            max_deletes,
        )
        return on_same_table(expire_changelogs_and_explain)(self._context, retention, delete_all, dry_run)

    def expire_tags(self, older_than: object = None) -> list[str]:
        """Delete the tags whose time to live is over, and those created before `older_than`; return their names."""
        older = None if older_than is None else to_older_than(self._context.engine, older_than)
        return on_same_table(expire_tags)(self._context, older)

    def expire_partitions(
        self, age: Age | None = None, *, max_partitions: int | None = None
    ) -> list[Mapping[str, str | None]]:
        """Drop the partitions that are older than an age.

        Parameters
        ----------
        age : timedelta, int or str, optional
            The age, in milliseconds or as text; by default `partition.expiration-time`.
        max_partitions : int, optional
            The largest number of partitions that this call drops.

        Returns
        -------
        list of mapping of str to str
            The partition values of each dropped partition, as text; None for the default partition.

        Raises
        ------
        InvalidRequest
            The table has no partitions, or neither `age` nor an option says when they expire.
        """
        retention = to_partition_retention(
            self._context.table, None if age is None else age_millis(age), max_partitions
        )
        return on_same_table(expire_partitions)(self._context, self._context.engine.ids.uuid(), retention)

    def check(self, *, deep: bool = False) -> HealthReport:
        """Check that the table is complete and consistent; report each fault, the states it affects and a repair.

        The check follows all references of snapshots, tags and decoupled changelogs on all branches. Files must exist,
        sizes and row counts must agree, sorted runs must not overlap, hints must not be ahead. No file may lie outside
        the table.

        Parameters
        ----------
        deep : bool
            Also read the data files of the newest snapshots and of the tags: rows, order of keys, statistics.

        Returns
        -------
        HealthReport
            The faults, and how much was checked.
        """
        from paimon.operations.fsck.check import check_table  # loaded when a table is checked

        return check_table(self._context, deep)

    def health(
        self,
        where: str | Predicate | None = None,
        *,
        fix: bool = False,
        max_seconds: float | None = None,
        max_bytes: int | str | None = None,
        observed: Mapping[str, int] | None = None,
    ) -> TableHealth:
        """Find what makes the table slow or large: small files, sorted runs, skew, old metadata, orphan files.

        Each finding names its object, its cost, and the procedure that repairs it. Nothing is changed without `fix`.

        Parameters
        ----------
        where : str or Predicate, optional
            A condition that queries use; columns on which a file index would help are findings, too.
        fix : bool
            Run the automatic repairs. No row changes; snapshots expire only as the options of the table allow.
        max_seconds : float, optional
            With `fix`: begin no repair, and no batch of a compaction, after so many seconds.
        max_bytes : int or str, optional
            With `fix`: the bytes of data files that repairs read, as a number or a size such as ``"10 gb"``.
        observed : mapping of str to int, optional
            The metrics of an observer by name. The scans of a table count there what they read in spite of conditions,
            so that columns are found without `where`.

        Returns
        -------
        TableHealth
            The findings in the order of repairs. With `fix`, each has its outcome and the cost that remains.

        Raises
        ------
        InvalidRequest
            A limit is given without `fix`, or the condition names a column that does not exist.
        CorruptTable, StorageError
            Metadata cannot be read; nothing was changed.

        See Also
        --------
        Maintain.check : Whether the table is complete and consistent.
        """
        # loaded when a table is examined
        from paimon.operations.maintenance.health import Conditions
        from paimon.operations.maintenance.repair import examine_table

        conditions = Conditions(None if where is None else condition_of(where), observed or {})
        limit = None if max_bytes is None else parse_memory(str(max_bytes), "max_bytes")
        return examine_table(self._context, conditions, fix, max_seconds, limit)

    def remove_orphans(self, older_than: object = None, *, dry_run: bool = True, allow_young: bool = False) -> pa.Table:
        """List the files that no snapshot, tag or changelog references, or delete them (``dry_run=False``).

        The storage's clock measures the age of a file: a small file that is written for it shows the present time. A
        list, and a storage that refuses writes, take the newest listed file instead.

        Parameters
        ----------
        older_than : timedelta, int, str or datetime, optional
            Only files last written before this moment, or older than this age (timedelta); one day by default.
        dry_run : bool
            Only list; the default. ``False`` deletes the listed files.
        allow_young : bool
            Allow `older_than` to be less than a day ago. This can delete files that writers have not committed yet.

        Returns
        -------
        pa.Table
            One row for each file: `path`, `size` (bytes), `modified`.

        Raises
        ------
        InvalidRequest
            The moment of a deletion is in the future, or less than a day ago without `allow_young`.
        Unsupported
            The storage gives no modification times.
        CorruptTable, StorageError
            A reference cannot be read; nothing was deleted.

        Warns
        -----
        PaimonWarning
            The clock of this machine differs from the storage's by more than a minute.
        """
        age = A_DAY if older_than is None else to_older_than(self._context.engine, older_than)
        if dry_run:
            return find_orphan_files(self._context, age)
        return remove_orphans(self._context, age, allow_young=allow_young)

    def run_due(self, *, full: bool = False, orphans: bool = False, dry_run: bool = False) -> pa.Table:
        """Do the maintenance that is due by the options of the table: compaction and expiry.

        Use it for tables with `write-only`, whose writers leave maintenance to another process.

        Parameters
        ----------
        full : bool
            Compact each bucket into one sorted run, not only what the options require.
        orphans : bool
            Also delete orphan files that are older than a day.
        dry_run : bool
            Only count what is due.

        Returns
        -------
        pa.Table
            One row for each action that changed something or failed: `table`, `action`, `count`, `unit`, `error`. An
            error of one action does not stop the others.

        See Also
        --------
        Catalog.maintain : The same for all tables of a database.
        """
        done = run_due_work(self._context, DueRequest(full, orphans, dry_run), lambda: self._compact(full))
        return to_report(done)

    def _compact(self, full: bool) -> int:
        """Compact the table, and return the number of compacted buckets."""
        context = self._context
        return compact_table(context, commit_user_of(context, None), full).buckets

    def rollback_to(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: object = None,
        watermark: int | None = None,
    ) -> RolledBack:
        """Make an earlier state the latest; all snapshots and tags after it are removed.

        Parameters
        ----------
        snapshot : int, optional
            A snapshot id. Exactly one of the four arguments is given.
        tag : str, optional
            The name of a tag.
        timestamp : int, str or datetime, optional
            A time as in `Table.scan`: the last snapshot at or before it.
        watermark : int, optional
            The last snapshot whose watermark is at most this time, in epoch milliseconds.

        Returns
        -------
        RolledBack
            The snapshot that is the latest now, and what was removed.

        Raises
        ------
        InvalidRequest
            Not exactly one argument is given.
        NotFound
            There is no such snapshot or tag.
        """
        if sum(way is not None for way in (snapshot, tag, timestamp, watermark)) != 1:
            raise InvalidRequest(
                "Rollback needs exactly one of snapshot, tag, timestamp and watermark.", subject="snapshot"
            )
        millis = None if timestamp is None else to_epoch_millis(self._context.engine, timestamp)
        return roll_back(self._context, snapshot, tag, millis, watermark)

    def compact_manifests(self, *, dry_run: bool = False) -> ManifestsCompacted:
        """Merge the manifests, whatever the limits of the options `manifest.*`; no row and no data file changes.

        If many manifests contain the same partitions, the entries of all are sorted, so scans of a partition read few.

        Parameters
        ----------
        dry_run : bool
            Only count the manifests.

        Returns
        -------
        ManifestsCompacted
            The snapshot, if there was anything to merge, and the number of manifests before and after.

        Raises
        ------
        CommitConflict
            Other commits were first again and again; nothing was changed.
        """
        return compact_manifests(self._context, commit_user_of(self._context, None), dry_run)

    def rewrite_file_index(self, where: str | Predicate | None = None) -> IndexesRewritten:
        """Build the file indexes of existing data files again, by the options of the table now.

        Parameters
        ----------
        where : str or Predicate, optional
            A condition on partition columns; only the files of these partitions get new indexes.

        Returns
        -------
        IndexesRewritten
            The snapshot, if any index changed, and the number of partitions and files.

        Raises
        ------
        CommitConflict
            Another commit replaced the same files during the call. Call again.
        """
        predicate = None if where is None else condition_of(where)
        return rewrite_file_indexes(self._context, commit_user_of(self._context, None), predicate)

    def create_global_index(
        self, index_column: str, index_type: str = "btree", where: str | Predicate | None = None
    ) -> GlobalIndexChange:
        """Index the values of a column of a table with data evolution; call it again to index rows appended since.

        Scans, updates and deletes with a condition on the column then read only the rows that can match. Rows without
        an index are always read, so the index changes no result.

        Parameters
        ----------
        index_column : str
            The column: a number, a boolean, a text other than CHAR, a date or a time.
        index_type : str, default "btree"
            The type of the index; ``"btree"`` is the only one that is built.
        where : str or Predicate, optional
            A condition on partition columns; only the rows of these partitions are indexed.

        Returns
        -------
        GlobalIndexChange
            The snapshot, unless all rows have an index, and the number of index files and rows.

        Raises
        ------
        InvalidRequest
            The column does not exist, or the table has no data evolution.
        Unsupported
            The type of the index or of the column is not supported, or the type of the column changed.
        CommitConflict
            Another commit changed the column or compacted the files during the call. Call again.
        """
        predicate = None if where is None else condition_of(where)
        user = commit_user_of(self._context, None)
        return create_global_index(self._context, user, index_column, index_type, predicate)

    def drop_global_index(
        self,
        index_column: str,
        index_type: str = "btree",
        where: str | Predicate | None = None,
        *,
        dry_run: bool = False,
    ) -> GlobalIndexChange:
        """Remove the global indexes of a column; expiry deletes their files.

        Parameters
        ----------
        index_column : str
            The column. The indexes of dropped columns that had this name are removed, too.
        index_type : str, default "btree"
            The type of the indexes, which may also be one that only other clients build.
        where : str or Predicate, optional
            A condition on partition columns; only the indexes of these partitions are removed.
        dry_run : bool, default False
            Only count the files.

        Returns
        -------
        GlobalIndexChange
            The snapshot, unless there is no such index, and the number of index files and rows.

        Raises
        ------
        InvalidRequest
            There is no such column, and never was.
        CommitConflict
            Another commit removed one of the indexes during the call. Call again.
        """
        predicate = None if where is None else condition_of(where)
        user = commit_user_of(self._context, None)
        return drop_global_index(self._context, user, index_column, index_type, predicate, dry_run)

    def mark_partitions_done(self, *partitions: Mapping[str, object]) -> list[str]:
        """Mark each partition that matches as done, by the actions of `partition.mark-done-action`.

        The default writes the file ``_SUCCESS`` into its directory. ``http-report`` sends a report, and ``custom``
        calls the callback that `partition.mark-done-action.custom.class` names with a `PartitionDoneEvent`.

        Parameters
        ----------
        *partitions : mapping
            Values of some or all partition columns.

        Returns
        -------
        list of str
            The paths of the success files.

        Raises
        ------
        NotFound
            No partition matches; nothing was marked.
        Unsupported
            An action needs a metastore (``done-partition``, ``mark-event``), or a callback is not registered.
        StorageError
            The server of the reports does not accept one; earlier partitions are marked.
        """
        return on_same_table(mark_partitions_done)(self._context, partitions)

    def remove_missing_files(self, *, dry_run: bool = True) -> pa.Table:
        """List the data files of the newest state that do not exist, or drop them (``dry_run=False``).

        The rows of these files are lost; restore the files from a backup if there is one. In a primary-key table an
        earlier version of a row may show again. Earlier snapshots and tags keep the fault.

        Parameters
        ----------
        dry_run : bool
            Only list; the default.

        Returns
        -------
        pa.Table
            One row for each file: `path`, `partition`, `bucket`, `rows`.

        Raises
        ------
        CommitConflict
            Another commit changed the same files during the call. Call again.

        Warns
        -----
        PaimonWarning
            How many rows are lost, before they are dropped.
        """
        return remove_missing_files(self._context, commit_user_of(self._context, None), dry_run)

    def remove_missing_manifests(self, *, dry_run: bool = True) -> RemovedManifests:
        """List the manifests of the newest state that do not exist, or drop them (``dry_run=False``).

        The rows of the files that they added are lost. Files that they deleted are live again: call
        `remove_missing_files` afterwards.

        Parameters
        ----------
        dry_run : bool
            Only list; the default.

        Returns
        -------
        RemovedManifests
            The names, the number of lost rows by the counts of the snapshot, and the new snapshot.

        Raises
        ------
        CorruptTable
            A manifest list does not exist; roll back to an earlier snapshot.
        CommitConflict
            Another commit was published during the call. Call again.

        Warns
        -----
        PaimonWarning
            How many rows are lost, before they are dropped.
        """
        return remove_missing_manifests(self._context, commit_user_of(self._context, None), dry_run)

    def repair_earliest_snapshot(self, snapshot_id: int) -> RepairedEarliestSnapshot:
        """Let the history begin at a snapshot that follows a gap, so that readers and expiry do not meet the gap.

        Parameters
        ----------
        snapshot_id : int
            The first snapshot after the gap. All snapshots from it to the latest must exist.

        Returns
        -------
        RepairedEarliestSnapshot
            The earliest snapshot before and after the call.

        Raises
        ------
        InvalidRequest
            There is no such snapshot, it does not follow a gap, or a later one is missing.
        """
        return repair_earliest(self._context, snapshot_id)

    def purge(self) -> Purged:
        """Delete all rows and all history: branches, tags, consumers, changelogs, and all snapshots but an empty one.

        Returns
        -------
        Purged
            The snapshot without rows, and how much was deleted.
        """
        return purge(self._context, commit_user_of(self._context, None))

    def __repr__(self) -> str:
        return f"Maintain({self._context.table.table_name!r})"


def override_retention(
    context: TableContext,
    default: Retention,
    retain_min: int | None,
    retain_max: int | None,
    older_than: object,
    max_deletes: int | None = None,
) -> Retention:
    """Return the retention of a table's options with the arguments of `Maintain.expire_snapshots` in their place."""
    given: dict[str, Any] = {"num_min": retain_min, "num_max": retain_max, "limit": max_deletes}
    if older_than is not None:
        given["time_millis"] = context.engine.clock.now_millis() - before_millis(context.engine, older_than)
    given = {name: value for name, value in given.items() if value is not None}
    if retain_max is not None and retain_min is None:
        given["num_min"] = min(default.num_min, retain_max)
    return evolve(default, **given)


def compact_where(
    context: TableContext,
    full: bool,
    where: str | Predicate | None,
    dry_run: bool = False,
    order: SortOrder | None = None,
) -> CompactResult:
    """Compact the partitions that a condition selects, None for all; see `Table.compact`."""
    predicate = None if where is None else condition_of(where)
    user = commit_user_of(context, None)
    if order is not None and context.table.bucket_mode is BucketMode.DYNAMIC:
        done = plan_bucket_sort(context, predicate) if dry_run else sort_buckets(context, user, order, predicate)
    elif dry_run:
        done = plan_table_compaction(context, full, predicate, order)
    else:
        done = compact_table(context, user, full, predicate, order)
    # Expiry of a write-only table runs where it is compacted.
    writing = evolve(context.table, options=context.options.with_values({"write-only": "false"}))
    run_after_commit(context.with_table(writing), done.snapshot_ids)
    return done


def rescale_where(
    context: TableContext, buckets: int, where: str | Predicate | None, dry_run: bool = False
) -> RescaleResult:
    """Rewrite the partitions that a condition selects with `buckets` buckets each; see `Table.rescale`."""
    predicate = None if where is None else condition_of(where)
    if dry_run:
        return plan_rescale(context, buckets, predicate)
    done = rescale(context, buckets, commit_user_of(context, None), predicate)
    run_after_commit(context, done.snapshot_ids)
    return done
