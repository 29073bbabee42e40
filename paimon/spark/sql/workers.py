"""Workers of SQL statements on Spark: tasks write the rows that statements insert, update, delete and merge.

Invariant: a statement has the result and the errors that it has embedded. No row of a table comes to this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import evolve, field, frozen
from pyspark.sql import SparkSession

from paimon.domain.assignment.store_assignment import StoreAssignment
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import StorageError
from paimon.domain.predicate.expression import Predicate
from paimon.merge_builder import MergeBuilder, MergeResult
from paimon.operations.compact.compact import CompactResult
from paimon.operations.rescale.rescale import RescaleResult
from paimon.operations.row_level.matches import WrittenChanges
from paimon.operations.row_level.numbered_changes import NumberedChange
from paimon.ports.queries import QuerySource
from paimon.spark.maintenance.compact import compact
from paimon.spark.maintenance.rescale import rescale
from paimon.spark.row_level.merge import FrameSource
from paimon.spark.row_level.numbered_changes import write_changed_rows
from paimon.spark.row_level.row_level_table import delete, update
from paimon.spark.sql.analysis import QUERY_ZONE, mute_error_log
from paimon.spark.sql.queries import SparkQueries
from paimon.spark.sql.query_errors import to_query_error
from paimon.spark.sql.sql_dialect import is_constant
from paimon.spark.tasks.distribute import distribute_table
from paimon.spark.write import write_query_rows
from paimon.sql.session import PlanSource
from paimon.table import Table
from paimon.table_write import WriteResult


@frozen(eq=False)
class SparkWorkers:
    """The tasks of a Spark session; see `paimon.sql.session.Workers`.

    Parameters
    ----------
    queries : SparkQueries
        Evaluates the queries of statements.
    """

    queries: SparkQueries

    def write_query(
        self,
        table: Table,
        sql: str,
        sources: Mapping[str, QuerySource],
        *,
        overwrite: bool,
        partition: Mapping[str, object] | None,
        read_state: ReadState | None = None,
    ) -> WriteResult:
        """Write the rows of a query with tasks; the rows of VALUES are written by this process.

        Parameters
        ----------
        table : Table
            Where the rows go.
        sql, sources : str, mapping of str to QuerySource
            As in `run`.
        overwrite : bool
            Replace partitions by the rows.
        partition : mapping of str to object or None
            The partitions to replace, as in `Table.overwrite`.
        read_state : ReadState, optional
            The oldest snapshot of the table that the query reads.

        Returns
        -------
        WriteResult
            As `Table.write` returns it.

        Raises
        ------
        InvalidRequest
            A value cannot be computed, or does not fit the table. Nothing was committed.
        """
        if not sources and is_constant(sql):
            assign = StoreAssignment(table.table_schema.fields, QUERY_ZONE)
            rows = assign.assign_rows(self.queries.run(sql, sources).read_all())
            return table.overwrite(rows, partition) if overwrite else table.write(rows)
        frame = self.queries.to_frame(sql, sources)
        with _translate_errors():
            return write_query_rows(frame, table, "overwrite" if overwrite else "append", partition, read_state)

    def merge(self, merge: MergeBuilder, read_source: PlanSource) -> MergeResult:
        """Merge the rows of a query with tasks; the query is planned again after other users changed the table."""
        with _translate_errors():
            return evolve(
                merge, source=lambda: self.queries.to_frame(*read_source()), open_source=FrameSource.of
            ).execute()

    def change_rows(self, change: NumberedChange, sql: str, sources: Mapping[str, QuerySource]) -> WrittenChanges:
        """Write changed rows of a table without a key with tasks.

        Parameters
        ----------
        change : NumberedChange
            What changes.
        sql, sources : str, mapping of str to QuerySource
            The query for the number of each row, and its new values.

        Returns
        -------
        WrittenChanges
            What to commit.
        """
        with _translate_errors():
            return write_changed_rows(self.queries.to_frame(sql, sources), change)

    def distribute(self, table: Table) -> Table:
        """Return a table whose row changes and maintenance run as tasks."""
        distributed = distribute_table(table, self.queries.spark)
        return _TaskTable(distributed.context, original=table, spark=self.queries.spark)


@frozen(eq=False, repr=False)
class _TaskTable(Table):
    """A table whose row changes and maintenance run as tasks of a Spark session."""

    original: Table = field(kw_only=True)
    spark: SparkSession = field(kw_only=True)

    def delete(self, where: str | Predicate, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Delete rows with tasks."""
        with _translate_errors():
            return delete(self.original, where, spark=self.spark, properties=properties)

    def update(
        self, set: Mapping[str, Any], where: str | Predicate, *, properties: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Set columns of rows with tasks.

        Parameters
        ----------
        set, where, properties : mapping, str or Predicate, mapping
            As in `Table.update`.

        Returns
        -------
        WriteResult
            As `Table.update` returns it.
        """
        with _translate_errors():
            return update(self.original, set, where, spark=self.spark, properties=properties)

    def compact(
        self, full: bool = False, where: str | Predicate | None = None, *, dry_run: bool = False
    ) -> CompactResult:
        """Compact the table with tasks.

        Parameters
        ----------
        full : bool
            Whether all sorted runs of a bucket are merged.
        where : str or Predicate, optional
            Selects partitions.
        dry_run : bool
            Write nothing.

        Returns
        -------
        CompactResult
            The snapshot of the compaction, if there was anything to do, and counts of buckets, files and rows.
        """
        return compact(self.original, full, where, dry_run=dry_run, spark=self.spark)

    def rescale(self, buckets: int, where: str | Predicate | None = None, *, dry_run: bool = False) -> RescaleResult:
        """Rewrite partitions with tasks.

        Parameters
        ----------
        buckets : int
            The new number of buckets of each partition.
        where : str or Predicate, optional
            Selects partitions.
        dry_run : bool
            Write nothing.

        Returns
        -------
        RescaleResult
            The snapshot, and how many partitions, files and rows were rewritten.
        """
        return rescale(self.original, buckets, where, dry_run=dry_run, spark=self.spark)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise an error that a query caused as the error of the query.

    Raises
    ------
    InvalidRequest
        A value cannot be computed.
    """
    try:
        with mute_error_log():
            yield
    except StorageError as error:
        if error.__cause__ is None:
            raise
        raise to_query_error(error.__cause__) from error
