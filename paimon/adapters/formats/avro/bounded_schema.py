"""Which writer's schemas are decoded: only those under which the work is bounded by the bytes there are.

Law: no recursion, limited nesting, and no value that costs more than a few steps for each byte that it takes: arrays of
nothing, records of nulls and records that double by reference would be gigabytes in a few bytes. Source: Avro
specification, "Schema Declaration".
"""

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
    """Of one value, whichever it is: the most parts that it has (those of arrays not counted), and its `debt`.

    That is the most that a value's parts can exceed its bytes times `_PARTS_PER_BYTE`: no debt means that all parts of
    any value are paid for by its bytes.
    """

    parts: int
    debt: int


def _paid(least_bytes: int) -> Cost:
    return Cost(1, 1 - _PARTS_PER_BYTE * least_bytes)


_PRIMITIVES = {name: _paid(least_bytes) for name, least_bytes in _PRIMITIVE_BYTES.items()}


class _Schemas:
    """One walk over a schema; `named` are the costs of the types with a name that were seen so far."""

    def __init__(self) -> None:
        self.named: dict[str, Cost] = {}

    def plain(self, node: Any, depth: int = 0) -> tuple[Any, Cost]:
        """The schema without logical types, and what a value of it costs."""
        if depth > _MAX_NESTING:
            raise Unsupported(f"Avro schemas nested deeper than {_MAX_NESTING}")
        if isinstance(node, str):
            return node, self._cost_of(node)
        if isinstance(node, list):
            branches = [self.plain(branch, depth + 1) for branch in node]
            costs = [cost for _, cost in branches]
            parts, debt = max((c.parts for c in costs), default=0), max((c.debt for c in costs), default=0)
            return [branch for branch, _ in branches], Cost(1 + parts, 1 + debt - _PARTS_PER_BYTE)
        if not isinstance(node, dict) or "type" not in node:
            raise Unsupported("an Avro schema without a type")
        return self._typed(node, depth)

    def _typed(self, node: Mapping[str, Any], depth: int) -> tuple[Any, Cost]:
        kind = node["type"]
        if kind == "record":
            return self._record(node, depth)
        if kind == "array" or kind == "map":
            part = "items" if kind == "array" else "values"
            inner, cost = self.plain(node.get(part), depth + 1)
            _check(cost, f"an Avro {kind} whose values take too few bytes")
            return {"type": kind, part: inner}, _paid(1)
        if kind == "fixed" or kind == "enum":
            size = int(node.get("size", 0)) if kind == "fixed" else 1
            if size < 0:
                raise ValueError("a fixed type of negative size")
            return {"type": kind, **{k: node[k] for k in _KEPT_KEYS if k in node}}, self._remember(node, _paid(size))
        return self.plain(kind, depth + 1)

    def _record(self, node: Mapping[str, Any], depth: int) -> tuple[Any, Cost]:
        fields, parts, debt = [], 1, 1
        for field in node["fields"]:
            inner, cost = self.plain(field["type"], depth + 1)
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
            raise Unsupported(f"Avro type {name!r}: not known, or recursive")
        return self.named[name]

    def _remember(self, node: Mapping[str, Any], cost: Cost) -> Cost:
        """The cost, which is that of the name too, with its namespace or without."""
        name, space = str(node.get("name", "")), node.get("namespace")
        full = f"{space}.{name}" if space and "." not in name else name
        self.named[full] = self.named[full.rsplit(".", 1)[-1]] = cost
        return cost


def _check(cost: Cost, what: str) -> None:
    if cost.debt > 0:
        raise Unsupported(what)


@lru_cache(maxsize=64)
def _block_schema(text: str) -> Any:
    if len(text) > _MAX_TEXT:
        raise Unsupported(f"Avro schemas of more than {_MAX_TEXT} characters")
    plain, cost = _Schemas().plain(json.loads(text))
    _check(cost, "Avro records that take too few bytes")
    return fastavro.parse_schema({"type": "array", "items": plain})


def block_schema(text: str, path: str) -> Any:
    """The parsed schema of a whole block, an array of the file's records, so that one call decodes a block.

    Raises
    ------
    Unsupported
        It allows more than is decoded here.
    CorruptTable
        It is no Avro schema.
    """
    try:
        return _block_schema(text)
    except (*_SCHEMA_ERRORS, fastavro.schema.SchemaParseException) as error:
        raise CorruptTable(path, f"has no readable Avro schema: {error!r}") from error
    except Unsupported as error:
        raise error.within(path) from None


def checked_schema(text: str, path: str) -> Any:
    """The schema as JSON, once it is known to be one that is safe to decode."""
    block_schema(text, path)
    return json.loads(text)
