"""Decode blocks of Avro data files as canonical Arrow batches, by a plan of their types that is made once for a file.

Invariant: columns are found by name, at every level. Values are read as the file's own Avro type states (milliseconds
or microseconds, the scale of a decimal), then cast to the canonical type of the field. Avro maps and arrays of
(key, value) records have the same encoding, and are read alike.
Source: `FieldReaderFactory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.adapters.formats.avro.column_decoder import (
    FIXED_BYTES,
    FlatField,
    decode_flat_columns,
    flat_fields,
    is_flat_worthwhile,
)
from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.records import decode_block
from paimon.adapters.formats.guards.avro import load_checked_schema
from paimon.adapters.formats.nested import rebuild_leaves
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.columns.decimal_overflow import drop_excess_digits
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType, LocalZonedTimestampType, TimestampType

# Convert Avro types of a file to Arrow types, and decoded values to arrays of them.
#
# Invariant: one type has three forms. The Avro form is the JSON node. The *stored* Arrow type has the file's names,
# times and decimals, with maps as lists of (key, value) structs. The *number* type fits decoded Python values:
# positions as names, times as integers, decimals as bytes. Source: Avro specification, "Logical Types".


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
    """Return the stored Arrow type of an Avro type; unions and references to named types are Unsupported."""
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


_Values = Callable[[str, pa.DataType], pa.Array]
"""The values of a field, by its name while decoding, as an array of this type."""


@frozen(eq=False)
class DecodePlan:
    """How to decode the wanted columns of a file."""

    # parsed fastavro schema of an array of the file's records, for the row-wise decoder
    writer_schema: Any
    # the same with the wanted fields only; None if all are wanted
    reader_schema: Any
    fields: tuple[DataField, ...]
    # for each wanted column its name while decoding and its stored type; None if the file lacks it
    found: tuple[tuple[str, pa.DataType] | None, ...]
    # all fields of the file's records; None if they cannot be decoded as columns
    flat: tuple[FlatField, ...] | None

    def decode(self, blocks: Sequence[Block], path: str) -> Iterator[pa.RecordBatch]:
        """Decode successive blocks as batches in canonical types: one of all blocks, or one for each block."""
        values = self._flat_values(blocks)
        if values is not None:
            yield self._batch(values, sum(block.record_count for block in blocks), path)
            return
        for block in blocks:
            yield self._batch(self._row_wise_values(block, path), block.record_count, path)

    def _batch(self, values: _Values, rows: int, path: str) -> pa.RecordBatch:
        columns = [self._column(values, i, rows, path) for i in range(len(self.fields))]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.fields))

    def _flat_values(self, blocks: Sequence[Block]) -> _Values | None:
        """Decode blocks as columns; None if they must be decoded row by row."""
        if self.flat is None or not is_flat_worthwhile(blocks, self.flat):
            return None
        wanted = {name: number_type(stored) for name, stored in filter(None, self.found)}
        columns = decode_flat_columns(blocks, self.flat, wanted)
        return None if columns is None else lambda name, kind: columns[name]

    def _row_wise_values(self, block: Block, path: str) -> _Values:
        records = decode_block(block, self.writer_schema, path, self.reader_schema)
        return lambda name, kind: pa.array([record[name] for record in records], kind)

    def _column(self, values: _Values, index: int, rows: int, path: str) -> pa.Array:
        field, found = self.fields[index], self.found[index]
        if found is None:
            return pa.nulls(rows, arrow_type(field.type))
        name, stored = found
        try:
            return rebuild_leaves(as_stored(values(name, number_type(stored)), stored), field.type, _canonical)
        except (pa.ArrowException, ValueError, TypeError, IndexError, AttributeError) as error:
            raise CorruptTable(
                path, f"has a column {field.name!r} whose values do not match its type: {error}"
            ) from error


def decode_plan(schema_text: str, fields: tuple[DataField, ...], path: str) -> DecodePlan:
    """Plan how to decode the wanted columns of all blocks; Unsupported if the limits of `guards.avro` are exceeded."""
    node = load_checked_schema(schema_text, path)
    try:
        return _plan(node, fields, path)
    except (pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise CorruptTable(path, f"has no readable Avro schema: {error!r}") from error


def _plan(node: Any, fields: tuple[DataField, ...], path: str) -> DecodePlan:
    if not isinstance(node, dict) or node.get("type") != "record":
        raise CorruptTable(path, "is an Avro file whose schema is not a record")
    places = {f["name"]: i for i, f in enumerate(node["fields"])}
    types = [stored_type(f["type"]) for f in node["fields"]]
    found = tuple((position_name(places[f.name]), types[places[f.name]]) if f.name in places else None for f in fields)
    plain = decoding_schema(node, [0])
    wanted = {name for name, _ in filter(None, found)}
    kept = [f for f in plain["fields"] if f["name"] in wanted or _can_skip_endlessly(f["type"])]
    if not kept and all(_is_fixed_width(f["type"]) for f in plain["fields"]):
        kept = plain["fields"][:1]
    pruned = len(kept) < len(plain["fields"])
    reader = _of_blocks({**plain, "fields": kept}) if pruned else None
    return DecodePlan(_of_blocks(plain), reader, fields, found, flat_fields(plain))


def _can_skip_endlessly(node: Any) -> bool:
    """Return whether fastavro skips a value endlessly: a damaged count of fixed-width values is followed."""
    if isinstance(node, list):
        return any(_can_skip_endlessly(branch) for branch in node)
    if isinstance(node, str):
        return False
    if node["type"] == "array":
        return _is_fixed_width(node["items"]) or _can_skip_endlessly(node["items"])
    return any(_can_skip_endlessly(f["type"]) for f in node.get("fields", ()))


def _is_fixed_width(node: Any) -> bool:
    """Return whether all values of this type have the same number of bytes."""
    if isinstance(node, dict) and node["type"] == "record":
        return all(_is_fixed_width(f["type"]) for f in node["fields"])
    if isinstance(node, str):
        return node == "null" or node in FIXED_BYTES
    return isinstance(node, dict) and node["type"] == "fixed"


def _of_blocks(record: dict[str, Any]) -> Any:
    return fastavro.parse_schema({"type": "array", "items": record})


def _canonical(array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    if array.type.equals(target):
        return array
    if isinstance(data_type, TimestampType | LocalZonedTimestampType) and pa.types.is_timestamp(array.type):
        return fit_timestamps(array, data_type)
    return array.cast(target)
