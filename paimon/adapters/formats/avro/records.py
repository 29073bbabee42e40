"""Records of Avro blocks as dicts, and back: the row-wise way through Avro.

Law: logical types are ignored (a timestamp is its number, a decimal its bytes), and only schemas whose decoding is
bounded by the size of the data are accepted: no recursion, no arrays of things that take no bytes, limited nesting.
Source: Avro specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro

from paimon.adapters.formats.avro.container import Block, long_bytes
from paimon.domain.errors import CorruptTable, Unsupported

_MAX_NESTING = 32
_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_SCHEMA_ERRORS = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_KEPT_KEYS = ("name", "namespace", "aliases", "size", "symbols", "default")


class _Schemas:
    """One walk over a schema: names of records seen so far, and whether each takes at least one byte."""

    def __init__(self) -> None:
        self.solid: dict[str, bool] = {}

    def plain(self, node: Any, depth: int = 0) -> tuple[Any, bool]:
        """The schema without logical types, and whether each of its values takes at least one byte."""
        if depth > _MAX_NESTING:
            raise Unsupported(f"Avro schemas nested deeper than {_MAX_NESTING}")
        if isinstance(node, str):
            return self._named(node)
        if isinstance(node, list):
            return [self.plain(branch, depth + 1)[0] for branch in node], True
        if not isinstance(node, dict) or "type" not in node:
            raise Unsupported("an Avro schema without a type")
        kind = node["type"]
        if kind == "record":
            return self._record(node, depth)
        kept = {key: node[key] for key in _KEPT_KEYS if key in node}
        if kind == "array" or kind == "map":
            part = "items" if kind == "array" else "values"
            inner, solid = self.plain(node.get(part), depth + 1)
            if kind == "array" and not solid:
                raise Unsupported("an Avro array whose elements take no bytes")
            return {"type": kind, part: inner}, True
        if kind == "fixed" or kind == "enum":
            self.solid[_full_name(node)] = solid = kind == "enum" or int(node.get("size", 0)) > 0
            return {"type": kind, **kept}, solid
        return self.plain(kind, depth + 1)

    def _named(self, name: str) -> tuple[str, bool]:
        if name in _PRIMITIVES:
            return name, name != "null"
        for known, solid in self.solid.items():
            if known == name or known.rsplit(".", 1)[-1] == name:
                return name, solid
        raise Unsupported(f"Avro type {name!r}: not known, or recursive")

    def _record(self, node: Mapping[str, Any], depth: int) -> tuple[Any, bool]:
        fields, solid = [], False
        for field in node["fields"]:
            inner, takes_bytes = self.plain(field["type"], depth + 1)
            fields.append({"name": field["name"], "type": inner})
            solid = solid or takes_bytes
        self.solid[_full_name(node)] = solid
        names = {key: node[key] for key in ("name", "namespace") if key in node}
        return {"type": "record", **names, "fields": fields}, solid


@lru_cache(maxsize=64)
def block_schema(text: str) -> Any:
    """The parsed schema of a whole block: an array of the file's records, so that one call decodes a block.

    Raises
    ------
    Unsupported
        The schema allows more than is decoded here.
    ValueError, KeyError, TypeError, RecursionError
        The text is no Avro schema.
    """
    plain, solid = _Schemas().plain(json.loads(text))
    if not solid:
        raise Unsupported("Avro records that take no bytes")
    return fastavro.parse_schema({"type": "array", "items": plain})


def parsed_schema(text: str, path: str) -> Any:
    """`block_schema`, with what is wrong blamed on the file."""
    try:
        return block_schema(text)
    except (*_SCHEMA_ERRORS, fastavro.schema.SchemaParseException) as error:
        raise CorruptTable(path, f"has no readable Avro schema: {error!r}") from error
    except Unsupported as error:
        raise error.within(path) from None


def checked_schema(text: str, path: str) -> Any:
    """The schema as JSON, once it is known to be one that is safe to decode."""
    parsed_schema(text, path)
    return json.loads(text)


def decode(block: Block, schema: Any, path: str, reader_schema: Any = None) -> list[dict[str, Any]]:
    """The records of a block; `schema` is an array of records, `reader_schema` the like with fewer fields."""
    data = b"".join((long_bytes(block.record_count), block.data, b"\0")) if block.record_count else b"\0" + block.data
    stream = BytesIO(data)
    try:
        records = fastavro.schemaless_reader(stream, schema, reader_schema)
    except (EOFError, ValueError, IndexError, KeyError, OverflowError, TypeError, MemoryError) as error:
        raise CorruptTable(path, f"has an Avro block that does not decode: {error!r}") from error
    if len(records) != block.record_count or stream.tell() != len(data):
        raise CorruptTable(path, "has an Avro block with more or fewer records than it says")
    return list(records)


def encode(records: Iterable[Mapping[str, Any]], schema: Any) -> Block:
    """One block of these records; `schema` is of `fastavro.parse_schema`, an array of the file's records."""
    rows = list(records)
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, rows)
    data = stream.getvalue()
    return Block(len(rows), data[len(long_bytes(len(rows))) : -1] if rows else b"")


def _full_name(node: Mapping[str, Any]) -> str:
    name = str(node.get("name", ""))
    space = node.get("namespace")
    return f"{space}.{name}" if space and "." not in name else name
