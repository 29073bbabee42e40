"""The PySpark data source `paimon`.

Law: each part is a pickled value between Spark's planner, its executors and its committer; nothing is shared but what
is pickled here.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.spark.options import Source, SourceOptions, source_options
from paimon.spark.reader import PaimonReader, RefusedStream
from paimon.spark.types import spark_schema
from paimon.spark.writer import PaimonWriter, check_columns


class PaimonDataSource(DataSource):
    """Tables by path: `spark.read.format("paimon").load(path)`.

    Options (their case means nothing): `snapshot`, `tag`, `versionAsOf` (a snapshot's id or a tag) or `timestampAsOf`
    (ISO text, local time where it names no offset), `storage` and `catalog` (JSON of what `paimon.connect` takes, the
    latter with `warehouse`; no secrets), `allowed-roots`, `table-options` (JSON), and all table options by their names;
    for writing `kind-column`, `commit-user` and `commit-identifier`.
    """

    @classmethod
    def name(cls) -> str:
        return "paimon"

    @property
    def _options(self) -> SourceOptions:
        return source_options(self.options)

    @property
    def _source(self) -> Source:
        options = self._options
        return Source(options.open(), options.pinned)

    def schema(self) -> StructType:
        return spark_schema(self._source.scan().arrow_schema)

    def reader(self, schema: StructType) -> PaimonReader:
        return PaimonReader(self._source, schema)

    def writer(self, schema: StructType, overwrite: bool) -> PaimonWriter:
        options = self._options
        table = options.table()
        if table.primary_keys:
            raise InvalidRequest(
                f"{table.name} has a primary key, and df.write does not bring each bucket's rows together",
                subject=table.name,
                hint="write it with paimon.spark.write(df, table)",
            )
        writer = PaimonWriter(table, options, overwrite)
        check_columns(writer.builder, schema, options.kind_column)
        return writer

    def streamReader(self, schema: StructType) -> RefusedStream:
        return RefusedStream()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        raise Unsupported(
            "writeStream to Paimon tables",
            hint="call paimon.spark.write(df, table, commit_user=…, commit_identifier=batch_id) in foreachBatch",
        )
