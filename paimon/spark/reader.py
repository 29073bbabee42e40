"""Read on executors: each split is a partition of Spark.

Invariant: the driver plans once, at one snapshot. A task reads its split with `read_split`, as embedded reads do. A
system table made from metadata is read by one task.
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
from paimon.scan import Scan
from paimon.spark.filters import to_predicate
from paimon.spark.options import Source
from paimon.spark.types import to_batch_schema, to_spark_batch
from paimon.table import Table


class SplitPartition(InputPartition):
    """One split of the plan with everything that its read needs, because Spark pickles the reader before it plans."""

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
    """Reader of splits; its columns are those of the schema of Spark or of the user's `.schema(…)`."""

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._schema = schema
        self._pushed: tuple[Predicate, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Accept the filters that have an equal predicate, and yield the others, which stay with Spark."""
        scan = self._source.scan() if isinstance(self._source.opened, Table) else None
        fields = {f.name: f for f in scan.fields} if isinstance(scan, Scan) else {}
        accepted = []
        for pushed in filters:
            predicate = to_predicate(pushed, fields)
            if predicate is None:
                yield pushed
            else:
                accepted.append(predicate)
        self._pushed = tuple(accepted)

    def partitions(self) -> list[InputPartition]:
        """Plan the scan, and return one partition per split."""
        scan = self._source.scan(self._schema.fieldNames(), And(self._pushed) if self._pushed else None)
        if not isinstance(scan, Scan):
            return [WholePartition()]
        return [SplitPartition(scan.pinned.table, split, scan.read_plan) for split in scan.plan().splits]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, with the Arrow types that Spark requires."""
        schema = to_batch_schema(self._schema)
        for batch in self._batches(partition):
            yield to_spark_batch(batch, schema)

    def _batches(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_split(
                self._source.opened.context.with_table(partition.table), partition.split, partition.read
            )
        elif isinstance(partition, WholePartition):
            yield from self._source.scan(self._schema.fieldNames()).to_batches()
        else:  # Spark reads once even if the plan has no splits
            yield pa.RecordBatch.from_pylist([], schema=to_batch_schema(self._schema))
