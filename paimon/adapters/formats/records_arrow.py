"""Metadata records in Parquet or ORC files, which `manifest.format` allows in addition to Avro.

Invariant: the records are the same dicts as from Avro: times are numbers, and maps do not occur.
Source: Paimon's `manifest.format` option.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from paimon.adapters.formats.guards.orc_stripes import check_stripe, check_types
from paimon.adapters.formats.guards.orc_tail import read_tail
from paimon.adapters.formats.guards.parquet_batches import GroupRange, Leaf, plan_batches
from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.orc.writer import find_orc_codec
from paimon.adapters.formats.parquet.writer import find_parquet_codec
from paimon.domain.errors import CorruptTable, Unsupported

_TINY = frozenset(("_KIND", "_FILE_SOURCE"))
"""Fields that Java stores as TINYINT; Avro has only int."""
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
    """Read all records of a Parquet or ORC file; CorruptTable if it decodes to more than about `limit` bytes."""
    try:
        table = _read_parquet(data, limit) if data[:4] == b"PAR1" else _read_orc(data, limit)
    except Unsupported as error:
        raise error.within(path) from None
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError, OverflowError, zlib.error) as error:
        raise CorruptTable(path, f"is a damaged or too large manifest: {error}") from error
    millis = table.cast(_replace_timestamps(table.schema, pa.timestamp("ms")))
    return list(millis.cast(_replace_timestamps(table.schema, pa.int64())).to_pylist())


def write_arrow_records(
    records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
) -> bytes:
    """Encode records as a Parquet or ORC file with the types of an Avro schema and a codec of table options."""
    fields = [_arrow_field(f) for f in schema["fields"]]
    table = pa.Table.from_pylist([dict(r) for r in records], schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    if format_name == "parquet":
        pq.write_table(table, sink, compression=find_parquet_codec(compression), store_schema=False)
    else:
        orc.write_table(table, sink, compression=find_orc_codec(compression))
    return bytes(sink.getvalue().to_pybytes())


def _read_parquet(data: bytes, limit: int) -> pa.Table:
    """Read a Parquet file of at most `limit` decoded bytes, with pages limited as in `plan_batches`."""
    stored = Stored(pa.BufferReader(data))
    file = open_parquet_file(stored)
    footer = file.metadata
    size = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    if max(size, footer.num_rows * _MIN_RECORD_BYTES) > limit:
        raise ValueError(f"the file decodes to more than {limit} bytes")
    leaves = [Leaf.of(file.schema, index) for index in range(len(file.schema))]
    piece = GroupRange(tuple(range(footer.num_row_groups)), 0, footer.num_rows)
    rows = plan_batches(footer, stored, piece, leaves, _BATCH_ROWS, limit).rows
    batches, decoded = [], 0
    for batch in file.iter_batches(rows):
        decoded += batch.nbytes
        if decoded > limit:
            raise ValueError(f"the file decodes to more than {limit} bytes")
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=file.schema_arrow)


def _read_orc(data: bytes, limit: int) -> pa.Table:
    """Read an ORC file whose stripes state at most `limit` bytes."""
    source = pa.BufferReader(data)
    tail = read_tail(source)
    check_types(tail)
    kinds = dict(enumerate(tail.kinds))
    stripes = (check_stripe(source, n, s, tail.compression, 1, kinds) for n, s in enumerate(tail.stripes))
    if max(sum(s.decoded_bytes for s in stripes), tail.rows * _MIN_RECORD_BYTES) > limit:
        raise ValueError(f"the file decodes to more than {limit} bytes")
    return orc.ORCFile(source).read()


def _replace_timestamps(schema: pa.Schema, timestamp: pa.DataType) -> pa.Schema:
    """Return the schema with all timestamps as `timestamp`; a cast from milliseconds to int64 keeps the number."""
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


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    kind, nullable = _arrow(field["type"])
    return pa.field(field["name"], pa.int8() if field["name"] in _TINY else kind, nullable)


def _arrow(node: Any) -> tuple[pa.DataType, bool]:
    if isinstance(node, list):
        return _arrow(next(branch for branch in node if branch != "null"))[0], True
    if isinstance(node, str):
        return _PRIMITIVES[node], False
    if node["type"] == "record":
        return pa.struct([_arrow_field(f) for f in node["fields"]]), False
    if node["type"] == "array":
        kind, nullable = _arrow(node["items"])
        return pa.list_(pa.field("element", kind, nullable)), False
    if str(node.get("logicalType", "")).endswith("timestamp-millis"):
        return pa.timestamp("ms"), False
    return _arrow(node["type"])
