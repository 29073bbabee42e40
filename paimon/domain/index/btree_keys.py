"""The keys of a B-tree index: how values are stored, compared, and searched.

Invariant: keys have the order of the values, as Java's predicates define it. An interval of a condition contains each
key for which the condition is true, also for engines that count -0.0 and 0.0 as equal.
Source: `KeySerializer`.
"""

# A key is stored in little endian; texts and long decimals have as many bytes as they need:
#
#     BOOLEAN, TINYINT .. BIGINT, DATE, TIME      1, 1, 2, 4, 8, 4, 4 bytes
#     FLOAT, DOUBLE                               IEEE bits, one NaN
#     DECIMAL(p, s)                               p <= 18: the unscaled number in 8 bytes
#                                                 otherwise two's complement, big endian, as short as possible
#     TIMESTAMP(p), LTZ                           p <= 3: milliseconds in 8 bytes
#                                                 otherwise also the nanoseconds of the millisecond, as a varint
#     VARCHAR                                     UTF-8
#
# Stored bytes do not sort as values do, so they are decoded to keys that Python and numpy can compare: integers (of
# floats, the ordinal in Java's total order; of timestamps, the number that Arrow stores), and bytes for texts. Both are
# discrete, so each comparison is an interval that contains its start and not its end:
#
#     a = 5       [5, 6)              t = 'x'          ['x', 'x\0')
#     a <= 5      [-, 6)              t LIKE 'x%'      ['x', 'y')

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from struct import calcsize
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.buffers import to_stored_numbers
from paimon.domain.columns.java_float_order import from_float_ordinals, to_float_ordinals
from paimon.domain.index.btree_blocks import Bytes, Lengths, encode_varints, join_parts, read_varint
from paimon.domain.predicate.expression import Operator
from paimon.domain.row.binary_row import (
    COMPACT_DECIMAL_PRECISION,
    COMPACT_TIMESTAMP_PRECISION,
    NANOS_PER_MILLI,
    PRIMITIVE_CODES,
)
from paimon.domain.types.arrow import UNIT_NANOS, timestamp_unit
from paimon.domain.types.data_types import TIMESTAMP_TYPES, DataType, DecimalType, DoubleType, FloatType, VarCharType

Key: TypeAlias = int | bytes
Interval: TypeAlias = tuple[Key | None, Key | None]
"""From the first key to the one before the second; None is open."""
_WIDTHS = {kind: calcsize(f"<{code}") for kind, code in PRIMITIVE_CODES.items()}
_DIGITS = Context(prec=100)


def supports_btree(data_type: DataType) -> bool:
    """Return whether a column of this type can have a B-tree index; CHAR cannot, because files pad it, or do not."""
    return type(data_type) in _WIDTHS or isinstance(data_type, (DecimalType, VarCharType, *TIMESTAMP_TYPES))


