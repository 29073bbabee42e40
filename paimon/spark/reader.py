"""Reading on executors: splits are Spark's partitions.

Law: the plan is made once on the driver, at one snapshot; a task reads its splits with `read_split`, as embedded reads
do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from paimon.domain.predicate.expression import And, Predicate
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.split import ReadPlan, read_split
from paimon.spark.filters import predicate_of
from paimon.spark.types import arrow_schema_of, to_spark
from paimon.table import Table


class SplitPartition(InputPartition):
    """One split of the plan, with all that reading it needs (Spark pickles the reader before it plans)."""

    def __init__(self, table: TableDefinition, split: DataSplit, read: ReadPlan) -> None:
        super().__init__(None)
        self.table = table
        self.split = split
        self.read = read


class PaimonReader(DataSourceReader):
    """Plans splits and reads them; columns are those of the schema that Spark (or the user's `.schema(…)`) asks for."""

    def __init__(self, table: Table, schema: StructType) -> None:
        self._table = table
        self._schema = schema
        self._pushed: tuple[Predicate, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that mean exactly the same here; the others stay with Spark."""
        fields = {f.name: f for f in self._table.scan().pinned.table.schema.fields}
        taken = []
        for pushed in filters:
            predicate = predicate_of(pushed, fields)
            if predicate is None:
                yield pushed
            else:
                taken.append(predicate)
        self._pushed = tuple(taken)

    def partitions(self) -> list[InputPartition]:
        scan = self._table.scan(columns=self._schema.fieldNames(), where=self._predicate)
        return [SplitPartition(scan.pinned.table, split, scan.read_plan) for split in scan.plan().splits]

    @property
    def _predicate(self) -> Predicate | None:
        return None if not self._pushed else And(self._pushed)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self._schema)
        if not isinstance(partition, SplitPartition):  # an empty plan still makes Spark read once
            yield pa.RecordBatch.from_pylist([], schema=schema)
            return
        for batch in read_split(self._table.engine, partition.table, partition.split, partition.read):
            yield to_spark(batch, schema)
