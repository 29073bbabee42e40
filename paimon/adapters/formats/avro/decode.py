"""Decode blocks of Avro data files as canonical Arrow batches.

Invariant: columns are found by name, at every level. Values are read as the file's own Avro type states (milliseconds
or microseconds, the scale of a decimal), then cast to the canonical type of the field. Avro maps and
arrays of (key, value) records have the same encoding, and are read alike. Source: `FieldReaderFactory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.arrow_types import as_stored, decoding_schema, number_type, position_name, stored_type
from paimon.adapters.formats.avro.column_decoder import (
    FIXED_BYTES,
    FlatField,
    decode_flat_columns,
    flat_fields,
    is_flat_worthwhile,
)
from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.records import decode_block
from paimon.adapters.formats.guards.avro_schema import load_checked_schema
from paimon.adapters.formats.nested import rebuild_leaves
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.errors import CorruptTable
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType, LocalZonedTimestampType, TimestampType

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
    """Plan how to decode the wanted columns of all blocks of a file, from the writer's schema.

    A schema that exceeds the limits of `guards.avro_schema` is Unsupported.
    """
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
    """Return whether fastavro can take forever to skip a value of this type.

    It skips values of fixed width without a look at the end of the data. A damaged count of them is followed to its
    end, so they are read, not skipped.
    """
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
