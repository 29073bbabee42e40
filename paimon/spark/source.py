"""The PySpark data source `paimon`.

Law: each part is a pickled value between Spark's planner, its executors and its committer; nothing is shared but what
is pickled here.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from paimon.domain.errors import InvalidRequest
from paimon.spark.options import SourceOptions, source_options
from paimon.spark.reader import PaimonReader
from paimon.spark.types import spark_schema
from paimon.spark.writer import PaimonWriter


class PaimonDataSource(DataSource):
    """Tables by path: `spark.read.format("paimon").load(path)`."""

    @classmethod
    def name(cls) -> str:
        return "paimon"

    @property
    def _source(self) -> SourceOptions:
        return source_options(self.options)

    def schema(self) -> StructType:
        return spark_schema(self._source.table().scan().arrow_schema)

    def reader(self, schema: StructType) -> PaimonReader:
        return PaimonReader(self._source.table(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> PaimonWriter:
        source = self._source
        table = source.table()
        if table.primary_keys and not source.routed:
            raise InvalidRequest(
                f"{table.name} has a primary key, and df.write does not bring each bucket's rows together",
                subject=table.name,
                hint="write it with paimon.spark.write(df, table)",
            )
        return PaimonWriter(table, source, overwrite)
