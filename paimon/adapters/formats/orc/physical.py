"""Convert columns to the types that ORC files hold, and back: field ids as type attributes, blank-padded CHAR.

Invariant: every type except the root carries `paimon.id`. TIME is an int, a TIMESTAMP WITH LOCAL TIME ZONE is a
timestamp with local time zone. CHAR(n) is padded to n characters when written, and loses trailing blanks when read.
Source: `OrcTypeUtil`, `FieldWriterFactory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from paimon.adapters.formats.orc.tail import CHAR_KIND, VARCHAR_KIND
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.errors import Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import element_id, key_id, value_id
from paimon.domain.types.type_text import format_type

_ID = b"paimon.id"


def make_orc_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema to write with; Arrow's ORC writer makes type attributes of field metadata."""
    return pa.schema([_orc_field(f.name, f.type, f.id, f.id, 0) for f in fields])


def character_lengths(fields: Iterable[DataField]) -> dict[int, tuple[int, int]]:
    """Return (type kind, characters) of CHAR(n) and VARCHAR(n), which Arrow cannot state, by column number."""
    lengths = {}
    for column, data_type in enumerate(_preorder(dt.RowType(fields))):
        if isinstance(data_type, dt.CharType):
            lengths[column] = (CHAR_KIND, data_type.length)
        elif isinstance(data_type, dt.VarCharType) and data_type.length != dt.MAX_LENGTH:
            lengths[column] = (VARCHAR_KIND, data_type.length)
    return lengths


def to_physical(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert an array of leaves to the stored type."""
    if isinstance(data_type, dt.CharType):
        return pc.utf8_rpad(array, data_type.length, " ")
    if isinstance(data_type, dt.TimeType):
        return array.cast(pa.int32())
    return array


def from_physical(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert an array of leaves as Arrow reads it to the canonical type."""
    target = arrow_type(data_type)
    if isinstance(data_type, dt.CharType):
        return pc.utf8_rtrim(array.cast(target), " ")
    if array.type.equals(target):
        return array
    if isinstance(data_type, dt.TimestampType | dt.LocalZonedTimestampType) and pa.types.is_timestamp(array.type):
        return fit_timestamps(array, data_type)
    return array.cast(target)


def _orc_field(name: str, data_type: DataType, own_id: int, owner: int, depth: int) -> pa.Field:
    kind = _stored_type(data_type, owner, depth)
    return pa.field(name, kind, data_type.nullable, metadata={_ID: str(own_id).encode()})


def _stored_type(data_type: DataType, owner: int, depth: int) -> pa.DataType:
    """Return the type to write; `owner` is the field from whose id those of elements, keys and values are derived."""
    inner = depth + 1
    match data_type:
        case dt.TimeType():
            return pa.int32()
        case dt.RowType(fields=fields):
            return pa.struct([_orc_field(f.name, f.type, f.id, f.id, 0) for f in fields])
        case dt.ArrayType(element=element):
            return pa.list_(_orc_field("element", element, element_id(owner, inner), owner, inner))
        case dt.MapType(key=key, value=value):
            return _stored_map(key, value, owner, inner)
        case dt.MultisetType(element=element):
            return _stored_map(element, dt.IntType(nullable=False), owner, inner)
        case dt.VariantType() | dt.VectorType():
            raise Unsupported(f"{format_type(data_type)} in ORC files", hint="choose file.format=parquet")
    return arrow_type(data_type)


def _stored_map(key: DataType, value: DataType, owner: int, depth: int) -> pa.DataType:
    key_field = _orc_field("key", key.with_nullable(False), key_id(owner, depth), owner, depth)
    return pa.map_(key_field, _orc_field("value", value, value_id(owner, depth), owner, depth))


def _preorder(data_type: DataType) -> Iterator[DataType]:
    """Yield the type and all nested types, in the order in which ORC numbers columns."""
    yield data_type
    match data_type:
        case dt.RowType(fields=fields):
            inner: tuple[DataType, ...] = tuple(f.type for f in fields)
        case dt.ArrayType(element=element):
            inner = (element,)
        case dt.MapType(key=key, value=value):
            inner = (key, value)
        case dt.MultisetType(element=element):
            inner = (element, dt.IntType())
        case _:
            inner = ()
    for part in inner:
        yield from _preorder(part)
