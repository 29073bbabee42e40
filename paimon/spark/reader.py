"""Reading on executors: splits are Spark's partitions.

Law: the plan is made once on the driver, at one snapshot; a task reads its splits with `read_split`, as embedded reads
do. A system table made of metadata is read by one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

from paimon.domain.errors import Unsupported
from paimon.domain.predicate.expression import And, Predicate
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.read.split import ReadPlan, read_split
from paimon.scan import Scan
from paimon.spark.filters import predicate_of
from paimon.spark.options import Source
from paimon.spark.types import arrow_schema_of, to_spark
from paimon.table import Table


class SplitPartition(InputPartition):
    """One split of the plan, with all that reading it needs (Spark pickles the reader before it plans)."""

    def __init__(self, table: TableDefinition, split: DataSplit, read: ReadPlan) -> None:
        super().__init__(None)
        self.table = table
        self.split = split
        self.read = read


class WholePartition(InputPartition):
    """All rows of a system table."""

    def __init__(self) -> None:
        super().__init__(None)


class PaimonReader(DataSourceReader):
    """Plans splits and reads them; columns are those of the schema that Spark (or the user's `.schema(…)`) asks for."""

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._schema = schema
        self._pushed: tuple[Predicate, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that mean exactly the same here; the others stay with Spark."""
        scan = self._source.scan() if isinstance(self._source.opened, Table) else None
        fields = {f.name: f for f in scan.fields} if isinstance(scan, Scan) else {}
        taken = []
        for pushed in filters:
            predicate = predicate_of(pushed, fields)
            if predicate is None:
                yield pushed
            else:
                taken.append(predicate)
        self._pushed = tuple(taken)

    def partitions(self) -> list[InputPartition]:
        scan = self._source.scan(self._schema.fieldNames(), And(self._pushed) if self._pushed else None)
        if not isinstance(scan, Scan):
            return [WholePartition()]
        return [SplitPartition(scan.pinned.table, split, scan.read_plan) for split in scan.plan().splits]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self._schema)
        for batch in self._batches(partition):
            yield to_spark(batch, schema)

    def _batches(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_split(self._source.opened.engine, partition.table, partition.split, partition.read)
        elif isinstance(partition, WholePartition):
            yield from self._source.scan(self._schema.fieldNames()).to_batches()
        else:  # an empty plan still makes Spark read once
            yield pa.RecordBatch.from_pylist([], schema=arrow_schema_of(self._schema))


class RefusedStream(DataSourceStreamReader):
    """Refuses `readStream` by name (Spark loses an error that is raised before there is a reader)."""

    def _refuse(self, *arguments: object) -> NoReturn:
        raise Unsupported(
            "readStream of Paimon tables", hint="read changes in batches (Table.changes), or follow them (Table.follow)"
        )

    initialOffset = latestOffset = partitions = read = _refuse
