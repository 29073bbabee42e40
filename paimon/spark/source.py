"""The PySpark data source `paimon`.

Invariant: readers and writers are pickled between Spark's planner, executors and committer, and share no other state.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.spark.options import Source, SourceOptions, parse_source_options
from paimon.spark.reader import PaimonReader, RefusedStream
from paimon.spark.types import to_spark_schema
from paimon.spark.writer import PaimonWriter, check_columns
from paimon.table import Table


class PaimonDataSource(DataSource):
    """Data source of tables by path: `spark.read.format("paimon").load(path)`.

    Names of options are case-insensitive. Time travel: `snapshot`, `tag`, `versionAsOf` (a snapshot id or a tag) or
    `timestampAsOf` (ISO text, in local time without an offset). Access: `storage` and `catalog` (JSON objects with the
    options of `paimon.connect` without secrets; `catalog` includes `warehouse`) and `allowed-roots`. Table options:
    `table-options` (JSON), or each table option by its name. Writes: `kind-column`, `commit-user` and
    `commit-identifier`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "paimon"

    @property
    def _options(self) -> SourceOptions:
        return parse_source_options(self.options)

    @property
    def _source(self) -> Source:
        options = self._options
        return Source(options.open_source(), options.pinned)

    def schema(self) -> StructType:
        """Return the Spark schema of the table."""
        return to_spark_schema(self._source.scan().arrow_schema)

    def reader(self, schema: StructType) -> PaimonReader:
        """Return a reader of the columns of a schema."""
        return PaimonReader(self._source, schema)

    def writer(self, schema: StructType, overwrite: bool) -> PaimonWriter:
        """Return a writer of rows to an append table, or to postponed buckets.

        Raises
        ------
        InvalidRequest
            The table has a primary key and real buckets, or the columns do not fit.
        """
        options = self._options
        table = options.open_target()
        if table.primary_keys and not self._writes_postponed_rows(table):
            raise InvalidRequest(
                f"Table {table.name!r} has a primary key, and df.write does not route rows to their bucket.",
                subject=table.name,
                hint="write it with paimon.spark.write(df, table)",
            )
        writer = PaimonWriter(table, options, overwrite)
        check_columns(writer.builder, schema, options.kind_column)
        return writer

    @staticmethod
    def _writes_postponed_rows(table: Table) -> bool:
        """Return whether rows need no route to a bucket, because a compaction moves them later."""
        options = table.definition.options
        return options.bucket == POSTPONED and not options.postpone_batch_write_fixed_bucket

    def streamReader(self, schema: StructType) -> RefusedStream:
        """Return a reader that refuses `readStream`."""
        return RefusedStream()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse `writeStream`.

        Raises
        ------
        Unsupported
            Always.
        """
        raise Unsupported(
            "writeStream to Paimon tables",
            hint="call paimon.spark.write(df, table, commit_user=…, commit_identifier=batch_id) in foreachBatch",
        )
