"""The Avro schema of data files, and Arrow columns encoded as its records, without a step in Python for each row.

Invariant: row i of the result is Avro's binary encoding of row i under `avro_schema`. Encoded cells are joined to rows.
Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.adapters.formats.nested import drop_offset, map_entries
from paimon.domain.columns.decimal_overflow import drop_excess_digits
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import make_array
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type

# Avro schemas of data files, with Java's names and types.
#
# Invariant: a nested record is named after its path (`record_a_b`). Nullable is a union with null first. TIMESTAMP is
# `timestamp-*` and TIMESTAMP WITH LOCAL TIME ZONE is `local-timestamp-*`, the reverse of Avro's own meaning.
# Source: `AvroSchemaConverter`.


NAMESPACE = "org.apache.paimon.avro.generated"
_PLAIN: Mapping[type[DataType], Any] = {
    dt.BooleanType: "boolean",
    dt.TinyIntType: "int",
    dt.SmallIntType: "int",
    dt.IntType: "int",
    dt.BigIntType: "long",
    dt.FloatType: "float",
    dt.DoubleType: "double",
    dt.CharType: "string",
    dt.VarCharType: "string",
    dt.BinaryType: "bytes",
    dt.VarBinaryType: "bytes",
    dt.BlobType: "bytes",
    dt.DateType: {"type": "int", "logicalType": "date"},
}


def avro_schema(fields: Iterable[DataField]) -> dict[str, Any]:
    """Return the schema of a data file with these columns."""
    record = _record("record", fields)
    return {"type": "record", "name": "record", "namespace": NAMESPACE, "fields": record["fields"]}


def has_string_key(data_type: DataType) -> bool:
    """Return whether a MAP or MULTISET is an Avro map; others are arrays of (key, value) records."""
    key = data_type.key if isinstance(data_type, dt.MapType) else getattr(data_type, "element", None)
    return isinstance(key, dt.CHARACTER_TYPES)


def _record(name: str, fields: Iterable[DataField]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_avro_field(f.name, f.type, f"{name}_{f.name}") for f in fields]}


def _avro_field(name: str, data_type: DataType, path: str) -> dict[str, Any]:
    if not (name.isidentifier() or name.replace("$", "_").isidentifier()):
        raise InvalidRequest(
            f"Column {name!r} has a name that Avro does not allow", subject=name, hint="use letters, digits and _"
        )
    node = _nullable(data_type, path)
    return {"name": name, "type": node, "default": None} if data_type.nullable else {"name": name, "type": node}


def _nullable(data_type: DataType, path: str) -> Any:
    node = _node(data_type, path)
    return ["null", node] if data_type.nullable else node


def _node(data_type: DataType, path: str) -> Any:
    match data_type:
        case dt.DecimalType(precision=precision, scale=scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case dt.TimeType(precision=precision) if precision <= 3:
            return {"type": "int", "logicalType": "time-millis"}
        case dt.TimestampType(precision=precision) if precision <= 6:
            return {"type": "long", "logicalType": "timestamp-millis" if precision <= 3 else "timestamp-micros"}
        case dt.LocalZonedTimestampType(precision=precision) if precision <= 6:
            return {"type": "long", "logicalType": f"local-timestamp-{'millis' if precision <= 3 else 'micros'}"}
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return {"type": "array", "items": _nullable(element, path)}
        case dt.RowType(fields=fields):
            return _record(path, fields)
        case dt.MapType(key=key, value=value):
            return _map(data_type, key, value, path)
        case dt.MultisetType(element=element) if has_string_key(data_type):
            return _map(data_type, element, dt.IntType(), path)
    if type(data_type) not in _PLAIN:
        hint = "choose file.format=parquet, or another type; postponed buckets (bucket=-2) always have Avro files"
        raise Unsupported(f"{format_type(data_type)} in Avro files", hint=hint)
    return _PLAIN[type(data_type)]


def _map(data_type: DataType, key: DataType, value: DataType, path: str) -> dict[str, Any]:
    if has_string_key(data_type):
        return {"type": "map", "values": _nullable(value, path)}
    fields = [
        {"name": "key", "type": _nullable(key, f"{path}_key")},
        _avro_field("value", value, f"{path}_value"),
    ]
    return {"type": "array", "items": {"type": "record", "name": path, "fields": fields}, "logicalType": "map"}


_EMPTY, _END, _PRESENT = make_array([b"", b"\x00", b"\x02"], pa.binary())
_NULL = _END  # branch 0 of a union; the end of blocks is the same byte
_FIXED_BYTES = {dt.FloatType: 4, dt.DoubleType: 8}
_LONG_BYTES = 8


def encode_records(columns: list[pa.Array], fields: tuple[DataField, ...], rows: int) -> pa.BinaryArray:
    """Encode rows of canonical types as Avro records; null for a row with a null in a NOT NULL column."""
    if not fields:
        return _to_binary(np.zeros((rows, 0), np.uint8))
    return _join(*itertools.chain(*(_encode_parts(c, f.type) for c, f in zip(columns, fields, strict=True))))


def encode_column(array: pa.Array, data_type: DataType) -> pa.BinaryArray:
    """Encode one cell per row, after the branch of the union if the type is nullable."""
    parts = _encode_parts(array, data_type)
    return parts[0] if len(parts) == 1 else _join(*parts)


def _encode_parts(array: pa.Array, data_type: DataType) -> list[pa.BinaryArray | pa.Scalar]:
    """Encode the cells of a column as parts to join; more parts in one join take less time than joins of joins."""
    if data_type.nullable and array.null_count:
        return [_join(_PRESENT, *_encode(array, data_type)).fill_null(_NULL)]
    return [_PRESENT] * data_type.nullable + _encode(array, data_type)


def decimal_width(precision: int) -> int:
    """Return the bytes that hold every unscaled value of this precision."""
    return (int(10**precision).bit_length() + 8) // 8


def _encode(array: pa.Array, data_type: DataType) -> list[pa.BinaryArray]:
    match data_type:
        case dt.RowType(fields=fields):
            return [_encode_rows(array, fields)]
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            values = array.flatten() if isinstance(data_type, dt.VectorType) else drop_offset(array).values
            return [_encode_lists(array, encode_column(values, element))]
        case dt.MapType(key=key, value=value):
            return [_encode_maps(drop_offset(array), data_type, key, value)]
        case dt.MultisetType(element=element):
            return [_encode_maps(drop_offset(array), data_type, element, dt.IntType())]
        case dt.CharType() | dt.VarCharType() | dt.BinaryType() | dt.VarBinaryType() | dt.BlobType():
            return [_encode_longs(pc.binary_length(array)), array.cast(pa.binary())]
    return [_mask_nulls(_encode_fixed_width(array, data_type), array)]


def _encode_fixed_width(array: pa.Array, data_type: DataType) -> pa.BinaryArray:
    if isinstance(data_type, dt.BooleanType):
        return _to_binary(array.fill_null(False).cast(pa.uint8()).to_numpy()[:, None])
    if isinstance(data_type, dt.DecimalType):
        return _encode_decimals(array, data_type.precision)
    width = _FIXED_BYTES.get(type(data_type))
    if width is not None:
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        return _to_binary(values.astype(f"<f{width}").view(np.uint8).reshape(-1, width))
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        array = array.cast(pa.timestamp("ms" if data_type.precision <= 3 else "us", array.type.tz)).cast(pa.int64())
    elif isinstance(data_type, dt.DateType | dt.TimeType):
        array = array.cast(pa.int32())
    return _encode_longs(array.fill_null(0))


def _encode_rows(array: pa.Array, fields: tuple[DataField, ...]) -> pa.BinaryArray:
    parts = [encode_column(part, f.type) for part, f in zip(array.flatten(), fields, strict=True)]
    return _mask_nulls(_join(*parts) if parts else _to_binary(np.zeros((len(array), 0), np.uint8)), array)


def _encode_lists(array: pa.Array, items: pa.BinaryArray) -> pa.BinaryArray:
    """Encode each list as one block of all items and an end mark, or as the end mark only if it is empty."""
    if pa.types.is_fixed_size_list(array.type):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
        bounds = np.concatenate(([0], np.cumsum(lengths)))
    else:
        array = drop_offset(array)
        bounds = array.offsets.to_numpy()
    counts = np.diff(bounds)
    # The items of a list are neighbors in the buffer, so their bytes are one slice of it.
    starts = np.zeros(len(bounds), np.int32)
    if len(items):
        starts = np.frombuffer(items.buffers()[1], np.int32, len(items) + 1, items.offset * 4)[bounds]
    joined = pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(starts), items.buffers()[2]])
    heads = pc.if_else(pa.array(counts > 0), _encode_longs(pa.array(counts)), _EMPTY)
    return _mask_nulls(_join(heads, joined, _END), array)


def _encode_maps(array: pa.Array, data_type: DataType, key: DataType, value: DataType) -> pa.BinaryArray:
    keys, items = map_entries(array)
    key = key.with_nullable(False) if has_string_key(data_type) else key
    return _encode_lists(array, _join(encode_column(keys, key), encode_column(items, value)))


def _encode_decimals(array: pa.Array, precision: int) -> pa.BinaryArray:
    stored = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    stored = stored[array.offset * 16 : (array.offset + len(array)) * 16].reshape(-1, 16)
    width = decimal_width(precision)
    # A sum can have more digits than its type (see `decimal_overflow`). Java stores all of them.
    if width < _LONG_BYTES and drop_excess_digits(array) is not array:
        width = _LONG_BYTES
    cells = np.empty((len(array), width + 1), np.uint8)
    cells[:, 0] = width * 2
    cells[:, 1:] = stored[:, :width][:, ::-1]
    return _to_binary(cells)


def _encode_longs(array: pa.Array) -> pa.BinaryArray:
    """Encode numbers: zigzag, then 7 bits per byte, low bits first; nulls become zero."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(values), np.int32)
    for power in range(7, 64, 7):
        longer = rest >= np.uint64(1 << power)
        if not longer.any():
            break
        sizes += longer
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    for place in range(int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes > place)
        more = (sizes[here] > place + 1).astype(np.uint8) << 7
        data[offsets[here] + place] = ((rest[here] >> np.uint64(7 * place)) & np.uint64(0x7F)).astype(np.uint8) | more
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _to_binary(values: npt.NDArray[np.uint8]) -> pa.BinaryArray:
    rows, width = values.shape
    offsets = (np.arange(rows + 1, dtype=np.int64) * width).astype(np.int32)
    data = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _mask_nulls(cells: pa.BinaryArray, array: pa.Array) -> pa.BinaryArray:
    if not array.null_count:
        return cells
    return pc.if_else(array.is_valid(), cells, pa.scalar(None, pa.binary()))


def _join(*parts: pa.BinaryArray | pa.Scalar) -> pa.BinaryArray:
    return pc.binary_join_element_wise(*parts, _EMPTY)
