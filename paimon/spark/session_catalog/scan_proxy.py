"""Scans of tables for Spark: columns, predicates and limits reach the plan of the scan, and Spark gets its size.

Invariant: a builder serves one plan of Spark and is never used again, so no predicate reaches another plan. Spark
does not say whether a scan is for a batch or for a stream, so the rows are planned when it first asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from attrs import frozen
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.estimate import ScanEstimate
from paimon.scan import Scan, estimate_scan
from paimon.spark.frame_reads import to_read_mark
from paimon.spark.options import READ_MARK
from paimon.spark.read import is_pinned, load_splits, look_up_keys, read_scan
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm, UnmeasuredProxy, to_python_type
from paimon.spark.session_catalog.metadata_columns import PARTITION, read_with_metadata
from paimon.spark.session_catalog.predicates import format_condition, read_predicates, to_conjunction
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table

Selected = tuple[Table | SystemTable, Scan | SystemScan]
"""What a batch reads; the scan has its snapshot."""
OpenStream = Callable[[str], Any]
"""Opens a stream of Spark that has this checkpoint."""
_PREDICATE = f"{CONNECTOR}.expressions.filter.Predicate"


@frozen(eq=False)
class PlannedRows:
    """The rows of a batch; `scan` is None where the query selects a range of changes, and for a system table."""

    frame: DataFrame
    description: str
    scan: Scan | None
    counted: int | None = None

    def estimate(self) -> ScanEstimate | None:
        """Return the size, estimated from metadata; the rows are one number where they were counted."""
        if self.counted is not None:
            return ScanEstimate(1, 8)
        return None if self.scan is None else estimate_scan(self.scan)


class ScanBuilderProxy(JavaProxy):
    """What one plan of Spark reads of a table."""

    class Java:
        """The interfaces."""

        implements = (
            f"{CONNECTOR}.read.SupportsPushDownV2Filters",
            f"{CONNECTOR}.read.SupportsPushDownRequiredColumns",
            f"{CONNECTOR}.read.SupportsPushDownLimit",
            f"{CONNECTOR}.read.SupportsPushDownAggregates",
        )

    def __init__(
        self, jvm: Jvm, title: str, schema: StructType, found: Selected | InvalidRequest, stream: OpenStream
    ) -> None:
        self.jvm = jvm
        self._name = f"paimon {title}"
        self._found = found
        # reads the snapshot now, as a frame does at its first use
        self._is_pinned = not isinstance(found, InvalidRequest) and isinstance(found[0], Table) and is_pinned(*found)
        self._stream = stream
        self._schema = schema
        self._columns: Sequence[str] = schema.names
        self.metadata: Sequence[StructField] = ()
        self._pushed: Any = None
        self._where: Predicate | None = None
        self._limit: int | None = None
        self._count: int | None = None

    @property
    def _selected(self) -> Selected:
        if isinstance(self._found, InvalidRequest):
            raise self._found
        return self._found

    def pruneColumns(self, schema: Any) -> None:
        """Read these columns only."""
        self._columns = to_python_type(schema).names

    def pushPredicates(self, predicates: Any) -> Any:
        """Give predicates to the scan, and return all of them: Spark evaluates them again."""
        state = self._selected[1]
        if self._is_pinned and isinstance(state, Scan):
            self._where = to_conjunction(read_predicates(self.jvm, predicates), {f.name: f for f in state.fields})
            self._pushed = predicates
        return predicates

    def pushedPredicates(self) -> Any:
        """Return the predicates, which plans show."""
        return self.jvm.make_array(_PREDICATE) if self._pushed is None else self._pushed

    def supportsIterativePushdown(self) -> bool:
        """Return whether predicates come more than once."""
        return False

    def pushLimit(self, limit: int) -> bool:
        """Read as few files as have this many rows."""
        self._limit = limit
        return self._is_pinned

    def isPartiallyPushed(self) -> bool:
        """Return that Spark applies the limit, too."""
        return True

    def supportCompletePushDown(self, aggregation: Any) -> bool:
        """Return that Spark does not count again."""
        del aggregation
        return True

    def pushAggregation(self, aggregation: Any) -> bool:
        """Count all rows, if no file must be read for it; Spark asks only where it has no predicate."""
        functions, state = aggregation.aggregateExpressions(), self._selected[1]
        if not self._is_pinned or not isinstance(state, Scan) or len(aggregation.groupByExpressions()):
            return False
        if [function.getClass().getSimpleName() for function in functions] == ["CountStar"]:
            self._count = state.plan().merged_row_count
        return self._count is not None

    def build(self) -> Any:
        """Return the scan."""
        return ScanProxy(self.jvm, self._name, self._find_schema(), self._plan, self._stream)

    def _plan(self) -> PlannedRows:
        spark, (opened, state) = self.jvm.spark, self._selected
        names = {column.name for column in self.metadata}
        if names.intersection(self._columns):
            return self._plan_places(opened, state, names)
        if not self._is_pinned:
            scan = opened.scan(list(self._columns))
            scan = scan.without_retracts() if isinstance(scan, Scan) else scan
            return PlannedRows(read_scan(spark, opened, scan), self._name, None)
        assert isinstance(state, Scan)
        assert isinstance(opened, Table)
        if self._count is not None:
            frame = spark.range(self._count, self._count + 1)
            return PlannedRows(frame, f"{self._describe(state)}, counted from metadata", state, self._count)
        scan = Scan(state.context, columns=self._columns, where=self._where, pinned=state.pinned)
        found = None if self._where is None else look_up_keys(spark, opened, scan)
        if found is None:
            limited = Scan(
                state.context, columns=self._columns, where=self._where, limit=self._limit, pinned=state.pinned
            )
            found = load_splits(spark, opened, scan, scan if self._limit is None else limited)
        condition = None if self._where is None else format_condition(self._where, scan.arrow_schema.names)
        frame = found if condition is None else found.where(condition)  # excludes row groups where Spark reads files
        return PlannedRows(frame, self._describe(scan), scan)

    def _plan_places(self, opened: Table | SystemTable, state: Scan | SystemScan, names: set[str]) -> PlannedRows:
        """Plan rows with metadata columns."""
        if not self._is_pinned or not isinstance(state, Scan) or not isinstance(opened, Table):
            hint = "leave out the options of the query"
            raise Unsupported(f"metadata columns of a range of changes of {opened.name!r}", hint=hint)
        read = [name for name in self._columns if name not in names]
        read += [name for name in opened.partition_keys if name not in read and PARTITION in self._columns]
        read = read or self._schema.names[:1]
        scan = Scan(state.context, columns=read, where=self._where, pinned=state.pinned)
        return PlannedRows(read_with_metadata(self.jvm.spark, opened, scan, self._columns), self._describe(scan), scan)

    def _find_schema(self) -> StructType:
        if self._count is not None:
            return StructType([StructField("count", LongType(), nullable=False)])
        known = {column.name: column for column in (*self._schema, *self.metadata)}
        return StructType([known[name] for name in self._columns])

    def _describe(self, scan: Scan) -> str:
        where = "" if self._where is None else f", where {format_predicate(self._where)}"
        snapshot = scan.pinned.snapshot
        at = "no snapshot" if snapshot is None else f"snapshot {snapshot.id}"
        return f"{self._name} ({at}{where}: {scan.plan().summary})"


class ScanProxy(UnmeasuredProxy):
    """A scan of Spark, whose rows are those of a data frame."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.read.V1Scan", f"{CONNECTOR}.read.SupportsReportStatistics")

    def __init__(
        self, jvm: Jvm, name: str, schema: StructType, plan: Callable[[], PlannedRows], stream: OpenStream
    ) -> None:
        self.jvm = jvm
        self._name = name
        self._schema = schema
        self._plan = plan
        self._stream = stream
        self._is_stream = False

    @cached_property
    def _rows(self) -> PlannedRows:
        return self._plan()

    def find_read_mark(self) -> str | None:
        """Return what the scan reads of the newest snapshot at its time; None if the query chose the snapshot."""
        return None if self._rows.scan is None else to_read_mark(self._rows.scan).get(READ_MARK)

    def readSchema(self) -> Any:
        """Return the columns as the table has them; the schema of the frame may allow more nulls."""
        return self.jvm.to_java_type(self._schema)

    def description(self) -> str:
        """Return the table, the snapshot, the predicate, and the files to read."""
        return self._name if self._is_stream else self._rows.description

    def toV1TableScan(self, context: Any) -> Any:
        """Return the rows as a relation, which Spark reads without knowing more."""
        rows = self._rows
        return self.jvm.create("FrameRelation", rows.frame._jdf, self.readSchema(), rows.description, None, None)

    def toMicroBatchStream(self, checkpoint: str) -> Any:
        """Return a stream of the changes of the table, which is one of Spark's own."""
        self._is_stream = True
        return self._stream(checkpoint)

    def columnarSupportMode(self) -> Any:
        """Return that the stream decides whether it has columns."""
        return self.jvm.find_class(f"{CONNECTOR}.read.Scan.ColumnarSupportMode").PARTITION_DEFINED

    def estimateStatistics(self) -> Any:
        """Return the size, by which Spark decides which side of a join is sent to all tasks."""
        return StatisticsProxy(self.jvm, self._rows.estimate())

    def estimateSizeInBytes(self) -> Any:
        """Return the size alone."""
        return self.estimateStatistics().sizeInBytes()

    def reflectsFullyPushedDownFilters(self) -> bool:
        """Return whether the statistics are those after the predicates, which Spark evaluates again."""
        return False


class StatisticsProxy(JavaProxy):
    """The size of a scan, estimated from metadata."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.read.Statistics",)

    def __init__(self, jvm: Jvm, estimate: ScanEstimate | None) -> None:
        self.jvm = jvm
        self._estimate = estimate

    def sizeInBytes(self) -> Any:
        """Return the estimated bytes of the columns."""
        return self.jvm.make_long(None if self._estimate is None else max(1, int(self._estimate.bytes)))

    def numRows(self) -> Any:
        """Return the estimated rows."""
        return self.jvm.make_long(None if self._estimate is None else int(self._estimate.rows))

    def columnStats(self) -> Any:
        """Return no statistics of columns."""
        return self.jvm.make_map({})
