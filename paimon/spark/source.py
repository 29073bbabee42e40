"""The PySpark data source `paimon`.

Invariant: readers and writers are pickled between Spark's planner, executors and committer, and share no other state.
The driver plans once, at one snapshot; a task reads its split with `read_split`, as embedded reads do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.scan.engine_files import leave_out_files
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.stream_tasks import group_small_splits
from paimon.domain.schema.table_definition import TableDefinition
from paimon.engines import freeze_objects
from paimon.operations.read.split import ReadPlan, read_split
from paimon.scan import Scan
from paimon.spark.options import (
    BATCH_WRITE_OPTIONS,
    READ_CHANGELOG,
    STREAM_READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    WRITE_OPTIONS,
    Source,
    SourceOptions,
    parse_source_options,
)
from paimon.spark.streams.stream_reader import PaimonStreamReader
from paimon.spark.streams.stream_writer import PaimonStreamWriter
from paimon.spark.types import to_batch_schema, to_spark_batch, to_spark_schema
from paimon.spark.writer import PaimonWriter, check_columns, writes_postponed_rows
from paimon.table import Table


class PaimonDataSource(DataSource):
    """Data source of tables by path: `spark.read.format("paimon").load(path)`.

    In a session that `paimon.spark.register` gave a warehouse, ``"database.table"`` is a path, too. Names of options
    are case-insensitive. Time travel: `snapshot`, `tag`, `versionAsOf` (a snapshot id or a tag) or `timestampAsOf` (ISO
    text, in local time without an offset). Access: `storage` and `catalog` (JSON objects with the options of
    `paimon.connect` without secrets; `catalog` includes `warehouse`) and `allowed-roots`. Table options:
    `table-options` (JSON), or each table option by its name. Writes: `kind-column`, `commit-user`,
    `commit-identifier` and `partitionOverwriteMode`.
    """

    defaults: Mapping[str, str] = {}
    """Options of the warehouse of the session, which a subclass sets."""
    _schema_id: int | None = None
    """The schema whose columns a data frame has; None if its user chose the columns by `.schema(…)`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        freeze_objects()

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "paimon"

    @property
    def _options(self) -> SourceOptions:
        return parse_source_options(self.options, self.defaults)

    @property
    def _source(self) -> Source:
        options = self._options
        return Source(options.open_source(), options.pinned)

    def schema(self) -> StructType:
        """Return the Spark schema of the table, with the column of row kinds if one is requested."""
        options, source = self._options, self._source
        self._schema_id = source.opened.definition.schema.id
        schema = to_spark_schema(_read_columns(options, source))
        if options.row_kind_column is None:
            return schema
        if options.row_kind_column in schema.names:
            name = options.row_kind_column
            hint = "choose a name that no column has"
            raise InvalidRequest(f"The table has a column {name!r} already.", subject="row-kind-column", hint=hint)
        return StructType([*schema.fields, StructField(options.row_kind_column, StringType(), False)])

    def reader(self, schema: StructType) -> PaimonReader:
        """Return a reader of the columns of a schema."""
        options, source = self._options, self._source
        options.check_use("a batch read", (*WRITE_OPTIONS, *STREAM_WRITE_OPTIONS, *STREAM_READ_OPTIONS))
        if options.reads_stream:
            _check_columns_exist(source, schema)
        reader = PaimonReader(source, schema)
        freeze_objects()
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> PaimonWriter:
        """Return a writer of rows to an append table, or to postponed buckets.

        Refuses a table with a primary key and real buckets, because this writer cannot shuffle rows to their buckets.
        """
        options = self._options
        options.check_use("a batch write", (*STREAM_WRITE_OPTIONS, *STREAM_READ_OPTIONS, READ_CHANGELOG))
        table = options.open_target()
        if table.primary_keys and not writes_postponed_rows(table.definition):
            raise InvalidRequest(
                f"Table {table.name!r} has a primary key, and df.write does not route rows to their bucket.",
                subject=table.name,
                hint="write it with paimon.spark.write(df, table)",
            )
        writer = PaimonWriter(table, options, overwrite)
        writer.builder = check_columns(writer.builder, schema, options.kind_column)
        return writer

    def streamReader(self, schema: StructType) -> PaimonStreamReader:
        """Return a reader of the table's state and its changes."""
        return PaimonStreamReader(self._options, schema, self._schema_id)

    def streamWriter(self, schema: StructType, overwrite: bool) -> PaimonStreamWriter:
        """Return a writer of the batches of a stream; it refuses tables whose rows a task cannot write alone."""
        options = self._options
        options.check_use("writeStream", (*BATCH_WRITE_OPTIONS, *STREAM_READ_OPTIONS, READ_CHANGELOG))
        writer = PaimonStreamWriter(options.open_target(), options, overwrite)
        writer.builder = check_columns(writer.builder, schema, options.kind_column)
        return writer


