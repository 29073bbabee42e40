"""The form in which file indexes compare and store the values of a column, and the rows of each value.

Invariant: keys have the order and the equality of the values, as Java's predicates define them: -0.0 < 0.0, NaN is the
largest value and equals itself. Only keys of TIMESTAMP beyond microseconds join several values; they are not exact.
Source: `BitmapTypeVisitor`, `KeyFactory`, `BitSliceIndexBitmapFileIndex`, `FastHash`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.buffers import combine_column, read_validity, to_stored_numbers
from paimon.domain.columns.java_float_order import from_float_ordinals, to_float_ordinal, to_float_ordinals
from paimon.domain.row.binary_row import to_unscaled
from paimon.domain.types.arrow import UNIT_NANOS
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    TIMESTAMP_TYPES,
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
)

# A key is an integer of 64 bits, or bytes for texts:
#
#     BOOLEAN                     0, 1
#     TINYINT .. BIGINT           the number
#     DATE, TIME                  days, milliseconds
#     TIMESTAMP(p), LTZ           milliseconds if p <= 3, otherwise microseconds (so digits beyond 6 are lost)
#     DECIMAL(p, s), p <= 18      the unscaled number
#     FLOAT, DOUBLE               the ordinal of the total order; stored as IEEE bits
#     CHAR, VARCHAR               the bytes in UTF-8
#
# An index stores a key in `width` bytes, big endian, and texts behind their length. Sorting keys sorts values, so the
# dictionaries of the indexes are sorted arrays of keys.


Keys: TypeAlias = npt.NDArray[np.int64]
Key: TypeAlias = int | bytes
_WIDTHS: dict[type[DataType], int] = {
    BooleanType: 1, TinyIntType: 1, SmallIntType: 2, IntType: 4, BigIntType: 8, FloatType: 4, DoubleType: 8,
    DateType: 4, TimeType: 4, TimestampType: 8, LocalZonedTimestampType: 8, DecimalType: 8,
}  # fmt: skip
_MILLIS_DIGITS = 3
_MICROS_DIGITS = 6


@frozen
class KeyForm:
    """How an index stores the values of one type."""

    data_type: DataType
    # bytes of a stored key; 0: texts have any length
    width: int

    @classmethod
    def of(cls, data_type: DataType) -> KeyForm:
        """Return the form of a type that an index supports."""
        return cls(data_type, _WIDTHS.get(type(data_type), 0))

    @property
    def is_floating(self) -> bool:
        """Whether keys are stored as IEEE bits."""
        return isinstance(self.data_type, FloatType | DoubleType)

    @property
    def is_exact(self) -> bool:
        """Whether different values have different keys."""
        return not isinstance(self.data_type, TIMESTAMP_TYPES) or self.data_type.precision <= _MICROS_DIGITS

    @property
    def dtype(self) -> np.dtype[Any]:
        """The big-endian integers that the index stores."""
        return np.dtype(f">i{self.width}")


def to_keys(column: pa.Array, form: KeyForm) -> pa.Array:
    """Return the keys of a canonical Arrow array as int64 or binary; nulls stay null."""
    if not form.width:
        return column.cast(pa.binary())
    valid = read_validity(column) if column.null_count else None
    return from_numpy(_to_integers(column, form.data_type), valid)


def _to_integers(column: pa.Array, data_type: DataType) -> Keys:
    if isinstance(data_type, DecimalType):
        # the low half of 128 bits, little endian, is the whole number
        halves = np.frombuffer(column.buffers()[1], "<i8", 2 * (column.offset + len(column)))
        return halves[2 * column.offset :: 2].astype(np.int64)
    if len(column) == 0:
        return np.empty(0, np.int64)
    numbers = to_stored_numbers(column)
    if isinstance(data_type, FloatType):
        return to_float_ordinals(numbers.view(np.float32)).astype(np.int64)
    if isinstance(data_type, DoubleType):
        return to_float_ordinals(numbers.view(np.float64)).astype(np.int64)
    if isinstance(data_type, TIMESTAMP_TYPES):
        stored, wanted = UNIT_NANOS[column.type.unit], _key_nanos(data_type.precision)
        return numbers * (stored // wanted) if stored >= wanted else numbers // (wanted // stored)
    return numbers.astype(np.int64)


def _key_nanos(precision: int) -> int:
    return UNIT_NANOS["ms" if precision <= _MILLIS_DIGITS else "us"]


def to_key(value: Any, form: KeyForm) -> Key:
    """Return the key of an internal value that is not null."""
    data_type = form.data_type
    if isinstance(data_type, CHARACTER_TYPES):
        return str(value).encode()
    if isinstance(data_type, BYTES_TYPES):
        return bytes(value)
    if isinstance(data_type, FloatType):
        return int(to_float_ordinals(np.array([value], np.float32))[0])
    if isinstance(data_type, DoubleType):
        return to_float_ordinal(float(value))
    if isinstance(data_type, DecimalType):
        return to_unscaled(Decimal(value), data_type.scale)
    if isinstance(data_type, TIMESTAMP_TYPES):
        return int(value) // _key_nanos(data_type.precision)
    return int(value)


def encode_keys(keys: Keys, form: KeyForm) -> npt.NDArray[Any]:
    """Return keys of fixed width as the big-endian integers that an index stores."""
    return to_stored_integers(keys, form).astype(form.dtype)


def decode_keys(stored: Keys, form: KeyForm) -> Keys:
    """Return the keys of stored integers, which were widened to 64 bits."""
    if not form.is_floating:
        return stored
    floats = stored.astype(f"<i{form.width}").view(f"<f{form.width}")
    return to_float_ordinals(floats).astype(np.int64)


def to_stored_integers(keys: Keys, form: KeyForm) -> Keys:
    """Return the integers that indexes store and hash: the keys, or the IEEE bits of floats."""
    if not form.is_floating:
        return keys
    floats = from_float_ordinals(keys.astype(np.int32 if form.width == 4 else np.int64))
    return floats.view(f"<i{form.width}").astype(np.int64)


def hash_integers(keys: Keys, form: KeyForm) -> npt.NDArray[np.int32]:
    """Return Java's `hashCode` of the objects that hold keys of fixed width."""
    if isinstance(form.data_type, BooleanType):
        return np.where(keys != 0, np.int32(1231), np.int32(1237))
    bits = to_stored_integers(keys, form)
    if form.width == 8:
        bits = bits ^ (bits >> 32)
    return bits.astype(np.int32)


