"""Records in Parquet or ORC files: what `manifest.format` allows beside Avro.

Law: the same dicts as from Avro: times as their numbers, maps never occur. Source: Paimon's `manifest.format` option.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from paimon.adapters.formats.orc.checks import check_stripe, check_types
from paimon.adapters.formats.orc.tail import read_tail
from paimon.adapters.formats.parquet.reading.row_groups import GroupRange
from paimon.adapters.formats.parquet.reading.stored import Stored
from paimon.adapters.formats.parquet.reading.weights import Leaf, fitting_rows
from paimon.domain.errors import CorruptTable, Unsupported

_TINY = frozenset(("_KIND", "_FILE_SOURCE"))
_MIN_RECORD_BYTES = 4
_BATCH_ROWS = 65_536
_PRIMITIVES: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
}


def read_arrow_records(data: bytes, path: str, limit: int) -> list[dict[str, Any]]:
    """All records of a Parquet or ORC file, which may not decode to more than about `limit` bytes."""
    try:
        table = _parquet(data, limit) if data[:4] == b"PAR1" else _orc(data, limit)
    except Unsupported as error:
        raise error.within(path) from None
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError, OverflowError, zlib.error) as error:
        raise CorruptTable(path, f"is a damaged or oversized manifest: {error}") from error
    millis = table.cast(_mapped(table.schema, pa.timestamp("ms")))
    return list(millis.cast(_mapped(table.schema, pa.int64())).to_pylist())


def write_arrow_records(
    records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
) -> bytes:
    """A Parquet or ORC file of these records, typed after the Avro schema."""
    fields = [_field(f) for f in schema["fields"]]
    table = pa.Table.from_pylist([dict(r) for r in records], schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    codec = "none" if compression == "null" else compression
    if format_name == "parquet":
        pq.write_table(table, sink, compression=codec, store_schema=False)
    else:
        orc.write_table(table, sink, compression="uncompressed" if codec == "none" else codec)
    return bytes(sink.getvalue().to_pybytes())


def _parquet(data: bytes, limit: int) -> pa.Table:
    """All rows. Neither pages nor batches take more than the limit, whatever the footer tells of sizes."""
    source = pa.BufferReader(data)
    file = pq.ParquetFile(source)
    footer = file.metadata
    size = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    if max(size, footer.num_rows * _MIN_RECORD_BYTES) > limit:
        raise ValueError(f"it decodes to more than {limit} bytes")
    leaves = [Leaf.of(file.schema, index) for index in range(len(file.schema))]
    piece = GroupRange(tuple(range(footer.num_row_groups)), 0, footer.num_rows)
    rows = fitting_rows(footer, Stored(source), piece, leaves, _BATCH_ROWS, limit)
    batches, decoded = [], 0
    for batch in file.iter_batches(rows):
        decoded += batch.nbytes
        if decoded > limit:
            raise ValueError(f"it decodes to more than {limit} bytes")
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=file.schema_arrow)


def _orc(data: bytes, limit: int) -> pa.Table:
    """All rows, where all that the stripes claim to hold is within the limit."""
    source = pa.BufferReader(data)
    tail = read_tail(source)
    check_types(tail)
    kinds = dict(enumerate(tail.kinds))
    weights = (check_stripe(source, n, told, tail.compression, 1, kinds) for n, told in enumerate(tail.stripes))
    if max(sum(w.decoded_bytes for w in weights), tail.rows * _MIN_RECORD_BYTES) > limit:
        raise ValueError(f"it decodes to more than {limit} bytes")
    return orc.ORCFile(source).read()


def _mapped(schema: pa.Schema, timestamp: pa.DataType) -> pa.Schema:
    """The schema with all timestamps as `timestamp`; a cast from milliseconds to int64 keeps the number."""
    return pa.schema([_with_timestamp(f, timestamp) for f in schema])


def _with_timestamp(field: pa.Field, timestamp: pa.DataType) -> pa.Field:
    kind = field.type
    if pa.types.is_timestamp(kind):
        kind = timestamp
    elif pa.types.is_struct(kind):
        kind = pa.struct([_with_timestamp(f, timestamp) for f in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_timestamp(kind.value_field, timestamp))
    return pa.field(field.name, kind, field.nullable)


def _field(field: Mapping[str, Any]) -> pa.Field:
    kind, nullable = _arrow(field["type"])
    return pa.field(field["name"], pa.int8() if field["name"] in _TINY else kind, nullable)


def _arrow(node: Any) -> tuple[pa.DataType, bool]:
    if isinstance(node, list):
        return _arrow(next(branch for branch in node if branch != "null"))[0], True
    if isinstance(node, str):
        return _PRIMITIVES[node], False
    if node["type"] == "record":
        return pa.struct([_field(f) for f in node["fields"]]), False
    if node["type"] == "array":
        kind, nullable = _arrow(node["items"])
        return pa.list_(pa.field("element", kind, nullable)), False
    if str(node.get("logicalType", "")).endswith("timestamp-millis"):
        return pa.timestamp("ms"), False
    return _arrow(node["type"])
