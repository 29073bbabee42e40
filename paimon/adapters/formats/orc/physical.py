"""Convert columns to the types that ORC files hold, and back: field ids as type attributes, blank-padded CHAR.

The tail of a written file is rewritten with the types that Arrow's writer cannot state.

Invariant: every type except the root carries `paimon.id`. TIME is an int, a TIMESTAMP WITH LOCAL TIME ZONE is a
timestamp with local time zone. CHAR(n) is padded to n characters when written, and loses trailing blanks when read.
Source: `OrcTypeUtil`, `FieldWriterFactory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.adapters.formats.guards.orc_tail import (
    FOOTER_LENGTH,
    METADATA_LENGTH,
    NO_COMPRESSION,
    ROWS,
    STATISTICS,
    STRIPES,
    TYPE_KIND,
    TYPES,
    OrcTail,
)
from paimon.adapters.formats.protobuf import BYTES, VARINT, Part, decode, encode, int_field
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.errors import Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import element_id, key_id, value_id
from paimon.domain.types.type_text import format_type

# Rewrite the tail of an ORC file: set column types that Arrow's writer cannot state, and join two files.
#
# Invariant: stripes and fields that this module does not know stay as they are.
# Source: ORC specification v1, "File Tail".


ORC_HEADER = b"ORC"
VARCHAR_KIND, CHAR_KIND = 16, 17
_BLOCK_SIZE = 3
_CONTENT_LENGTH = 2
_STRIPE_OFFSET = 1
_STATISTICS_VALUES, _STATISTICS_NULL = 1, 10
_TYPE_LENGTH = 4


def encode_tail(tail: OrcTail) -> bytes:
    """Encode a tail as the end of a file."""
    footer = encode(tail.footer)
    if tail.compression != NO_COMPRESSION:
        footer = _frame(footer, int_field(tail.postscript, _BLOCK_SIZE))
    lengths = {FOOTER_LENGTH: len(footer), METADATA_LENGTH: len(tail.metadata)}
    script = encode(evolve(p, value=lengths.get(p.number, p.value)) for p in tail.postscript)
    return tail.metadata + footer + script + bytes([len(script)])


def set_string_types(tail: OrcTail, lengths: Mapping[int, tuple[int, int]]) -> OrcTail:
    """Return the tail with CHAR and VARCHAR columns; `lengths` has (type kind, characters) by column number."""
    column = -1
    footer = []
    for part in tail.footer:
        column += part.number == TYPES
        if part.number == TYPES and column in lengths:
            kind, length = lengths[column]
            kept = [p for p in decode(part.as_bytes) if p.number not in (TYPE_KIND, _TYPE_LENGTH)]
            head = [Part(TYPE_KIND, VARINT, kind), Part(_TYPE_LENGTH, VARINT, length)]
            part = Part(TYPES, BYTES, encode(sorted(head + kept, key=_by_number)))
        footer.append(part)
    return evolve(tail, footer=tuple(footer))


def join_tails(first: OrcTail, second: OrcTail, shift: int) -> OrcTail:
    """Join the tails of two files, of which the second file's stripes were appended to those of the first.

    Both files have the same column kinds and codec. The stripes of the second file have moved by `shift` bytes. Bounds
    of the stripes are kept, those of the whole file are not.
    """
    stripes = [evolve(p, value=_shift_stripe(p.as_bytes, shift)) for p in second.footer if p.number == STRIPES]
    pairs = zip(first.statistics, second.statistics, strict=True)
    statistics = [Part(STATISTICS, BYTES, _add_counts(a, b)) for a, b in pairs]
    totals = {n: int_field(first.footer, n) + int_field(second.footer, n) for n in (_CONTENT_LENGTH, ROWS)}
    kept = [evolve(p, value=totals.get(p.number, p.value)) for p in first.footer if p.number != STATISTICS]
    footer = sorted([*kept, *stripes, *statistics], key=_by_number)
    return evolve(first, footer=tuple(footer), metadata=first.metadata + second.metadata)


def _frame(data: bytes, block_bytes: int) -> bytes:
    """Store data as uncompressed chunks: a footer is too small to be worth compressing again."""
    most = min(block_bytes or 1 << 18, (1 << 23) - 1)
    chunks = [data[at : at + most] for at in range(0, len(data), most)]
    return b"".join((len(c) << 1 | 1).to_bytes(3, "little") + c for c in chunks)


def _shift_stripe(stripe: bytes, shift: int) -> bytes:
    return encode(evolve(p, value=p.as_int + shift) if p.number == _STRIPE_OFFSET else p for p in decode(stripe))


def _add_counts(first: bytes, second: bytes) -> bytes:
    """Add up the value counts, and combine "has null", of two parts of a column."""
    parts = decode(first), decode(second)
    values = sum(int_field(p, _STATISTICS_VALUES) for p in parts)
    null = max(int_field(p, _STATISTICS_NULL, 1) for p in parts)
    return encode([Part(_STATISTICS_VALUES, VARINT, values), Part(_STATISTICS_NULL, VARINT, null)])


def _by_number(part: Part) -> int:
    return part.number


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