@frozen(eq=False)
class GroupedRows:
    """The rows of a column by key. Keys are numbered as they first appear."""

    row_count: int
    # the different keys, as int64 or binary, without null
    keys: pa.Array
    # the rows that are not null, key after key, ascending within a key
    rows: Keys
    # where the rows of each key start in `rows`, and their end
    bounds: Keys
    null_rows: Keys

    @property
    def ends_with_known_key(self) -> bool:
        """Whether a row with a known key follows the first row of the last new key."""
        return len(self.rows) > 0 and bool(self.rows.max() != self.rows[self.bounds[-2]])


@frozen(eq=False)
class NumberedRows:
    """The rows of a column with the number of their key. Keys are numbered as they first appear."""

    row_count: int
    # the different keys, as int64 or binary, without null
    keys: pa.Array
    # the rows that are not null, ascending
    rows: Keys
    # the number of the key of each of these rows
    numbers: Keys
    null_rows: Keys

    def group(self) -> GroupedRows:
        """Return the rows by key."""
        narrow = self.numbers.astype(np.min_scalar_type(len(self.keys)))  # 16 bits are sorted by digits, much faster
        order = np.argsort(narrow, kind="stable")
        bounds = np.zeros(len(self.keys) + 1, np.int64)
        np.cumsum(np.bincount(self.numbers, minlength=len(self.keys)), out=bounds[1:])
        return GroupedRows(self.row_count, self.keys, self.rows[order], bounds, self.null_rows)


class RowNumberer:
    """Takes the values of a file column by column; closed once."""

    def __init__(self, form: KeyForm) -> None:
        self._form = form
        self._chunks: list[pa.Array] = []

    def add(self, column: pa.Array) -> None:
        """Add the values of a canonical Arrow array."""
        self._chunks.append(to_keys(column, self._form).dictionary_encode())

    def close(self) -> NumberedRows:
        """Return the rows of all added values."""
        kind = pa.int64() if self._form.width else pa.binary()
        column = combine_column(pa.chunked_array(self._chunks, pa.dictionary(pa.int32(), kind)).unify_dictionaries())
        valid = read_validity(column.indices)
        numbers = to_numpy(column.indices.drop_null())
        return NumberedRows(len(column), column.dictionary, np.flatnonzero(valid), numbers, np.flatnonzero(~valid))
