"""Metadata columns of an attached catalog, as Java's connector has them: file, position, bucket and partition of a row.

Invariant: the rows are those of the scan. A row that is merged has no place in a file, so its file is refused.
Source: `PaimonMetadataColumn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from paimon.domain.errors import Unsupported
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.state_difference import file_vectors
from paimon.operations.row_level.numbered_rows import NumberedFile, NumberedRows
from paimon.operations.table_context import TableContext
from paimon.scan import Scan
from paimon.spark.options import check_shared_storage
from paimon.spark.read import ReadSplits, read_splits
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm
from paimon.spark.types import to_batch_schema, to_spark_schema
from paimon.table import Table

FILE_PATH, ROW_INDEX, BUCKET, PARTITION = (
    f"__paimon_{name}" for name in ("file_path", "row_index", "bucket", "partition")
)
_PLACES = {FILE_PATH: pa.string(), ROW_INDEX: pa.int64(), BUCKET: pa.int32()}


def list_metadata_columns(schema: T.StructType, partitions: Sequence[str]) -> list[T.StructField]:
    """Return the metadata columns of a table with these columns."""
    kinds: dict[str, T.DataType] = {FILE_PATH: T.StringType(), ROW_INDEX: T.LongType(), BUCKET: T.IntegerType()}
    if partitions:
        kinds[PARTITION] = T.StructType([schema[name] for name in partitions])
    return [T.StructField(name, kind) for name, kind in kinds.items()]


class MetadataColumnProxy(JavaProxy):
    """A metadata column for Spark."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.catalog.MetadataColumn",)

    def __init__(self, jvm: Jvm, column: T.StructField) -> None:
        self.jvm = jvm
        self._column = column

    def name(self) -> str:
        """Return the name."""
        return str(self._column.name)

    def dataType(self) -> Any:
        """Return the type."""
        return self.jvm.to_java_type(self._column.dataType)

    def isNullable(self) -> bool:
        """Return that outer joins may add nulls."""
        return True

    def comment(self) -> None:
        """Return no comment."""

    def transform(self) -> None:
        """Return that no column is transformed."""

    def metadataInJSON(self) -> None:
        """Return no metadata of the column."""


def read_with_metadata(spark: SparkSession, table: Table, scan: Scan, columns: Sequence[str]) -> DataFrame:
    """Return the columns of a scan, and the metadata columns that `columns` names, as `read_splits` reads them."""
    added = tuple(name for name in columns if name in _PLACES and name not in scan.arrow_schema.names)
    splits = scan.plan().splits
    if any(_joins_files(table.context, split) for split in splits) and {FILE_PATH, ROW_INDEX} & {*added}:
        hint = "CALL sys.compact, or leave out the column; bucket and partition are always known"
        raise Unsupported(f"{added[0]} of {table.name!r}, whose files are merged", hint=hint)
    check_shared_storage(table)
    schema = scan.arrow_schema
    for name in added:
        schema = schema.append(pa.field(name, _PLACES[name]))
    shown = to_spark_schema(schema)
    context = table.context.with_table(scan.pinned.table)
    frame = read_splits(spark, splits, _ReadPlaces(context, scan.read_plan, to_batch_schema(shown), added), shown)
    if PARTITION in columns and PARTITION not in scan.arrow_schema.names:
        frame = frame.withColumn(PARTITION, F.struct(*table.partition_keys))
    return frame.select(*columns)


def _joins_files(context: TableContext, split: DataSplit) -> bool:
    is_alone = split.raw_convertible or not (context.schema.primary_keys or context.options.data_evolution_enabled)
    return not is_alone or split.branch is not None or bool(split.before_files)


@frozen(eq=False)
class _ReadPlaces(ReadSplits):
    """The task that reads the rows of splits, and adds columns."""

    added: tuple[str, ...]

    def read_split(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split with the columns."""
        if not {FILE_PATH, ROW_INDEX}.intersection(self.added):
            for batch in super().read_split(split):
                yield self._add(batch, {BUCKET: split.bucket})
            return
        plain = NumberedRows(self.context, None, self.read, ROW_INDEX, ())
        vectors = file_vectors(split.files, split.deletion_files)
        for path, (file, deleted) in zip(split.file_paths, vectors, strict=True):
            for batch in evolve(plain, files=(NumberedFile(split, file, deleted, 0),)).to_batches():
                known = {FILE_PATH: path, BUCKET: split.bucket, ROW_INDEX: batch.column(ROW_INDEX)}
                yield self._add(batch.drop_columns([ROW_INDEX]), known)

    def _add(self, batch: pa.RecordBatch, known: dict[str, Any]) -> pa.RecordBatch:
        for name in self.added:
            value = known[name]
            column = value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, _PLACES[name]), len(batch))
            batch = batch.append_column(pa.field(name, _PLACES[name]), column)
        return batch