def _check_columns_exist(source: Source, schema: StructType) -> None:
    """Refuse a batch read of a snapshot that lacks newer columns, which `_read_columns` chose."""
    known = source.scan().arrow_schema.names
    missing = [name for name in schema.fieldNames() if name not in known]
    if missing:
        raise InvalidRequest(
            f"Option 'scan.mode' selects the newest columns, and the snapshot has no column {missing[0]!r}.",
            subject="scan.mode",
            hint="replace the options 'scan.*' by 'snapshot' or 'timestampAsOf', or choose columns by .schema(…)",
        )


def _read_columns(options: SourceOptions, source: Source) -> pa.Schema:
    """Return the columns of a read: for a batch those of its snapshot, for a stream the newest ones."""
    if not isinstance(source.opened, Table):
        return source.scan().arrow_schema
    if options.reads_stream:
        return source.opened.arrow_schema
    try:
        return source.scan().arrow_schema
    except NotFound:
        if options.travels_in_time:
            raise
        # The start of a stream may have expired, which its checkpoint does not need. A batch read fails in its plan.
        return source.opened.arrow_schema


class SplitPartition(InputPartition):
    """Splits of the plan with everything that their read needs, because Spark pickles the reader before it plans."""

    def __init__(self, table: TableDefinition, splits: tuple[DataSplit, ...], read: ReadPlan) -> None:
        super().__init__(None)
        self.table = table
        self.splits = splits
        self.read = read


class WholePartition(InputPartition):
    """All rows of a system table, which one task reads."""

    def __init__(self) -> None:
        super().__init__(None)


class PaimonReader(DataSourceReader):
    """Reader of splits; its columns are those of the schema of Spark or of the user's `.schema(…)`.

    It has no method `pushFilters`: Spark keeps the filters of one use of a data frame for its other uses, which would
    then lose rows.
    """

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the scan, and return a partition for each split, or for several small ones."""
        scan = self._source.scan(self._schema.fieldNames())
        if not isinstance(scan, Scan):
            return [WholePartition()]
        splits = leave_out_files(scan.plan().splits, self._source.left_out)
        freeze_objects()
        table = scan.pinned.table
        tasks = group_small_splits(splits, SplitLimits.of(table.options))
        return [SplitPartition(table, task, scan.read_plan) for task in tasks]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, with the Arrow types that Spark requires."""
        schema = to_batch_schema(self._schema)
        for batch in self._batches(partition):
            yield to_spark_batch(batch, schema)
        freeze_objects()

    def _batches(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            context = self._source.opened.context.with_table(partition.table)
            for split in partition.splits:
                yield from read_split(context, split, partition.read)
        elif isinstance(partition, WholePartition):
            yield from self._source.scan(self._schema.fieldNames()).to_batches()
        else:  # Spark reads once even if the plan has no splits
            yield pa.RecordBatch.from_pylist([], schema=to_batch_schema(self._schema))
