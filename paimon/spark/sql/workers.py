"""Workers of SQL statements on Spark: tasks write the rows that statements insert, update, delete and merge.

Invariant: a statement has the result and the errors that it has embedded. No row of a table comes to this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve, field, frozen
from pyspark.sql import SparkSession

from paimon.builders.direct_writes import WriteResult
from paimon.builders.merge_builder import MergeBuilder, MergeResult
from paimon.domain.assignment.store_assignment import StoreAssignment
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import StorageError
from paimon.domain.maintenance.sort_order import NO_STRATEGY
from paimon.domain.predicate.expression import Predicate
from paimon.operations.analyze import Analyzed
from paimon.operations.compact.compact import CompactResult
from paimon.operations.rescale.rescale import RescaleResult
from paimon.operations.row_level.numbered_rows import NumberedChange
from paimon.operations.row_level.selected_rows import WrittenChanges
from paimon.ports.queries import QuerySource
from paimon.spark.maintenance.compact import compact
from paimon.spark.maintenance.rescale import rescale
from paimon.spark.row_level.delete_update import delete, update, write_changed_rows
from paimon.spark.row_level.merge import FrameSource
from paimon.spark.sql.analysis import mute_error_log, to_query_error
from paimon.spark.sql.queries import SparkQueries
from paimon.spark.sql.sql_dialect import is_constant
from paimon.spark.tasks.distribute import distribute_table
from paimon.spark.write import write_query_rows
from paimon.spark.writer import follow_overwrite_mode
from paimon.sql.session import PlanSource
from paimon.table import Table


@frozen(eq=False)
class SparkWorkers:
    """The tasks of a Spark session; see `paimon.sql.session.Workers`."""

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

        The parameters are those of `Workers.write_query`. Nothing is committed if a value cannot be computed or does
        not fit.
        """
        table = follow_overwrite_mode(self.queries.spark, table) if overwrite else table
        if not sources and is_constant(sql):
            assign = StoreAssignment(table.table_schema.fields, self.queries.time_zone)
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
        """Write changed rows of a table without a primary key with tasks, and return what to commit.

        The query returns the number of each row to change, then its new values.
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

    # The functions of paimon.spark distribute a table themselves, so they get this one.
    original: Table = field(kw_only=True)
    spark: SparkSession = field(kw_only=True)

    def delete(self, where: str | Predicate, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Delete rows with tasks."""
        with _translate_errors():
            return delete(self.original, where, spark=self.spark, properties=properties)

    def update(
        self, set: Mapping[str, Any], where: str | Predicate, *, properties: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Set columns of rows with tasks."""
        with _translate_errors():
            return update(self.original, set, where, spark=self.spark, properties=properties)

    def analyze(self, columns: Sequence[str] | None = None) -> Analyzed:
        """Compute statistics in this process: tasks have no text for what they would return."""
        return self.original.analyze(columns)

    def compact(
        self,
        full: bool = False,
        where: str | Predicate | None = None,
        *,
        order_strategy: str = NO_STRATEGY,
        order_by: Sequence[str] | str | None = None,
        dry_run: bool = False,
    ) -> CompactResult:
        """Compact the table with tasks; otherwise as `Table.compact`."""
        return compact(
            self.original, full, where,
            order_strategy=order_strategy, order_by=order_by, dry_run=dry_run, spark=self.spark,
        )  # fmt: skip

    def rescale(self, buckets: int, where: str | Predicate | None = None, *, dry_run: bool = False) -> RescaleResult:
        """Rewrite partitions with tasks, each with `buckets` buckets; otherwise as `Table.rescale`."""
        return rescale(self.original, buckets, where, dry_run=dry_run, spark=self.spark)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the error of a Spark task as an error of its query; `InvalidRequest` if a value cannot be computed."""
    try:
        with mute_error_log():
            yield
    except StorageError as error:
        if error.__cause__ is None:
            raise
        raise to_query_error(error.__cause__) from error
