"""Blocks of Avro data files as canonical Arrow batches.

Law: columns are found by name, at every level; values are read as the file's own Avro type says (milliseconds or
microseconds, the scale of a decimal), then cast to the canonical type of the field that is asked for; Avro maps and
arrays of (key, value) records are the same thing on disk and are read alike. Source: `FieldReaderFactory`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.bounded_schema import checked_schema
from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.flat_columns import decode_flat_columns, is_flat_worthwhile
from paimon.adapters.formats.avro.record_starts import FlatField, flat_fields
from paimon.adapters.formats.avro.records import decode
from paimon.adapters.formats.avro.stored import as_stored, decoding_schema, number_type, position, stored_type
from paimon.adapters.formats.nested import rebuild
from paimon.domain.errors import CorruptTable
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType

_Values = Callable[[str, pa.DataType], pa.Array]
"""The values of a field, by its name while decoding, as an array of this type."""


@frozen(eq=False)
class DecodePlan:
    """How to decode the wanted columns; `found` has, for each, its name while decoding and its stored type.

    `flat` are all fields of the file's records, where these are such that they can be decoded as columns.
    """

    writer_schema: Any
    reader_schema: Any
    fields: tuple[DataField, ...]
    found: tuple[tuple[str, pa.DataType] | None, ...]
    flat: tuple[FlatField, ...] | None

    def batch(self, block: Block, path: str) -> pa.RecordBatch:
        """One block as one batch in canonical types."""
        values = self._flat_values(block) or self._row_wise_values(block, path)
        columns = [self._column(values, i, block.record_count, path) for i in range(len(self.fields))]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.nulls(block.record_count, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.fields))

    def _flat_values(self, block: Block) -> _Values | None:
        """Decode a block as columns; None where it must be decoded row by row."""
        if self.flat is None or not is_flat_worthwhile(block, self.flat):
            return None
        wanted = {name: number_type(stored) for name, stored in filter(None, self.found)}
        columns = decode_flat_columns(block, self.flat, wanted)
        return None if columns is None else lambda name, kind: columns[name]

    def _row_wise_values(self, block: Block, path: str) -> _Values:
        records = decode(block, self.writer_schema, path, self.reader_schema)
        return lambda name, kind: pa.array([record[name] for record in records], kind)

    def _column(self, values: _Values, index: int, rows: int, path: str) -> pa.Array:
        field, found = self.fields[index], self.found[index]
        if found is None:
            return pa.nulls(rows, arrow_type(field.type))
        name, stored = found
        try:
            return rebuild(as_stored(values(name, number_type(stored)), stored), field.type, _canonical)
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
    reader = _of_blocks({**plain, "fields": kept}) if pruned else None
    return DecodePlan(_of_blocks(plain), reader, fields, found, flat_fields(plain))


def _of_blocks(record: dict[str, Any]) -> Any:
    return fastavro.parse_schema({"type": "array", "items": record})


def _canonical(array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    if array.type.equals(target):
        return array
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp(target.unit), safe=False).cast(target)
    return array.cast(target)
