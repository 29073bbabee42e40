"""Convert Avro types of a file to Arrow types, and decoded values to arrays of them.

Invariant: one type has three forms. The Avro form is the JSON node. The *stored* Arrow type has the file's names, times
and decimals, with maps as lists of (key, value) structs. The *number* type fits decoded Python values: positions as
names, times as integers, decimals as bytes. Source: Avro specification, "Logical Types".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.decimal_overflow import drop_excess_digits
from paimon.domain.errors import Unsupported

_PRIMITIVES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "null": pa.null(),
}
_MILLIS_PER_DAY = 86_400_000
_LOGICAL = {
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
}


def position_name(index: int) -> str:
    """Return the name of a record's field while it is decoded; the name in the file may be any text."""
    return f"c{index}"


def stored_type(node: Any) -> pa.DataType:
    """Return the stored Arrow type of an Avro type.

    Unions of several types and references to named types are Unsupported.
    """
    if isinstance(node, list):
        branches = [branch for branch in node if branch != "null"]
        if len(branches) > 1:
            raise Unsupported("an Avro union of several types", hint="write the file without unions, except with null")
        return stored_type(branches[0]) if branches else pa.null()
    if isinstance(node, str):
        if node not in _PRIMITIVES:
            raise Unsupported(
                f"a reference to the Avro type {node!r}", hint="write the file with each type in its place"
            )
        return _PRIMITIVES[node]
    logical = str(node.get("logicalType", ""))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if logical == "decimal":
        return pa.decimal128(int(node["precision"]), int(node.get("scale", 0)))
    return _stored_complex_type(node)


def _stored_complex_type(node: Any) -> pa.DataType:
    match node["type"]:
        case "record":
            return pa.struct([(f["name"], stored_type(f["type"])) for f in node["fields"]])
        case "array":
            return pa.list_(stored_type(node["items"]))
        case "map":
            return pa.list_(pa.struct([("key", pa.string()), ("value", stored_type(node["values"]))]))
        case "fixed":
            return pa.binary()
        case "enum":
            return pa.string()
    return stored_type(node["type"])


def decoding_schema(node: Any, counter: list[int]) -> Any:
    """Return a schema for fastavro that decodes the same bytes.

    Fields are named by position, logical types are dropped, and maps are arrays of records. `counter` holds one number,
    the number of records that were named so far.
    """
    if isinstance(node, list):
        return [decoding_schema(branch, counter) for branch in node]
    if isinstance(node, str):
        return node
    match node["type"]:
        case "record":
            return _rename_record([f["type"] for f in node["fields"]], counter)
        case "array":
            return {"type": "array", "items": decoding_schema(node["items"], counter)}
        case "map":
            return {"type": "array", "items": _rename_record(["string", node["values"]], counter)}
        case "fixed" | "enum":
            counter[0] += 1
            return {**node, "name": f"r{counter[0]}"}
    return decoding_schema(node["type"], counter)


def _rename_record(types: list[Any], counter: list[int]) -> dict[str, Any]:
    counter[0] += 1
    name = f"r{counter[0]}"
    fields = [{"name": position_name(i), "type": decoding_schema(t, counter)} for i, t in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def number_type(stored: pa.DataType) -> pa.DataType:
    """Return the type that decoded Python values of a stored type fit."""
    if pa.types.is_timestamp(stored):
        return pa.int64()
    if pa.types.is_date(stored) or pa.types.is_time(stored):
        return pa.int32()
    if pa.types.is_decimal(stored):
        return pa.binary()
    if pa.types.is_struct(stored):
        return pa.struct([(position_name(i), number_type(f.type)) for i, f in enumerate(stored)])
    if pa.types.is_list(stored):
        return pa.list_(number_type(stored.value_type))
    return stored


def as_stored(array: pa.Array, stored: pa.DataType) -> pa.Array:
    """Convert an array of `number_type(stored)` to the type `stored`."""
    if pa.types.is_decimal(stored):
        return _to_decimals(array, stored)
    if pa.types.is_struct(stored):
        parts = [as_stored(part, f.type) for part, f in zip(array.flatten(), stored, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(stored), mask=array.is_null())
    if pa.types.is_list(stored):
        values = as_stored(array.values, stored.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, stored, mask=array.is_null())
    if pa.types.is_time(stored):
        _check_times(array)
    return array.cast(stored)


def _check_times(array: pa.Array) -> None:
    """Raise a ValueError if a time of day is negative, or a day or more."""
    bounds = pc.min_max(array).as_py()
    if bounds["min"] is not None and (bounds["min"] < 0 or bounds["max"] >= _MILLIS_PER_DAY):
        raise ValueError("a time of day is not within a day")


def _to_decimals(array: pa.Array, stored: pa.DataType) -> pa.Array:
    """Convert big-endian two's complement numbers of at most 16 bytes to decimals; too many digits are null."""
    rows = len(array)
    if not rows:
        return pa.array([], stored)
    offsets = np.frombuffer(array.buffers()[1], np.int32, rows + 1, array.offset * 4)
    sizes = np.diff(offsets)
    if sizes.max() > 16:
        raise ValueError("a decimal has more than 16 bytes")
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    cells = np.zeros((rows, 16), np.uint8)
    filled = np.flatnonzero(sizes > 0)
    cells[filled[data[offsets[filled]] > 0x7F]] = 0xFF
    for place in range(int(sizes.max())):
        here = np.flatnonzero(sizes > place)
        cells[here, place] = data[offsets[here + 1] - 1 - place]
    validity = pa.array(array.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    made = pa.Array.from_buffers(stored, rows, [validity, pa.py_buffer(cells)])
    return drop_excess_digits(made)
