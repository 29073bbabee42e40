"""Read a stream through the data source: `spark.readStream.format("paimon")`.

Invariant: an offset is a position of `paimon.operations.stream.ranges`, so a batch that Spark runs again reads the same
rows. A task reads splits with the function that follows a table embedded, in the order of their snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from attrs import evolve
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from paimon.changes import KIND_COLUMN, SNAPSHOT_COLUMN, Changes
from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import parse_start
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.scan.stream_position import StreamPosition, decode_position, encode_position
from paimon.domain.scan.stream_tasks import BatchLimits, FollowedSplit, group_by_key_order
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import make_array
from paimon.domain.types.system_columns import ROW_KIND, SEQUENCE_NUMBER
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.read.changes.followed import read_stream_split
from paimon.operations.read.projection import ReadPlan, build_output_schema
from paimon.operations.read.system.views import DATA_VIEWS, PLAIN, DataView
from paimon.operations.stream.ranges import StreamRanges
from paimon.operations.stream.start import Progress, SnapshotPlans
from paimon.spark.options import STREAM_WRITE_OPTIONS, WRITE_OPTIONS, SourceOptions
from paimon.spark.types import pad_texts, to_batch_schema, to_spark_batch
from paimon.table import Table

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMaxRows, ReadMinRows
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow
except ModuleNotFoundError:  # before PySpark 4.2 a stream cannot limit its batches, and is refused
    _AvailableNow = object

_ADDED_KINDS = make_array(["+I", "+U"], pa.string())


class StreamPartition(InputPartition):
    """The splits of one task with everything that their read needs."""

    def __init__(self, table: TableDefinition, splits: tuple[FollowedSplit, ...], read: ReadPlan) -> None:
        super().__init__(None)
        self.table = table
        self.splits = splits
        self.read = read


class PaimonStreamReader(DataSourceStreamReader, _AvailableNow):
    """Reader of a stream. Errors of its creation are raised by the first call, because Spark would lose them.

    `schema_id` is the table schema with these columns; None if the user chose the columns.
    """

    def __init__(self, options: SourceOptions, schema: StructType, schema_id: int | None) -> None:
        self._options = options
        self._schema = schema
        self._schema_id = schema_id
        self._has_end = False
        self._last_batch_millis = 0

    def getDefaultReadLimit(self) -> Any:
        """Return the limits of the options, of which Spark shows one; `latestOffset` applies all."""
        limits = self._options.limits
        if limits.files is not None:
            return ReadMaxFiles(limits.files)
        if limits.rows is not None:
            return ReadMaxRows(limits.rows)
        if limits.bytes is not None:
            return ReadMaxBytes(limits.bytes)
        return ReadAllAvailable() if self._options.min_rows is None else ReadMinRows(self._options.min_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """End the stream at the snapshot that is the latest one now."""
        self._stream.end_at_latest()
        self._has_end = True

    def initialOffset(self) -> dict[str, Any]:
        """Return the beginning. The first end offset contains the start, because Spark does not store this one."""
        self._check_version()
        return encode_position(None)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """Return the end of the next batch; the start while the batch would have too few rows."""
        self._check_version()  # PySpark 4.1 passes nothing
        is_whole, position = isinstance(limit, ReadAllAvailable), decode_position(start)
        end = self._stream.advance(position, BatchLimits() if is_whole else self._options.limits)
        return encode_position(position if not is_whole and self._waits(position, end) else end)

    def _waits(self, start: StreamPosition | None, end: StreamPosition | None) -> bool:
        """Return whether to wait for more rows; full batches, the first one, and streams that end do not wait."""
        minimum, now = self._options.min_rows, self._table.engine.clock.now_millis()
        if minimum is None or self._has_end or end is None or start == end:
            return False
        is_due = now - self._last_batch_millis >= self._options.max_delay_millis
        if not is_due and not self._stream.has_rows(start, end, minimum) and self._stream.can_grow(end):
            return True
        self._last_batch_millis = now
        return False

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the position after the newest snapshot, which Spark reports as `latestOffset` of the source."""
        latest = self._stream.find_latest()
        return {"snapshot": latest + 1} if latest else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """Return the tasks of a batch."""
        splits = self._stream.plan_range(decode_position(start), decode_position(end))
        table, read = self._table.definition, self._read_plan
        groups = group_by_key_order(splits, table.bucket_mode, SplitLimits.of(table.options))
        return [StreamPartition(table, group, read) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, with the Arrow types that Spark requires.

        Raises `NotFound` if the snapshot expired during the read. Without a column for row kinds, -U and -D rows are
        refused.
        """
        schema = to_batch_schema(self._schema)
        if not isinstance(partition, StreamPartition):
            return
        context = self._table.context.with_table(partition.table)
        for followed in partition.splits:
            # a binlog joins the two rows of an update, which a state does not have
            read = evolve(partition.read, unmerged=partition.read.binlog and not followed.is_state)
            try:
                for batch in read_stream_split(context, read, self._read_schema, followed.split, followed.is_state):
                    yield self._pad(to_spark_batch(self._select(batch), schema))
            except PaimonError as error:
                explained = SnapshotPlans(context, None).explain_error(followed.split.snapshot_id, error)
                raise explained from (error if explained is not error else error.__cause__)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Record the progress of the consumer: Spark has committed all batches up to this offset."""
        self._stream.record(decode_position(end))

    def _select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kinds, name = batch.column(1), self._kind_name
        if name is None and not pc.all(pc.is_in(kinds, _ADDED_KINDS)).as_py():
            kind = next(kind for kind in kinds.to_pylist() if kind not in _ADDED_KINDS.to_pylist())
            raise InvalidRequest(
                f"Snapshot {batch[0][0]} of table {self._table.name!r} has rows of kind {kind!r}, which a stream "
                "without row kinds would return like added rows.",
                subject="row-kind-column",
                hint="set .option('row-kind-column', '_row_kind'), and pass kind_column to paimon.spark.write_stream",
            )
        columns = [kinds if field == name else batch[field] for field in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _pad(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._options.pads_texts:
            return batch
        types = {f.name: f.type for f in self._table.table_schema.fields}
        columns = [pad_texts(batch[name], types[name]) for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch

    def _check_version(self) -> None:
        if _AvailableNow is object:
            raise Unsupported(
                f"readStream of Paimon tables with PySpark {pyspark.__version__}", hint="install PySpark 4.2 or newer"
            )

    @cached_property
    def _table(self) -> Table:
        opened = self._source[0]
        if self._schema_id is None:
            return opened
        context = opened.context
        table = Table(context.at_schema(load_schema(context.engine, context.paths, self._schema_id)))
        if self._columns != tuple(table.table_schema.names):
            raise InvalidRequest(
                f"The columns of table {table.name!r} are others than at the start of the stream.",
                subject="schema",
                hint="set the option 'scan.mode', which selects the newest columns, or choose columns by .schema(…)",
            )
        return table

    @cached_property
    def _source(self) -> tuple[Table, DataView]:
        """The table, and what a system table such as ``$audit_log`` shows of its changes."""
        opened = self._options.open_source()
        view = PLAIN if isinstance(opened, Table) else DATA_VIEWS.get(opened.system_name, PLAIN)
        if isinstance(opened, Table):
            return opened, view
        if not view.row_kinds:
            hint = "read the table itself, its $audit_log or its $binlog"
            raise Unsupported(f"readStream of system table {opened.name!r}", hint=hint)
        if self._options.row_kind_column is not None:
            raise InvalidRequest(
                f"System table {opened.name!r} has the column {ROW_KIND.name!r} with row kinds.",
                subject="row-kind-column",
                hint="leave the option out",
            )
        return Table(opened.context), view

    @cached_property
    def _read_plan(self) -> ReadPlan:
        names = tuple(name for name in self._schema.names if name != self._kind_name)
        return ReadPlan((ROW_KIND.name, *names), row_kinds=True, binlog=self._source[1].binlog)

    @cached_property
    def _read_schema(self) -> pa.Schema:
        """The schema of the splits: the snapshot id, the row kind, and the columns."""
        if self._source[1] is PLAIN:
            return Changes(self._table.context, columns=self._columns).arrow_schema
        found = build_output_schema(self._table.definition, self._read_plan)
        return pa.schema([SNAPSHOT_COLUMN, KIND_COLUMN, *list(found)[1:]])

    @property
    def _kind_name(self) -> str | None:
        shows_kinds = self._source[1].row_kinds and ROW_KIND.name in self._schema.names
        return ROW_KIND.name if shows_kinds else self._options.row_kind_column

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of the table that the stream reads."""
        system = {ROW_KIND.name, SEQUENCE_NUMBER.name} if self._source[1].row_kinds else {self._kind_name}
        return tuple(name for name in self._schema.names if name not in system)

    @cached_property
    def _stream(self) -> StreamRanges:
        self._check_version()
        self._options.check_use("readStream", (*WRITE_OPTIONS, *STREAM_WRITE_OPTIONS))
        context = self._table.context
        start = parse_start(context.options, None)
        progress = Progress(context, context.options.consumer_id, FollowRules.of(context.table).shows_replaced_rows)
        return StreamRanges(context, start, self._columns, progress)