@frozen
class BtreeKeys:
    """The keys of one type."""

    data_type: DataType

    @property
    def is_text(self) -> bool:
        """Whether keys are bytes, and not integers."""
        return isinstance(self.data_type, VarCharType)

    @property
    def width(self) -> int | None:
        """The number of stored bytes; None if it differs between keys."""
        if isinstance(self.data_type, DecimalType):
            return 8 if self.data_type.precision <= COMPACT_DECIMAL_PRECISION else None
        if isinstance(self.data_type, TIMESTAMP_TYPES):
            return 8 if self.data_type.precision <= COMPACT_TIMESTAMP_PRECISION else None
        return _WIDTHS.get(type(self.data_type))

    @property
    def _unit_nanos(self) -> int:
        """Of a timestamp, the nanoseconds of the unit of its keys."""
        assert isinstance(self.data_type, TIMESTAMP_TYPES)
        return NANOS_PER_MILLI if self.width else UNIT_NANOS[timestamp_unit(self.data_type.precision)]

    def decode(self, data: bytes) -> Key:
        """Return the key of stored bytes; raise ValueError if they are no key."""
        if self.is_text:
            return data
        if self.width is not None and len(data) != self.width:
            raise ValueError(f"a key has {len(data)} bytes instead of {self.width}")
        if isinstance(self.data_type, FloatType | DoubleType):
            return int(to_float_ordinals(np.frombuffer(data, f"<f{self.width}"))[0])
        if self.width is not None:
            return int.from_bytes(data, "little", signed=True)
        if isinstance(self.data_type, DecimalType):
            return int.from_bytes(data, "big", signed=True)
        if len(data) < 9:
            raise ValueError(f"a key has {len(data)} bytes instead of at least 9")
        millis, nanos = int.from_bytes(data[:8], "little", signed=True), read_varint(data, 8)[0]
        return millis * (NANOS_PER_MILLI // self._unit_nanos) + nanos // self._unit_nanos

    def find_interval(self, operator: Operator, literal: Any) -> Interval | None:
        """Return the keys for which a comparison with an internal value can be true; None for all."""
        low, high = self._to_keys(literal)
        match operator:
            case Operator.EQ:
                return low, _next_key(high)
            case Operator.LT:
                return None, high if self._is_exact else _next_key(high)
            case Operator.LE:
                return None, _next_key(high)
            case Operator.GT:
                return (_next_key(low) if self._is_exact else low), None
            case Operator.GE:
                return low, None
        return None

    @property
    def _is_exact(self) -> bool:
        """Whether a key stands for one value; engines disagree about zeros, and timestamps lose digits."""
        return not isinstance(self.data_type, (FloatType, DoubleType, *TIMESTAMP_TYPES))

    def _to_keys(self, literal: Any) -> tuple[Key, Key]:
        """Return the smallest and the largest key that can equal an internal value."""
        key: Key
        if self.is_text:
            key = str(literal).encode()
        elif isinstance(self.data_type, FloatType | DoubleType):
            values = np.array([-0.0, 0.0] if literal == 0 else [literal, literal], f"<f{self.width}")
            low, high = to_float_ordinals(values).tolist()
            return low, high
        elif isinstance(self.data_type, DecimalType):
            unscaled = Decimal(literal).scaleb(self.data_type.scale, _DIGITS)
            key = int(unscaled.to_integral_value(ROUND_FLOOR, _DIGITS))
        elif isinstance(self.data_type, TIMESTAMP_TYPES):
            key = int(literal) // self._unit_nanos
        else:
            key = int(literal)
        return key, key

    def to_sortable(self, column: pa.Array) -> pa.Array:
        """Return the keys of a canonical Arrow array without nulls, as int64, binary or decimals, which sort alike."""
        if self.is_text:
            return column.cast(pa.large_binary())
        if isinstance(self.data_type, DecimalType):
            return column
        numbers = to_stored_numbers(column) if len(column) else np.empty(0, np.int64)
        if isinstance(self.data_type, FloatType | DoubleType):
            numbers = to_float_ordinals(numbers.view(f"<f{self.width}"))
        elif isinstance(self.data_type, TIMESTAMP_TYPES) and self.width is not None:
            scale = UNIT_NANOS[column.type.unit] // NANOS_PER_MILLI
            numbers = numbers * scale
        return pa.array(numbers.astype(np.int64))

    def encode(self, keys: pa.Array) -> tuple[Bytes, Lengths]:
        """Return the stored bytes of sortable keys, one after the other, and the length of each."""
        if self.is_text:
            return _read_binary(keys)
        if isinstance(self.data_type, DecimalType):
            return _encode_decimals(keys, self.width)
        numbers = np.asarray(to_stored_numbers(keys))
        if isinstance(self.data_type, FloatType | DoubleType):
            floats = from_float_ordinals(numbers.astype(np.int32 if self.width == 4 else np.int64))
            return _fixed(floats)
        if self.width is not None:
            return _fixed(numbers.astype(f"<i{self.width}"))
        per_milli = NANOS_PER_MILLI // self._unit_nanos
        millis = _fixed(np.floor_divide(numbers, per_milli).astype("<i8"))
        return join_parts([millis, encode_varints(np.mod(numbers, per_milli) * self._unit_nanos)])


def find_prefix_interval(prefix: bytes) -> Interval:
    """Return the texts that start with a prefix; UTF-8 has no byte 0xff."""
    return (prefix, prefix[:-1] + bytes([prefix[-1] + 1])) if prefix else (None, None)


def _next_key(key: Key) -> Key:
    return key + b"\0" if isinstance(key, bytes) else key + 1


def _fixed(numbers: npt.NDArray[Any]) -> tuple[Bytes, Lengths]:
    return numbers.view(np.uint8).reshape(-1), np.full(len(numbers), numbers.dtype.itemsize, np.int64)


def _read_binary(keys: pa.Array) -> tuple[Bytes, Lengths]:
    offsets = np.frombuffer(keys.buffers()[1], np.int64, len(keys) + 1, keys.offset * 8)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, np.diff(offsets)


def _encode_decimals(keys: pa.Array, width: int | None) -> tuple[Bytes, Lengths]:
    """Encode decimals of 128 bits; without a width, leading bytes that repeat the sign are left out."""
    stored = np.frombuffer(keys.buffers()[1], np.uint8, 16 * len(keys), 16 * keys.offset).reshape(-1, 16)
    if width is not None:
        return _fixed(np.ascontiguousarray(stored[:, :width]).view(f"<i{width}").reshape(-1))
    big = stored[:, ::-1]
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    # a byte is not needed if it and the first bit of the next byte are the sign
    is_sign = (big[:, :-1] == sign) & ((big[:, 1:] & 0x80) == (sign & 0x80))
    left_out = np.cumprod(is_sign, axis=1).sum(axis=1)
    kept = np.arange(16) >= left_out[:, None]
    return big[kept], (16 - left_out).astype(np.int64)
