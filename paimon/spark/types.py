"""Convert Arrow schemas and batches to those that Spark requires, and Arrow data to data frames.

Invariant: Spark requires the Arrow types that it derives from its own schema: timestamps in microseconds, 64-bit times
and instants in UTC. Each column is cast to its type, and nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from paimon.domain.columns import nested
from paimon.domain.columns.accept import complete_type
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

BatchMapper: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
_AS_TEXTS = (DayTimeIntervalType, YearMonthIntervalType, CalendarIntervalType, VariantType)
"""Types that Spark casts to texts, and that Arrow lacks, or has without their fields."""


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
    return pa.field(field.name, _spark_type(field.type), field.nullable, field.metadata)


def to_batch_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires of batches with this Spark schema.

    The elements of ``[]`` have the type null and are never null for Spark, a pair that PySpark does not convert.
    """
    fields = []
    for column in schema:
        try:
            fields.append(_to_batch_field(column.name, column.dataType, column.nullable))
        except PySparkTypeError as error:
            raise InvalidRequest(
                f"Column {column.name!r} has Spark's type {column.dataType.simpleString()!r}, which cannot be stored.",
                subject=column.name,
                hint="cast it to STRING",
            ) from error
    return pa.schema(fields)


def _to_batch_field(name: str, kind: DataType, nullable: bool) -> pa.Field:
    return pa.field(name, _to_batch_type(kind), nullable or isinstance(kind, NullType))


def _to_batch_type(kind: DataType) -> pa.DataType:
    match kind:
        case ArrayType():
            return pa.list_(_to_batch_field("element", kind.elementType, kind.containsNull))
        case MapType():
            value = _to_batch_field("value", kind.valueType, kind.valueContainsNull)
            return make_map_type(_to_batch_type(kind.keyType), value)
        case StructType():
            return pa.struct([_to_batch_field(f.name, f.dataType, f.nullable) for f in kind])
        case CharType() | VarcharType():
            return pa.string()
        case TimestampType():  # the parameter with the time zone differs between versions of PySpark
            return pa.timestamp("us", tz="UTC")
    return to_arrow_schema(StructType([StructField("value", kind)])).field(0).type


def make_map_type(key: pa.DataType, value: pa.Field) -> pa.DataType:
    """Return the type of a map, also with keys of the type null, which `pyarrow.map_` refuses."""
    if pa.types.is_null(key):
        return pa.MapArray.from_arrays([0], pa.nulls(0), pa.nulls(0, value.type)).type
    return pa.map_(key, value)


def has_null_parts(kind: DataType) -> bool:
    """Return whether a type contains a list, a map or a struct with a part of the type null, as that of ``[]``."""
    return not isinstance(kind, NullType) and _has_part(kind, (NullType,))


