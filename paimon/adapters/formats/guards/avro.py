"""Check the schema and the blocks of an Avro file before they are decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import fastavro
from attrs import frozen

from paimon.domain.errors import CorruptTable, Unsupported

_MAX_NESTING = 32
_MAX_TEXT = 8 * 1024 * 1024
_MAX_PARTS = 100_000
_PARTS_PER_BYTE = 16
_PRIMITIVE_BYTES = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}
_SCHEMA_ERRORS = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_KEPT_KEYS = ("name", "namespace", "aliases", "size", "symbols", "default")


@frozen
class Cost:
    """The cost of any value of one type."""

    # largest number of parts of a value; elements of arrays and maps are not counted
    parts: int
    # by how much the parts of a value can exceed `_PARTS_PER_BYTE` times its bytes; 0 or less: never
    debt: int


def _cost_of_bytes(least_bytes: int) -> Cost:
    return Cost(1, 1 - _PARTS_PER_BYTE * least_bytes)


_PRIMITIVES = {name: _cost_of_bytes(least_bytes) for name, least_bytes in _PRIMITIVE_BYTES.items()}


class _SchemaChecker:
    """One pass over a schema; `named` holds the costs of the named types that were seen so far."""

    def __init__(self) -> None:
        self.named: dict[str, Cost] = {}

    def strip_node(self, node: Any, depth: int = 0) -> tuple[Any, Cost]:
        """Return the schema without logical types, and a value's cost; Unsupported if recursive, too deep or free."""
        if depth > _MAX_NESTING:
            raise Unsupported(f"Avro schemas nested deeper than {_MAX_NESTING}")
        if isinstance(node, str):
            return node, self._cost_of(node)
        if isinstance(node, list):
            branches = [self.strip_node(branch, depth + 1) for branch in node]
            costs = [cost for _, cost in branches]
            parts, debt = max((c.parts for c in costs), default=0), max((c.debt for c in costs), default=0)
            return [branch for branch, _ in branches], Cost(1 + parts, 1 + debt - _PARTS_PER_BYTE)
        if not isinstance(node, dict) or "type" not in node:
            raise Unsupported("an Avro schema node without a type")
        return self._bound_type(node, depth)

    def _bound_type(self, node: Mapping[str, Any], depth: int) -> tuple[Any, Cost]:
        kind = node["type"]
        if kind == "record":
            return self._record(node, depth)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            inner, cost = self.strip_node(node.get(part), depth + 1)
            _refuse_debt(cost, f"an Avro {kind} whose values take too few bytes")
            return {"type": kind, part: inner}, _cost_of_bytes(1)
        if kind in ("fixed", "enum"):
            size = int(node.get("size", 0)) if kind == "fixed" else 1
            if size < 0:
                raise ValueError("a fixed type of negative size")
            kept = {k: node[k] for k in _KEPT_KEYS if k in node}
            return {"type": kind, **kept}, self._remember(node, _cost_of_bytes(size))
        return self.strip_node(kind, depth + 1)

    def _record(self, node: Mapping[str, Any], depth: int) -> tuple[Any, Cost]:
        fields, parts, debt = [], 1, 1
        for field in node["fields"]:
            inner, cost = self.strip_node(field["type"], depth + 1)
            fields.append({"name": field["name"], "type": inner})
            parts, debt = parts + cost.parts, debt + cost.debt
            if parts > _MAX_PARTS:
                raise Unsupported(f"Avro records of more than {_MAX_PARTS} parts")
        names = {key: node[key] for key in ("name", "namespace") if key in node}
        return {"type": "record", **names, "fields": fields}, self._remember(node, Cost(parts, debt))

    def _cost_of(self, name: str) -> Cost:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name not in self.named:
            raise Unsupported(f"Avro type {name!r}, which is unknown or recursive,")
        return self.named[name]

    def _remember(self, node: Mapping[str, Any], cost: Cost) -> Cost:
        """Return the cost, and store it for the type's name, with its namespace and without."""
        name, space = str(node.get("name", "")), node.get("namespace")
        full = f"{space}.{name}" if space and "." not in name else name
        self.named[full] = self.named[full.rsplit(".", 1)[-1]] = cost
        return cost


def _refuse_debt(cost: Cost, what: str) -> None:
    if cost.debt > 0:
        raise Unsupported(what)


@lru_cache(maxsize=64)
def _block_schema(text: str) -> Any:
    if len(text) > _MAX_TEXT:
        raise Unsupported(f"Avro schemas of more than {_MAX_TEXT} characters")
    stripped, cost = _SchemaChecker().strip_node(json.loads(text))
    _refuse_debt(cost, "an Avro record type whose values take too few bytes")
    return fastavro.parse_schema({"type": "array", "items": stripped})


def parse_block_schema(text: str, path: str) -> Any:
    """Return the parsed schema of a whole block: an array of the file's records, so that one call decodes a block.

    A valid schema that exceeds the limits of this module is Unsupported; text that is no schema is CorruptTable.
    """
    try:
        return _block_schema(text)
    except (*_SCHEMA_ERRORS, fastavro.schema.SchemaParseException) as error:
        raise CorruptTable(path, f"has no readable Avro schema: {error!r}") from error
    except Unsupported as error:
        raise error.within(path) from None


def load_checked_schema(text: str, path: str) -> Any:
    """Return the schema as JSON after the checks of `parse_block_schema`, with the same errors."""
    parse_block_schema(text, path)
    return json.loads(text)


# How many bytes and records the blocks of an Avro file may have, in proportion to the bytes that are stored.
#
# Invariant: a file that passes takes memory in proportion to its own size, or at most a fixed number of bytes.


MAX_HEADER_BYTES = 16 * 1024 * 1024
"""Most bytes of one entry of the header."""
MAX_RECORDS = 1 << 20
"""Most records of a block, and of a file that is read record by record: as Python objects each takes a kilobyte."""
_BLOCK_SLACK_BYTES = 4 * 1024 * 1024
"""60 times the size of the blocks that writers make."""
_FILE_SLACK_BYTES = 8 * 1024 * 1024
_MAX_RATIO = 200
_LARGE_BYTES = 64 * 1024 * 1024
_LARGE_RATIO = 16
"""Larger blocks have a smaller ratio: writers make blocks of 64 KB, or of one large record."""
_LEAST_RECORD_BYTES = 24
"""Each metadata record holds a binary row, which takes at least 13 bytes, a file name, and numbers."""


def max_block_bytes(packed_bytes: int) -> int:
    """Return to how many bytes a block of `packed_bytes` stored bytes may decompress."""
    return min(_BLOCK_SLACK_BYTES + _MAX_RATIO * packed_bytes, max(_LARGE_BYTES, _LARGE_RATIO * packed_bytes))


def max_metadata_bytes(file_bytes: int) -> int:
    """Return to how many bytes a metadata file of `file_bytes` bytes may decompress."""
    return _FILE_SLACK_BYTES + _MAX_RATIO * file_bytes


def has_too_many_records(record_count: int, decoded_bytes: int) -> bool:
    """Return whether a block states more records than its decompressed bytes can hold, or than are read at once."""
    return record_count > min(decoded_bytes, MAX_RECORDS)


def has_too_many_metadata_records(record_count: int, decoded_bytes: int) -> bool:
    """Return whether a block of a metadata file states more records than its decompressed bytes can hold."""
    return record_count * _LEAST_RECORD_BYTES > decoded_bytes
