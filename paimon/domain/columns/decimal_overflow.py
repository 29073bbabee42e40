"""Decimals with more digits than their type has, as files store them: sums of up to 18 digits can have more.

Java stores the lowest 32 bits of up to 9 digits in Parquet, null (or 0 in a NOT NULL column) in ORC, and all digits in
Avro, where they are read as null.

Source: `DecimalUtils.add`, `ParquetRowDataWriter.DecimalWriter`, `FieldWriterFactory`, `Decimal.fromUnscaledBytes`.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.buffers import from_stored_numbers, read_validity

_MOST_DIGITS = 38
_INT_DIGITS = 9
_LONG_DIGITS = 18


def drop_excess_digits(column: pa.Array) -> pa.Array:
    """Return a decimal column with null for the values that have more digits than its type."""
    kind = column.type
    largest = Decimal(10**kind.precision - 1).scaleb(-kind.scale, Context(prec=_MOST_DIGITS))
    wide = column.view(pa.decimal128(_MOST_DIGITS, kind.scale))
    low, high = (pa.scalar(bound, wide.type) for bound in (largest.copy_negate(), largest))
    fits = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
    return column if not fits.false_count else pc.if_else(fits, column, pa.scalar(None, kind))


def widen_decimals(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return a schema in which these decimal columns have as many digits as 64 bits hold."""
    for index, field in enumerate(schema):
        if field.name in names:
            schema = schema.set(index, field.with_type(_widen(field.type)))
    return schema


def widen_if_needed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a decimal column as it is, or in the wider type if a value has too many digits."""
    if column.type.precision > _LONG_DIGITS or all(drop_excess_digits(chunk) is chunk for chunk in column.chunks):
        return column
    wide = _widen(column.type)
    return pa.chunked_array([chunk.view(wide) for chunk in column.chunks], wide)


def _widen(kind: pa.DataType) -> pa.DataType:
    return pa.decimal128(_LONG_DIGITS, kind.scale)


def wrap_to_32_bits(column: pa.Array) -> pa.Array:
    """Return a decimal column of up to 9 digits with the lowest 32 bits of each unscaled value."""
    kind = column.type
    if kind.precision > _INT_DIGITS or not len(column):
        return column
    words = np.frombuffer(column.buffers()[1], "<i8", 2 * len(column), 16 * column.offset)[0::2]
    wrapped = words.astype(np.int32).astype(np.int64)
    if (wrapped == words).all():
        return column
    pairs = np.column_stack([wrapped, wrapped >> 63])
    return from_stored_numbers(pairs, kind, read_validity(column))
