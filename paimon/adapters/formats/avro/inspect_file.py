"""Describe Avro files that other systems wrote: columns from the header, rows from the heads of the blocks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from paimon.adapters.formats.avro.container import count_records, read_header
from paimon.adapters.formats.avro.decode import stored_type
from paimon.adapters.formats.guards.avro import load_checked_schema
from paimon.domain.errors import Unsupported
from paimon.ports.formats import FileContent


def inspect_file(source: pa.NativeFile, path: str) -> FileContent:
    """Return the columns of the records, and their number; no block is decompressed."""
    header = read_header(source, path)
    node = load_checked_schema(header.schema, path)
    if not isinstance(node, dict) or node.get("type") != "record":
        raise Unsupported(f"the Avro file {path}, which has no records", hint="write each row as a record")
    columns = [(f["name"], _declared_type(f["type"])) for f in node["fields"]]
    return FileContent(pa.schema(columns), count_records(source, header, path))


def _declared_type(node: Any) -> pa.DataType:
    """Return the Arrow type of a column; maps are maps, unlike in `stored_type`."""
    if isinstance(node, list):
        branches = [branch for branch in node if branch != "null"]
        return _declared_type(branches[0]) if len(branches) == 1 else stored_type(node)
    kind = node if isinstance(node, str) else node["type"]
    match kind:
        case "record":
            return pa.struct([(f["name"], _declared_type(f["type"])) for f in node["fields"]])
        case "array":
            return pa.list_(_declared_type(node["items"]))
        case "map":
            return pa.map_(pa.string(), _declared_type(node["values"]))
        case _:
            return stored_type(node)
