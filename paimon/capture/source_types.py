"""The types of source columns: what a value means, and the type that a new column of a table gets.

Source: the documentation of Debezium's connectors on data types, the types of Kafka Connect, and those of MySQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType


class Encoding(Enum):
    """How a source writes a value that is not plain text or a plain number."""

    PLAIN = "plain"
    DAYS = "days"
    MILLIS = "millis"
    MICROS = "micros"
    NANOS = "nanos"
    DECIMAL = "decimal"
    VARIABLE_DECIMAL = "variable decimal"
    LATIN1 = "latin1"
    BITS = "bits"


@frozen
class SourceType:
    """The type of a source column."""

    # the meaning of its values; bytes are base64 unless Latin-1 text, bits come with the last byte first
    encoding: Encoding = Encoding.PLAIN
    # for encoded decimals, the number of digits after the point; -1 if unknown
    scale: int = 0
    # the type of a new column; None if only the values can show it
    data_type: DataType | None = None
    # whether values are in MongoDB's extended JSON
    is_extended_json: bool = False

    @property
    def of_parts(self) -> SourceType:
        """The type of the values inside nested values."""
        return EXTENDED_JSON if self.is_extended_json else SourceType()


EXTENDED_JSON = SourceType(Encoding.MILLIS, is_extended_json=True)
"""The type of all values in documents of MongoDB."""


@frozen
class SourceTypes:
    """The types of the columns of one source table."""

    # by column name
    columns: Mapping[str, SourceType] = field(factory=dict)
    # the meaning of numbers in TIME columns without a type; by default decided by the precision
    time_encoding: Encoding = Encoding.PLAIN
    # how bytes are written in columns without a type
    byte_encoding: Encoding = Encoding.PLAIN
    # whether values are in MongoDB's extended JSON
    is_extended_json: bool = False

    def of_column(self, name: str, target: DataType) -> SourceType:
        """Return the type of a column whose values go to a column of a type."""
        if self.is_extended_json:
            return EXTENDED_JSON
        if name in self.columns:
            return self.columns[name]
        if isinstance(target, dt.TimeType):
            return SourceType(self.time_encoding)
        return SourceType(self.byte_encoding if isinstance(target, dt.BYTES_TYPES) else Encoding.PLAIN)


_STRING = SourceType(data_type=dt.VarCharType())
_CONNECT_TYPES: Mapping[str, SourceType] = {
    "boolean": SourceType(data_type=dt.BooleanType()),
    "int8": SourceType(data_type=dt.TinyIntType()),
    "int16": SourceType(data_type=dt.SmallIntType()),
    "int32": SourceType(data_type=dt.IntType()),
    "int64": SourceType(data_type=dt.BigIntType()),
    "float": SourceType(data_type=dt.FloatType()),
    "float32": SourceType(data_type=dt.FloatType()),
    "double": SourceType(data_type=dt.DoubleType()),
    "float64": SourceType(data_type=dt.DoubleType()),
    "bytes": SourceType(data_type=dt.VarBinaryType()),
}
_LOGICAL_TYPES: Mapping[str, SourceType] = {
    "io.debezium.time.Date": SourceType(Encoding.DAYS, data_type=dt.DateType()),
    "org.apache.kafka.connect.data.Date": SourceType(Encoding.DAYS, data_type=dt.DateType()),
    "io.debezium.time.Time": SourceType(Encoding.MILLIS, data_type=dt.TimeType(3)),
    "org.apache.kafka.connect.data.Time": SourceType(Encoding.MILLIS, data_type=dt.TimeType(3)),
    "io.debezium.time.MicroTime": SourceType(Encoding.MICROS, data_type=dt.TimeType(3)),
    "io.debezium.time.NanoTime": SourceType(Encoding.NANOS, data_type=dt.TimeType(3)),
    "io.debezium.time.Timestamp": SourceType(Encoding.MILLIS, data_type=dt.TimestampType(3)),
    "org.apache.kafka.connect.data.Timestamp": SourceType(Encoding.MILLIS, data_type=dt.TimestampType(3)),
    "io.debezium.time.MicroTimestamp": SourceType(Encoding.MICROS, data_type=dt.TimestampType(6)),
    "io.debezium.time.NanoTimestamp": SourceType(Encoding.NANOS, data_type=dt.TimestampType(9)),
    "io.debezium.time.ZonedTimestamp": SourceType(data_type=dt.LocalZonedTimestampType(6)),
    "io.debezium.time.ZonedTime": SourceType(data_type=dt.TimeType(3)),
    "io.debezium.time.IsoDate": SourceType(data_type=dt.DateType()),
    "io.debezium.time.IsoTime": SourceType(data_type=dt.TimeType(3)),
    "io.debezium.time.IsoTimestamp": SourceType(data_type=dt.TimestampType(6)),
    "io.debezium.data.Bits": SourceType(Encoding.BITS, data_type=dt.VarBinaryType()),
    "io.debezium.data.VariableScaleDecimal": SourceType(
        Encoding.VARIABLE_DECIMAL, data_type=dt.VarCharType()
    ),  # one column may have any scale, so that its text alone is exact
}
_MOST_DIGITS = 4
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_MYSQL_TYPE = re.compile(r"\s*([a-z]+)(?:\s*\(\s*(\d+)(?:\s*,\s*(\d+))?\s*\))?(.*)", re.IGNORECASE | re.DOTALL)
_MYSQL_INTEGERS: Mapping[str, tuple[DataType, DataType]] = {
    "tinyint": (dt.TinyIntType(), dt.SmallIntType()),
    "smallint": (dt.SmallIntType(), dt.IntType()),
    "mediumint": (dt.IntType(), dt.IntType()),
    "int": (dt.IntType(), dt.BigIntType()),
    "integer": (dt.IntType(), dt.BigIntType()),
    "bigint": (dt.BigIntType(), dt.DecimalType(20, 0)),
}
"""The signed type and the unsigned one."""
_MYSQL_PLAIN: Mapping[str, SourceType] = {
    "year": SourceType(data_type=dt.IntType()),
    "float": SourceType(data_type=dt.FloatType()),
    "double": SourceType(data_type=dt.DoubleType()),
    "real": SourceType(data_type=dt.DoubleType()),
    "date": SourceType(data_type=dt.DateType()),
    "time": SourceType(data_type=dt.TimeType(3)),
    **{
        name: SourceType(Encoding.LATIN1, data_type=dt.VarBinaryType())
        for name in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
    },
}


def parse_connect_types(schema_text: str, side_names: tuple[str, ...] = ("after", "before")) -> dict[str, SourceType]:
    """Return the types of the row columns in the schema of a Kafka Connect envelope, by column name.

    `side_names` are the fields of the envelope that contain a row. The result is empty if the schema describes no row.
    """
    envelope = _load_mapping(schema_text)
    sides = {str(f.get("field")): f for f in map(_as_mapping, _as_list(envelope.get("fields")))}
    for name in side_names:
        rows = [_as_mapping(f) for f in _as_list(_as_mapping(sides.get(name)).get("fields"))]
        if rows:
            return {str(f["field"]): _to_connect_type(f) for f in rows if "field" in f}
    return {}


def _to_connect_type(column: Mapping[str, Any]) -> SourceType:
    name = column.get("name")
    if name == _DECIMAL:
        return _to_decimal(_as_mapping(column.get("parameters")))
    if isinstance(name, str) and name in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[name]
    return _CONNECT_TYPES.get(str(column.get("type")), _STRING)


def _to_decimal(parameters: Mapping[str, Any]) -> SourceType:
    scale = _to_integer(parameters.get("scale"), -1)
    precision = _to_integer(parameters.get("connect.decimal.precision"), 38)
    fits = 1 <= precision <= 38 and 0 <= scale <= precision
    return SourceType(Encoding.DECIMAL, scale, dt.DecimalType(precision, scale) if fits else dt.VarCharType())


def parse_mysql_types(types_text: str) -> dict[str, SourceType]:
    """Return the types of columns from the JSON text of a mapping from column to MySQL type."""
    return {name: _to_mysql_type(str(text)) for name, text in _load_mapping(types_text).items()}


def _to_mysql_type(text: str) -> SourceType:
    found = _MYSQL_TYPE.match(text)
    if found is None:
        return _STRING
    name, first, second, rest = found[1].lower(), found[2], found[3], found[4].lower()
    if name in _MYSQL_INTEGERS:
        return SourceType(data_type=_MYSQL_INTEGERS[name]["unsigned" in rest])
    if name == "bit":
        is_flag = first in (None, "1")
        return SourceType(data_type=dt.BooleanType()) if is_flag else SourceType(data_type=dt.BigIntType())
    if name in ("decimal", "numeric", "dec"):
        precision, scale = _to_integer(first, 10), _to_integer(second, 0)
        return SourceType(data_type=dt.DecimalType(precision, scale) if precision <= 38 else dt.VarCharType())
    if name == "datetime":
        return SourceType(data_type=dt.TimestampType(min(_to_integer(first, 0), 9)))
    if name == "timestamp":
        return SourceType(data_type=dt.LocalZonedTimestampType(min(_to_integer(first, 0), 9)))
    return _MYSQL_PLAIN.get(name, _STRING)


def _to_integer(value: object, default: int) -> int:
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
    return int(str(value)) if is_number else default


def _load_mapping(text: str) -> Mapping[str, Any]:
    """Return a JSON object; one that is too deep, or has too large numbers, describes no types."""
    try:
        return _as_mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
