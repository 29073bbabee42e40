"""The data types of the table format, as frozen values.

Invariant: two types are equal when they mean the same to Java. The text form is in `type_text`, the JSON form in
`type_json`, the Arrow form in `arrow`.
Source: Paimon's "Data Types" documentation and its `DataTypes` class.
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
    """The base of all types: it holds whether null is allowed."""

    nullable: bool = True

    def with_nullable(self: T, nullable: bool) -> T:
        """Return the same type with this nullability."""
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
    """DECIMAL(precision, scale): `precision` digits (1 to 38), of which `scale` follow the point."""

    precision: int = field(default=10, validator=[ge(1), le(38)])
    scale: int = field(default=0, validator=ge(0))


@frozen
class CharType(DataType):
    """CHAR(length), 1 to `MAX_LENGTH` characters; never padded with blanks in memory."""

    length: int = field(default=1, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class VarCharType(DataType):
    """VARCHAR(length), at most so many characters; STRING is the type with length `MAX_LENGTH`."""

    length: int = field(default=MAX_LENGTH, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class BinaryType(DataType):
    """BINARY(length), in bytes."""

    length: int = field(default=1, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class VarBinaryType(DataType):
    """VARBINARY(length), at most so many bytes; BYTES is the type with length `MAX_LENGTH`."""

    length: int = field(default=MAX_LENGTH, validator=[ge(1), le(MAX_LENGTH)])


@frozen
class DateType(DataType):
    """DATE: days since 1970-01-01."""


@frozen
class TimeType(DataType):
    """TIME(precision): the time of day; the format stores milliseconds whatever the precision."""

    precision: int = field(default=0, validator=[ge(0), le(9)])


@frozen
class TimestampType(DataType):
    """TIMESTAMP(precision) without a time zone; `precision` is the number of fractional digits of a second (0 to 9)."""

    precision: int = field(default=6, validator=[ge(0), le(9)])


@frozen
class LocalZonedTimestampType(DataType):
    """TIMESTAMP(precision) WITH LOCAL TIME ZONE: an instant; `precision` is as for `TimestampType`."""

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
    """MULTISET<element>: a map from each element to its count (INT)."""

    element: DataType


@frozen(cache_hash=True)  # a key of caches of Arrow fields
class DataField:
    """A named, numbered column or nested field."""

    # unique in a table forever; schema evolution matches columns by it
    id: int
    name: str
    type: DataType
    description: str | None = None
    # the text of an SQL literal, written where a row has no value
    default_value: str | None = None
    # JSON members that this library does not know (name, JSON text); they are written back
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
    """BLOB: large binary values, stored in files of their own."""


@frozen
class VectorType(DataType):
    """VECTOR<element, length>: arrays of a fixed length."""

    element: DataType
    length: int = field(validator=ge(1))


INTEGER_TYPES = (TinyIntType, SmallIntType, IntType, BigIntType)
CHARACTER_TYPES = (CharType, VarCharType)
BYTES_TYPES = (BinaryType, VarBinaryType)
TIMESTAMP_TYPES = (TimestampType, LocalZonedTimestampType)
NESTED_TYPES = (ArrayType, MapType, MultisetType, RowType, VectorType)
"""Types that contain other types."""
