"""The buckets of many rows at once.

Invariant: `compute_buckets` returns for row i what `bucket_rule.compute_bucket` returns for that row.
Source: `FixedBucketRowKeyExtractor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.bucket.bucket_rule import check_function, check_hive_type
from paimon.domain.row.binary_row_columns import Array, valid_rows
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType


def compute_buckets(
    columns: Sequence[pa.Array], types: Sequence[DataType], total_buckets: int, function: str = "default"
) -> Array:
    """Return each row's bucket by the key `columns`, for `bucket-function.type` default, mod or hive."""
    check_function(types, function)
    if function == "mod":
        return _modulo_buckets(columns[0], total_buckets)
    if function == "hive":
        return (_hive_hashes(columns, types) & np.int32(0x7FFFFFFF)) % np.int32(total_buckets)
    if total_buckets == 1:
        return np.zeros(len(columns[0]), np.int32)
    # The absolute value of the smallest number is itself, which reads right as an unsigned one.
    return (np.abs(hash_rows(columns, types)).view(np.uint32) % np.uint32(total_buckets)).view(np.int32)


def _modulo_buckets(column: pa.Array, total_buckets: int) -> Array:
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    buckets: Array = np.mod(numbers, total_buckets).astype(np.int32)
    return buckets


def _hive_hashes(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Array:
    result = np.zeros(len(columns[0]), np.int32)
    for column, data_type in zip(columns, types, strict=True):
        result = result * np.int32(31) + _hive_column(column, data_type)
    return result


def _hive_column(column: pa.Array, data_type: DataType) -> Array:
    if column.null_count == len(column):
        return np.zeros(len(column), np.int32)
    check_hive_type(data_type)
    if isinstance(data_type, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES, dt.DecimalType)):
        # Few distinct values are the rule in such keys, and their hashes are polynomials over digits and bytes.
        distinct = column.dictionary_encode()
        return _take_hashes(_hive_distinct(distinct.dictionary, data_type), distinct.indices)
    if isinstance(data_type, dt.BooleanType):
        column = column.cast(pa.int8())
    if isinstance(data_type, dt.DateType | dt.TimeType):
        column = column.cast(pa.int32())
    valid = valid_rows(column)
    numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    hashes = _hive_numbers(numbers)
    return hashes if valid is None else np.where(valid, hashes, np.int32(0))


def _hive_numbers(numbers: Array) -> Array:
    if numbers.dtype.kind == "f":
        numbers = (numbers + numbers.dtype.type(0)).view(np.int32 if numbers.dtype.itemsize == 4 else np.int64)
    if numbers.dtype.itemsize == 8:
        bits = numbers.view(np.uint64)
        return (bits ^ bits >> np.uint64(32)).astype(np.uint32).view(np.int32)
    return numbers.astype(np.int32)


def _hive_distinct(values: pa.Array, data_type: DataType) -> Array:
    if isinstance(data_type, dt.DecimalType):
        return np.array([_decimal_hash(v) for v in values.to_pylist()], np.uint32).view(np.int32)
    items = [np.frombuffer(v, np.int8).astype(np.uint32) for v in values.cast(pa.binary()).to_pylist()]
    return np.array([_polynomial(item) for item in items], np.uint32).view(np.int32)


def _polynomial(words: Array) -> int:
    """Return Σ word·31^k, the last word with k = 0, in 32 bits."""
    powers = np.full(len(words), 31, np.uint32)
    powers[:1] = 1
    return int((words * np.cumprod(powers, dtype=np.uint32)[::-1]).sum(dtype=np.uint32))


def _decimal_hash(value: Decimal) -> int:
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    fraction = fraction.rstrip("0")
    number = int(whole + fraction)
    data = number.to_bytes((number.bit_length() + 31) // 32 * 4, "big")
    magnitude = _polynomial(np.frombuffer(data, ">u4").astype(np.uint32))
    return (31 * (-magnitude if value.is_signed() else magnitude) + len(fraction)) & 0xFFFFFFFF


def _take_hashes(hashes: Array, indices: pa.Array) -> Array:
    if indices.null_count:
        hashes, indices = np.append(hashes, np.int32(0)), pc.fill_null(indices, len(hashes))
    taken: Array = hashes[indices.to_numpy(zero_copy_only=False)]
    return taken
