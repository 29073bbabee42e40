"""Convert Arrow schemas and batches to those that Spark requires, and Arrow data to data frames.

Invariant: Spark requires the Arrow types that it derives from its own schema: timestamps in microseconds, 64-bit times
and instants in UTC. Each column is cast to its type, and nothing else is changed.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Convert the Arrow schema of a table to a Spark schema; Spark has no nanoseconds of TIMESTAMP(7) to (9)."""
    plain = pa.schema([pa.field(f.name, _spark_type(f.type), f.nullable) for f in schema])
    converted: StructType = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    return converted


def _spark_type(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", tz=arrow_type.tz)
    if pa.types.is_time(arrow_type):
        return pa.time64("ns")
    if pa.types.is_map(arrow_type):
        return pa.map_(_spark_type(arrow_type.key_type), _spark_field(arrow_type.item_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_spark_field(arrow_type.value_field))
    if pa.types.is_struct(arrow_type):
        return pa.struct([_spark_field(f) for f in arrow_type])
    return arrow_type


def _spark_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _spark_type(field.type), field.nullable)


def to_batch_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires of batches with this Spark schema."""
    converted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return converted


def to_spark_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to a schema by position; a batch without columns keeps its number of rows."""
    if not schema.names:
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def to_spark_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return Arrow data as a data frame of Spark, which needs no process of Python to read them."""
    schema = to_spark_schema(rows.schema)
    if not rows.num_rows:  # Spark cannot make a frame of no batches
        return make_empty_frame(spark, schema)
    batch_schema = to_batch_schema(schema)
    batches = [to_spark_batch(batch, batch_schema) for batch in rows.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, batch_schema), schema)


def make_empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a data frame without rows, which Spark reads without a task."""
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect
        return spark.createDataFrame([], schema)
    session, jvm = spark._jsparkSession, spark.sparkContext._jvm
    assert jvm is not None
    return DataFrame(session.createDataFrame(jvm.java.util.ArrayList(), session.parseDataType(schema.json())), spark)
