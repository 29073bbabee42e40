"""Arrays without encodings: the same values in the types that all functions of Arrow take.

Arrow has several forms of the same values, and many of its functions take only the oldest one:

    dictionary<string_view>    indices 1 0 1, dictionary "a" "b"       ->  string      "b" "a" "b"
    run_end_encoded<int32>     run ends 2 5, values 7 8                ->  int32       7 7 8 8 8
    string_view, binary_view                                           ->  string, binary
    list_view, large_list_view                                         ->  list, large_list
    halffloat                                                          ->  float
    decimal32, decimal64                                               ->  decimal128
    extension types                                                    ->  their storage; bool8 is bool

This holds at every depth: also for the values of a dictionary, and for what is in a list, a map or a struct. Frames
with such types come from Polars (Enum and Categorical are dictionaries of views), from pandas, and from files.

Invariant: values and nulls do not change. A column of a plain type is returned as it is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow import check_nesting

_ROWS_AT_ONCE = 1 << 20
"""Rows of an encoded column that become one chunk, because a chunk of texts has 2 GB at most."""


@lru_cache(maxsize=4096)
def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the plain type of an Arrow type."""
    types = pa.types
    if isinstance(arrow, pa.Bool8Type):
        return pa.bool_()
    if isinstance(arrow, pa.BaseExtensionType):
        if arrow.extension_name == "pandas.period":  # its storage counts periods of a length that only the type has
            hint = "convert them with .dt.to_timestamp(), or to text"
            raise InvalidRequest("Periods of pandas are no type of the format", subject="pandas.period", hint=hint)
        return plain_type(arrow.storage_type)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return plain_type(arrow.value_type)
    if types.is_string_view(arrow):
        return pa.string()
    if types.is_binary_view(arrow):
        return pa.binary()
    if types.is_float16(arrow):
        return pa.float32()
    if types.is_decimal32(arrow) or types.is_decimal64(arrow):
        return pa.decimal128(arrow.precision, arrow.scale)
    return _plain_nested_type(arrow)


def _plain_nested_type(arrow: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_map(arrow):
        key, item = _plain_field(arrow.key_field), _plain_field(arrow.item_field)
        return pa.map_(key, item, keys_sorted=arrow.keys_sorted)
    if types.is_struct(arrow):
        return pa.struct([_plain_field(field) for field in arrow])
    if types.is_fixed_size_list(arrow):
        return pa.list_(_plain_field(arrow.value_field), arrow.list_size)
    if types.is_list(arrow) or types.is_list_view(arrow):
        return pa.list_(_plain_field(arrow.value_field))
    if types.is_large_list(arrow) or types.is_large_list_view(arrow):
        return pa.large_list(_plain_field(arrow.value_field))
    return arrow


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def to_plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose columns have plain types."""
    for position, field in enumerate(schema):
        check_nesting(field)
        if plain_type(field.type) != field.type:
            schema = schema.set(position, _plain_field(field))
    return schema


def to_plain_table(table: pa.Table) -> pa.Table:
    """Return a table whose columns have plain types."""
    for position, field in enumerate(to_plain_schema(table.schema)):
        if field.type != table.schema.field(position).type:
            table = table.set_column(position, field, _decode_column(table.column(position)))
    return table


def _decode_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    starts = ((chunk, start) for chunk in column.chunks for start in range(0, len(chunk), _ROWS_AT_ONCE))
    parts = [decode_array(chunk.slice(start, _ROWS_AT_ONCE)) for chunk, start in starts]
    return pa.chunked_array(parts, plain_type(column.type))


def decode_array(array: pa.Array) -> pa.Array:
    """Return the values of an array in its plain type."""
    types, wanted = pa.types, plain_type(array.type)
    if array.type == wanted:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        storage = decode_array(array.storage)
        return storage if storage.type == wanted else storage.cast(wanted)
    if types.is_dictionary(array.type):
        return decode_array(array.dictionary).take(array.indices)
    if types.is_run_end_encoded(array.type):
        return _decode_runs(array)
    if types.is_nested(array.type):
        return _decode_nested(array, wanted)
    return array.cast(wanted)


def _decode_runs(array: pa.Array) -> pa.Array:
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(np.asarray(array.run_ends), rows, side="right")
    return decode_array(array.values).take(pa.array(runs))


def _decode_nested(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    types, mask = pa.types, array.is_null()
    if types.is_struct(array.type):
        children = [decode_array(array.field(i)) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        values = decode_array(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=mask)
    if types.is_list_view(array.type) or types.is_large_list_view(array.type):
        return _decode_list_view(array, wanted)
    offsets = np.asarray(array.offsets)
    start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    moved = pa.array(offsets - start)
    if types.is_map(array.type):
        parts = (decode_array(part.slice(start, length)) for part in (array.keys, array.items))
        return pa.MapArray.from_arrays(moved, *parts, type=wanted, mask=mask)
    kind = pa.LargeListArray if types.is_large_list(array.type) else pa.ListArray
    return kind.from_arrays(moved, decode_array(array.values.slice(start, length)), type=wanted, mask=mask)


def _decode_list_view(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return lists whose elements follow each other; those of views may overlap, and have any order."""
    mask = array.is_null()
    sizes = np.where(np.asarray(mask), 0, np.asarray(array.sizes)).astype(np.int64)
    ends = np.cumsum(sizes)
    offsets = np.concatenate(([0], ends))
    places = np.arange(offsets[-1]) + np.repeat(np.asarray(array.offsets) - offsets[:-1], sizes)
    elements = decode_array(array.values).take(pa.array(places))
    is_large = pa.types.is_large_list(wanted)
    kind, numbers = (pa.LargeListArray, pa.int64()) if is_large else (pa.ListArray, pa.int32())
    return kind.from_arrays(pa.array(offsets, numbers), elements, type=wanted, mask=mask)