def _has_part(kind: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    """Return whether a type, or one inside it, is one of the wanted types."""
    match kind:
        case ArrayType():
            parts = [kind.elementType]
        case MapType():
            parts = [kind.keyType, kind.valueType]
        case StructType():
            parts = [f.dataType for f in kind]
        case _:
            return isinstance(kind, wanted)
    return any(_has_part(part, wanted) for part in parts)


def fit_frame(frame: DataFrame, fields: Sequence[DataField], kind_column: str | None = None) -> DataFrame:
    """Rename the columns of a frame as in the table, and cast intervals and variants to strings.

    Names change only if the session ignores case; it then refuses names that differ only in case. `kind_column` stays.
    """
    if has_case_insensitive_names(frame.sparkSession):
        frame = _match_names(frame, fields, kind_column)
    return cast_to_texts(frame, fields)


def quote_column(name: str) -> str:
    """Return the name of a column as Spark reads it: without quotes, ``a.b`` is a field of a struct."""
    return "`{}`".format(name.replace("`", "``"))


def map_in_arrow(frame: DataFrame, function: BatchMapper, schema: StructType | str) -> DataFrame:
    """Call `mapInArrow` of a frame, which reads ``.`` and ````` in the names of columns as a path and as quotes."""
    names = frame.columns
    if not any(char in name for name in names for char in ".`"):
        return frame.mapInArrow(function, schema)
    plain = frame.toDF(*(f"c{number}" for number in range(len(names))))
    return plain.mapInArrow(_NamedBatches(function, tuple(names)), schema)


@frozen(eq=False)
class _NamedBatches:
    """A function of batches, whose columns get these names before."""

    function: BatchMapper
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return iter(self.function(batch.rename_columns(self.names) for batch in batches))


def has_case_insensitive_names(spark: SparkSession) -> bool:
    """Return whether a session compares the names of columns without their case, which is Spark's default."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() != "true"


def _match_names(frame: DataFrame, fields: Sequence[DataField], kind_column: str | None) -> DataFrame:
    """Rename the columns and the fields of structs that have other names only in upper and lower case."""
    given = StructType([f for f in frame.schema if f.name != kind_column])
    wanted = _rename_fields(given, fields)
    if wanted == given:
        return frame
    rows = frame.toDF(*(wanted[given.names.index(n)].name if n in given.names else n for n in frame.columns))
    types = dict(zip(wanted.names, zip(given, wanted, strict=True), strict=True))
    casts = {
        name: rows[quote_column(name)].cast(after.dataType)
        for name, (before, after) in types.items()
        if before.dataType != after.dataType
    }
    return rows.withColumns(casts) if casts else rows


def _rename_fields(given: StructType, fields: Sequence[DataField]) -> StructType:
    """Return columns or fields of a struct under the names that a table has for them."""
    stored = {f.name: f.type for f in fields}
    by_lower: dict[str, list[str]] = {}
    for stored_name in stored:
        by_lower.setdefault(stored_name.lower(), []).append(stored_name)
    names = [n if n in stored else _find_name(n, by_lower.get(n.lower(), [])) for n in given.names]
    taken: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        taken.setdefault(name.lower(), []).append(position)
    for positions in taken.values():
        same = {names[i] for i in positions}
        if len(positions) > 1 and not (len(same) == len(positions) and same <= stored.keys()):
            raise InvalidRequest(
                f"Columns {', '.join(repr(given.names[i]) for i in positions)} are the same one in this session, which "
                "ignores case.",
                subject=given.names[positions[0]],
                hint="leave one of them out, or set spark.sql.caseSensitive to true",
            )
    kinds = (_rename_parts(f.dataType, stored.get(name)) for f, name in zip(given, names, strict=True))
    made = zip(names, kinds, given, strict=True)
    return StructType([StructField(name, kind, f.nullable, f.metadata) for name, kind, f in made])


def _find_name(name: str, candidates: Sequence[str]) -> str:
    if len(candidates) > 1:
        raise InvalidRequest(
            f"Column {name!r} can be {' or '.join(map(repr, candidates))} of the table: the session ignores case.",
            subject=name,
            hint="use one of these names, or set spark.sql.caseSensitive to true",
        )
    return candidates[0] if candidates else name


def _rename_parts(kind: DataType, stored: dt.DataType | None) -> DataType:
    match kind, stored:
        case StructType(), dt.RowType():
            return _rename_fields(kind, stored.fields)
        case ArrayType(), dt.ArrayType():
            return ArrayType(_rename_parts(kind.elementType, stored.element), kind.containsNull)
        case MapType(), dt.MapType():
            key, value = _rename_parts(kind.keyType, stored.key), _rename_parts(kind.valueType, stored.value)
            return MapType(key, value, kind.valueContainsNull)
    return kind


def cast_to_texts(frame: DataFrame, fields: Sequence[DataField]) -> DataFrame:
    """Cast intervals and variants to strings where the table has string columns, as INSERT of Spark does."""
    if not any(_has_part(f.dataType, _AS_TEXTS) for f in frame.schema):
        return frame
    known, columns = {f.name: f.type for f in fields}, [frame[quote_column(name)] for name in frame.columns]
    for number, f in enumerate(frame.schema):
        if f.name in known and _has_part(f.dataType, _AS_TEXTS):
            columns[number] = columns[number].cast(_to_text_type(f.dataType, known[f.name])).alias(f.name)
    return frame.select(columns)


def _to_text_type(kind: DataType, stored: dt.DataType) -> DataType:
    """Return a nullable type with texts in the place of intervals and variants that are stored as texts."""
    match kind, stored:
        case _ if isinstance(kind, _AS_TEXTS) and isinstance(stored, dt.CHARACTER_TYPES):
            return StringType()
        case ArrayType(), dt.ArrayType():
            return ArrayType(_to_text_type(kind.elementType, stored.element))
        case MapType(), dt.MapType():
            return MapType(_to_text_type(kind.keyType, stored.key), _to_text_type(kind.valueType, stored.value))
        case StructType(), dt.RowType():
            known = {f.name: f.type for f in stored.fields}
            inner = [_to_text_type(f.dataType, known[f.name]) if f.name in known else f.dataType for f in kind]
            return StructType([StructField(f.name, made) for f, made in zip(kind, inner, strict=True)])
    return kind


def complete_types(frame: DataFrame, wanted: Sequence[pa.DataType | None] | None = None) -> DataFrame:
    """Return a frame whose lists, maps and structs have no part of the type null, which PySpark does not convert.

    `wanted` has the type of the target column for each column of the frame; see `complete_type`.
    """
    if not has_null_parts(frame.schema):
        return frame
    columns = [frame[quote_column(name)] for name in frame.columns]
    for number, (field, given) in enumerate(zip(frame.schema, to_batch_schema(frame.schema), strict=True)):
        if has_null_parts(field.dataType):
            arrow = complete_type(given.type, None if wanted is None else wanted[number])
            kind = to_spark_schema(pa.schema([("value", arrow)]))[0].dataType
            columns[number] = columns[number].cast(kind).alias(field.name)
    return frame.select(columns)


def to_spark_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to a schema by position; a batch without columns keeps its number of rows."""
    if not schema.names:
        return batch
    columns = [
        column if column.type == field.type else _cut_digits(column).cast(field.type, safe=False)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def pad_texts(column: pa.Array, kind: dt.DataType) -> pa.Array:
    """Pad the texts of `CHAR(n)` in a column to n characters, as Spark does where it reads a table."""
    match kind:
        case dt.CharType():
            return pc.utf8_rpad(column, width=kind.length)
        case dt.ArrayType():
            values = nested.list_values(column)
            padded = pad_texts(values, kind.element)
            return column if padded is values else nested.rebuild_list(column, padded, column.type)
        case dt.MapType():
            keys, items = nested.map_entries(column)
            new = pad_texts(keys, kind.key), pad_texts(items, kind.value)
            return column if new[0] is keys and new[1] is items else nested.rebuild_map(column, *new, column.type)
        case dt.RowType():
            parts = nested.struct_children(column)
            made = [pad_texts(part, f.type) for part, f in zip(parts, kind.fields, strict=True)]
            is_same = all(new is old for new, old in zip(made, parts, strict=True))
            return column if is_same else nested.rebuild_struct(column, made, column.type)
    return column


def _cut_digits(column: pa.Array) -> pa.Array:
    """Cut nanoseconds downwards, as Java does also before 1970; a cast of Arrow would cut them towards 1970."""
    kind = column.type
    if not _has_nanoseconds(kind):
        return column
    if pa.types.is_list(kind):
        return nested.rebuild_list(column, _cut_digits(nested.list_values(column)), kind)
    if pa.types.is_map(kind):
        keys, items = (_cut_digits(part) for part in nested.map_entries(column))
        return nested.rebuild_map(column, keys, items, kind)
    if pa.types.is_struct(kind):
        return nested.rebuild_struct(column, [_cut_digits(c) for c in nested.struct_children(column)], kind)
    return pc.floor_temporal(column, unit="microsecond")


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    if pa.types.is_map(kind):
        return _has_nanoseconds(kind.key_type) or _has_nanoseconds(kind.item_type)
    if pa.types.is_list(kind):
        return _has_nanoseconds(kind.value_type)
    return pa.types.is_struct(kind) and any(_has_nanoseconds(field.type) for field in kind)


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
