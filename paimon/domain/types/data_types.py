"""The data types of the table format, as frozen values.

Law: two types are equal when they mean the same to Java; the text and JSON forms live in `text` and `json`, the Arrow
form in `arrow`. Source: Paimon's "Data Types" documentation and its `DataTypes` class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from attrs import evolve, field, frozen
from attrs.validators import ge, le

MAX_LENGTH = 2_147_483_647
"""Length of STRING and BYTES: VARCHAR and VARBINARY without a bound."""

T = TypeVar("T", bound="DataType")


@frozen(kw_only=True)
class DataType:
    """What all types share: whether null is allowed."""

    nullable: bool = True

    def with_nullable(self: T, nullable: bool) -> T:
        """The same type, with this nullability."""
        return self if self.nullable == nullable else evolve(self, nullable=nullable)


@frozen
class BooleanType(DataType):
    """BOOLEAN."""


@frozen
class TinyIntType(DataType):
    """TINYINT, 8 bits signed."""


@frozen
class SmallIntType(DataType):
    """SMALLINT, 16 bits signed."""


@frozen
class IntType(DataType):
    """INT, 32 bits signed."""


@frozen
class BigIntType(DataType):
    """BIGINT, 64 bits signed."""


@frozen
class FloatType(DataType):
    """FLOAT, IEEE 754 single."""


@frozen
class DoubleType(DataType):
    """DOUBLE, IEEE 754 double."""


@frozen
class DecimalType(DataType):
    """DECIMAL(precision, scale)."""

    precision: int = field(default=10, validator=[ge(1), le(38)])
    scale: int = field(default=0, validator=ge(0))


@frozen
class CharType(DataType):
    """CHAR(length); never blank padded in memory."""

    length: int = field(default=1, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class VarCharType(DataType):
    """VARCHAR(length); STRING is the one of `MAX_LENGTH`."""

    length: int = field(default=MAX_LENGTH, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class BinaryType(DataType):
    """BINARY(length)."""

    length: int = field(default=1, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class VarBinaryType(DataType):
    """VARBINARY(length); BYTES is the one of `MAX_LENGTH`."""

    length: int = field(default=MAX_LENGTH, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class DateType(DataType):
    """DATE, days since 1970-01-01."""


@frozen
class TimeType(DataType):
    """TIME(precision); the format holds milliseconds whatever the precision."""

    precision: int = field(default=0, validator=[ge(0), le(9)])


@frozen
class TimestampType(DataType):
    """TIMESTAMP(precision) without time zone."""

    precision: int = field(default=6, validator=[ge(0), le(9)])


@frozen
class LocalZonedTimestampType(DataType):
    """TIMESTAMP(precision) WITH LOCAL TIME ZONE: an instant."""

    precision: int = field(default=6, validator=[ge(0), le(9)])


@frozen
class ArrayType(DataType):
    """ARRAY<element>."""

    element: DataType


@frozen
class MapType(DataType):
    """MAP<key, value>."""

    key: DataType
    value: DataType


@frozen
class MultisetType(DataType):
    """MULTISET<element>: a map from element to its count (INT)."""

    element: DataType


@frozen(cache_hash=True)  # Arrow fields are kept by it
class DataField:
    """A named, numbered column or nested field.

    `id` is unique in a table for ever, which is what schema evolution goes by; `default_value` is SQL literal text;
    `unknown` keeps JSON members that this library does not know (name, JSON text), so that they are written back.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None
    unknown: tuple[tuple[str, str], ...] = ()


def _fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(values)


@frozen
class RowType(DataType):
    """ROW<fields>."""

    fields: tuple[DataField, ...] = field(converter=_fields)


@frozen
class VariantType(DataType):
    """VARIANT: semi-structured data."""


@frozen
class BlobType(DataType):
    """BLOB: large binary values, kept in files of their own."""


@frozen
class VectorType(DataType):
    """VECTOR<element, length>: arrays of one fixed length."""

    element: DataType
    length: int = field(validator=ge(1))


INTEGER_TYPES = (TinyIntType, SmallIntType, IntType, BigIntType)
CHARACTER_TYPES = (CharType, VarCharType)
BYTES_TYPES = (BinaryType, VarBinaryType)
TIMESTAMP_TYPES = (TimestampType, LocalZonedTimestampType)
NESTED_TYPES = (ArrayType, MapType, MultisetType, RowType, VectorType)
"""Types that hold other types."""
