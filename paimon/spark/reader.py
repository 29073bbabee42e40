"""Read on executors: each split is a partition of Spark.

Invariant: the driver plans once, at one snapshot. A task reads its split with `read_split`, as embedded reads do. A
system table made from metadata is read by one task.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from paimon.domain.scan.engine_files import leave_out_files
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.engines import freeze_objects
from paimon.operations.read.split import ReadPlan, read_split
from paimon.scan import Scan
from paimon.spark.options import Source
from paimon.spark.types import to_batch_schema, to_spark_batch


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
    """Reader of splits; its columns are those of the schema of Spark or of the user's `.schema(…)`.

    It has no method `pushFilters`: Spark keeps the filters of one use of a data frame for its other uses, which would
    then lose rows.
    """

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the scan, and return one partition per split."""
        scan = self._source.scan(self._schema.fieldNames())
        if not isinstance(scan, Scan):
            return [WholePartition()]
        splits = leave_out_files(scan.plan().splits, self._source.left_out)
        freeze_objects()
        return [SplitPartition(scan.pinned.table, split, scan.read_plan) for split in splits]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, with the Arrow types that Spark requires."""
        schema = to_batch_schema(self._schema)
        for batch in self._batches(partition):
            yield to_spark_batch(batch, schema)
        freeze_objects()

    def _batches(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_split(
                self._source.opened.context.with_table(partition.table), partition.split, partition.read
            )
        elif isinstance(partition, WholePartition):
            yield from self._source.scan(self._schema.fieldNames()).to_batches()
        else:  # Spark reads once even if the plan has no splits
            yield pa.RecordBatch.from_pylist([], schema=to_batch_schema(self._schema))
