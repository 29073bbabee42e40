"""Arrow as Spark wants it.

Law: Spark checks that batches have exactly the Arrow types that it derives from its own schema: microsecond
timestamps, 64-bit times, instants in UTC; so each column is cast to those and nothing else is changed.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a table's Arrow schema; TIMESTAMP(7..9) lose their nanoseconds in Spark."""
    plain = pa.schema([pa.field(f.name, _spark_type(f.type), f.nullable) for f in schema])
    answer: StructType = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    return answer


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


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark demands of batches of this Spark schema."""
    answer: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return answer


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly this schema (columns are matched by position); without columns it keeps its rows."""
    if not schema.names:
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
