"""Blocks of Avro data files as canonical Arrow batches.

Law: columns are found by name, at every level; values are read as the file's own Avro type says (milliseconds or
microseconds, the scale of a decimal), then cast to the canonical type of the field that is asked for; Avro maps and
arrays of (key, value) records are the same thing on disk and are read alike. Source: `FieldReaderFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.bounded_schema import checked_schema
from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.records import decode
from paimon.adapters.formats.avro.stored import as_stored, decoding_schema, number_type, position, stored_type
from paimon.adapters.formats.nested import rebuild
from paimon.domain.errors import CorruptTable
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType


@frozen(eq=False)
class DecodePlan:
    """How to decode the wanted columns; `found` has, for each, its name while decoding and its stored type."""

    writer_schema: Any
    reader_schema: Any
    fields: tuple[DataField, ...]
    found: tuple[tuple[str, pa.DataType] | None, ...]

    def batch(self, block: Block, path: str) -> pa.RecordBatch:
        """One block as one batch in canonical types."""
        records = decode(block, self.writer_schema, path, self.reader_schema)
        columns = [self._column(records, i, path) for i in range(len(self.fields))]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.nulls(len(records), pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.fields))

    def _column(self, records: Sequence[Mapping[str, Any]], index: int, path: str) -> pa.Array:
        field, found = self.fields[index], self.found[index]
        if found is None:
            return pa.nulls(len(records), arrow_type(field.type))
        name, stored = found
        try:
            numbers = pa.array([record[name] for record in records], number_type(stored))
            return rebuild(as_stored(numbers, stored), field.type, _canonical)
        except (pa.ArrowException, ValueError, TypeError, IndexError, AttributeError) as error:
            raise CorruptTable(path, f"has a column {field.name!r} that is not of its type: {error}") from error


def decode_plan(schema_text: str, fields: tuple[DataField, ...], path: str) -> DecodePlan:
    """What to do for these columns of a file with this writer's schema."""
    node = checked_schema(schema_text, path)
    try:
        return _plan(node, fields, path)
    except (pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise CorruptTable(path, f"has no readable Avro schema: {error!r}") from error


def _plan(node: Any, fields: tuple[DataField, ...], path: str) -> DecodePlan:
    if not isinstance(node, dict) or node.get("type") != "record":
        raise CorruptTable(path, "is an Avro file of something else than records")
    places = {f["name"]: i for i, f in enumerate(node["fields"])}
    types = [stored_type(f["type"]) for f in node["fields"]]
    found = tuple((position(places[f.name]), types[places[f.name]]) if f.name in places else None for f in fields)
    plain = decoding_schema(node, [0])
    wanted = {name for name, _ in filter(None, found)}
    kept = [f for f in plain["fields"] if f["name"] in wanted]
    pruned = len(kept) < len(plain["fields"])
    return DecodePlan(_of_blocks(plain), _of_blocks({**plain, "fields": kept}) if pruned else None, fields, found)


def _of_blocks(record: dict[str, Any]) -> Any:
    return fastavro.parse_schema({"type": "array", "items": record})


def _canonical(array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    if array.type.equals(target):
        return array
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp(target.unit), safe=False).cast(target)
    return array.cast(target)
