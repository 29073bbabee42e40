"""Open a Parquet file, and refuse footers over which pyarrow ends the process.

Arrow checks a footer when it opens a file, but decodes the statistics of a column chunk when they are asked for. If
they contradict the schema, its C++ code raises an exception there that its Python code does not catch.

A column chunk in the usual layout that agrees with the schema is recognized and sound. What is not recognized may be
sound, and is decoded member by member, which takes ten times as long.

Invariant: the bytes that are checked are those that Arrow decodes. What readers may decode in different ways is
refused: members that occur twice, or have another wire type than Parquet defines. The time is in proportion to the
bytes of the footer.
Source: `parquet.thrift`, the layouts of Arrow and parquet-java, and Arrow's `ColumnChunkMetaData` and
`SizeStatistics::Validate`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any

import pyarrow.parquet as pq
from attrs import field, frozen

from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    SET,
    STRUCT,
    TRUE,
    ByteReader,
    ThriftList,
    ThriftStruct,
    decode_at,
    encode_list,
)

BYTE_ARRAY = 6
CODECS = range(8)
_MOST_ENTRIES = 6
"""The longest list that the patterns match."""
_MOST_BOUND_BYTES = 64
_Found = tuple[bytes | None, ...]
_UsualLengths = tuple[frozenset[_Found] | None, frozenset[_Found]]
"""The lengths that bounds may have, None for any, and those of the size statistics."""


@frozen
class ChunkShape:
    """What the schema states of the chunks of a leaf column."""

    # number of the physical type
    physical: int
    # bytes of a bound; None for strings
    width: int | None
    # names on the path of the column, with dots between them
    name: str
    # number of repetition levels
    repetitions: int
    # number of definition levels
    definitions: int
    _type: bytes = field(init=False)
    _path: bytes = field(init=False)
    _lengths: _UsualLengths = field(init=False)

    @_type.default
    def _encode_type(self) -> bytes:
        return bytes((self.physical << 1,))

    @_path.default
    def _encode_path(self) -> bytes:
        return encode_list(BINARY, self.name.encode().split(b"."))

    @_lengths.default
    def _find_lengths(self) -> _UsualLengths:
        return _find_usual_lengths(self.physical, self.width, self.repetitions, self.definitions)

    def match(self, footer: bytes, at: int) -> int:
        """Return the end of the column chunk at an offset of a footer; 0 if it is not recognized."""
        beginning, rest = _patterns()
        start = beginning.match(footer, at)
        if start is None or start[1] != self._type:
            return 0
        at = start.end()
        if not footer.startswith(self._path, at):
            return 0
        end = rest.match(footer, at + len(self._path))
        if end is None:
            return 0
        found = end.groups()
        lengths = found[1], found[3], found[4], found[5]
        bounds, sizes = self._lengths
        if found[6:] not in sizes or (bounds is not None and lengths not in bounds):
            return 0
        return end.end()


@lru_cache(1024)
def _find_usual_lengths(
    physical: int, width: int | None, repetitions: int, definitions: int
) -> tuple[frozenset[_Found] | None, frozenset[_Found]]:
    """Return the groups that a match may have for bounds and for size statistics; None for any bounds."""
    bounds = None
    if width is not None:
        size = bytes((min(width, 255),))
        bounds = frozenset({(None,) * 4, (None, None, size, size), (size, size, None, None)})
    sizes: set[_Found] = {(None,) * 5, (b"\x16", None, None, None, None)}
    for reps, defs in product(_histogram_heads(repetitions), _histogram_heads(definitions)):
        sizes |= {(b"\x16", reps, defs, None, None), (None, None, None, reps, defs)}
    return bounds, frozenset(found for found in sizes if found[0] is None or physical == BYTE_ARRAY)


def _histogram_heads(levels: int) -> list[bytes | None]:
    """Return how a histogram of levels may begin: it is missing, empty or complete."""
    return [None, bytes((I64,)), *((bytes((levels << 4 | I64,)),) if levels <= _MOST_ENTRIES else ())]


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a column chunk before and after its path.

    The group of the first one is the physical type. The second one has groups for the deprecated bounds, each with its
    length, and for the lengths of other bounds. Five groups describe the size statistics: whether they have the bytes
    of strings, and the lengths of the histograms.
    """
    # Thrift: a member begins with a byte: how far its number is from that of the member before (high 4 bits), and its
    # wire type (low 4 bits). \x15 is the next member, an i32; \x26 is two further, an i64; \x00 ends a struct.
    number = rb"[\x80-\xff]*+[\x00-\x7f]"
    i32, i64 = rb"\x15" + number, rb"\x16" + number
    lengths = (8, 4, *range(4), *range(5, 8), *range(9, _MOST_BOUND_BYTES + 1))
    bound = rb"(?=(.))(?:%b)" % b"|".join(re.escape(bytes((n,))) + b".{%d}" % n for n in lengths)
    gap, exact = rb"(?:\x28|\x16%b\x18)" % number, rb"(?:[\x11\x12]{2})?"
    deprecated = rb"\x18(?P<max>%b)\x18(?P<min>%b)\x16%b" % (bound, bound, number)
    statistics = rb"(?:%b(?:%b(?P=max)\x18(?P=min)%b)?|" % (
        deprecated,
        gap,
        exact,
    ) + rb"\x36%b(?:%b%b\x18%b%b)?)\x00" % (number, gap, bound, bound, exact)
    levels = rb"(?=(.))" + _match_list(I64, number)
    sizes = rb"(?:(\x16)%b(?:(?:\x29|\x19%b\x19)%b)?|(?:\x39|\x29%b\x19)%b)?\x00" % (number, *[levels] * 4)
    rest = (
        rb"\x15[\x00\x02\x04\x06\x08\x0a\x0c\x0e]%b\x26%b(?:\x26%b\x1c|\x3c)" % (i64 * 3, number, number)
        + statistics
        + rb"\x19%b(?:\x3c%b)?\x00" % (_match_list(STRUCT, i32 * 3 + rb"\x00"), sizes)
        + rb"(?:%b%b){0,2}\x00" % (i64, i32)
    )
    beginning = rb"\x26%b\x1c\x15(.)\x19%b\x19" % (number, _match_list(I32, number))
    return re.compile(beginning, re.DOTALL), re.compile(rest, re.DOTALL)


def _match_list(kind: int, element: bytes) -> bytes:
    """Return the pattern of a list of a few elements of a wire type."""
    heads = ((n, re.escape(bytes((n << 4 | kind,)))) for n in range(_MOST_ENTRIES + 1))
    return b"(?:%b)" % b"|".join(head + b"(?:%b){%d}" % (element, n) for n, head in heads)


# A footer is a struct of Thrift: each member is a head with its number and wire type, and its value; a zero ends the
# struct. `check_footer` goes through the members in the stored bytes, and decodes only what it checks:
#
#     2  schema        each element is decoded and checked; each leaf column becomes a `ChunkShape`
#     4  row groups    each column chunk is compared with the shape of its column: by a pattern of bytes if it has the
#                      usual layout (`ChunkShape.match`), otherwise member by member (`_check_chunk`)
#     others           are skipped
#
# Many files of a table have the same schema. So the bytes up to its end are kept with their shapes (`_LAST`), and a
# footer that begins with them is checked from there.


_PHYSICAL = {
    name: number
    for number, name in enumerate(
        ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
    )
}
_WIDTHS = (1, 4, 8, 12, 4, 8)
"""The bytes of a bound, by number of the physical type."""
_MOST_KEPT_BYTES = 512 * 1024
_MOST_I32 = 2**31
_MOST_NUMBER = 2**15 - 1
_FIXED_SIZES = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}
_Kinds = Sequence[int | tuple[int, int]]
"""The wire types of the members of a struct by their numbers; lists with the wire type of their elements."""
_FILE: _Kinds = (0, I32, (LIST, STRUCT), I64, (LIST, STRUCT), (LIST, STRUCT), BINARY, (LIST, STRUCT), STRUCT, BINARY)
_ELEMENT: _Kinds = (0, I32, I32, I32, BINARY, I32, I32, I32, I32, I32, STRUCT)
_LOGICAL_TYPES: _Kinds = (0, *[STRUCT] * 18)
_DECIMAL_TYPE: _Kinds = (0, I32, I32)
_GROUP: _Kinds = (0, (LIST, STRUCT), I64, I64, (LIST, STRUCT), I64, I64, I16)
_CHUNK: _Kinds = (0, BINARY, I64, STRUCT, I64, I32, I64, I32, STRUCT, BINARY)
_META: _Kinds = (
    *(0, I32, (LIST, I32), (LIST, BINARY), I32, I64, I64, I64, (LIST, STRUCT), I64, I64, I64),
    *(STRUCT, (LIST, STRUCT), I64, I32, STRUCT, STRUCT),
)
_STATISTICS: _Kinds = (0, BINARY, BINARY, I64, I64, BINARY, BINARY, TRUE, TRUE, I64)
_SIZES: _Kinds = (0, I64, (LIST, I64), (LIST, I64))
_GEOSPATIAL: _Kinds = (0, STRUCT, (LIST, I32))
_SCHEMA, _ROW_GROUPS, _COLUMNS, _CHUNK_META, _CRYPTO, _ENCRYPTED = 2, 4, 1, 3, 8, 9
_REPETITION, _SCALE, _PRECISION, _LOGICAL, _DECIMAL = 3, 7, 8, 10, 5
_REPETITION_TYPES = range(3)
_TYPE, _PATH, _CODEC, _CHUNK_STATISTICS, _CHUNK_SIZES, _CHUNK_GEOSPATIAL = 1, 3, 4, 12, 16, 17
_MAX, _MIN, _MAX_VALUE, _MIN_VALUE = 1, 2, 5, 6
_UNENCODED_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3


def open_parquet_file(stored: Stored, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file whose footer is not known yet, with one request for Arrow and for the check."""
    stored.fetch_footer()
    file = pq.ParquetFile(stored.source, **options)
    check_footer(stored.footer_bytes, file.schema)
    return file


def check_footer(footer: bytes, schema: pq.ParquetSchema) -> None:
    """Compare a footer's chunks with the schema that Arrow read; ValueError if they differ or are encrypted."""
    shapes: tuple[ChunkShape, ...] = ()
    at = number = 0
    known = _LAST.find(footer)
    if known is not None:
        at, number, shapes = len(known.beginning), _SCHEMA, known.shapes
    while head := footer[at]:
        number, at = _read_head(footer, at, number, _FILE)
        if number == _ROW_GROUPS:
            count, at = _read_list(footer, at)
            for _ in range(count):
                at = _check_group(footer, at, shapes)
            continue
        if number == _SCHEMA:
            at = _check_schema(footer, at)
            shapes = tuple(_read_shape(schema.column(index)) for index in range(len(schema)))
            _LAST.keep(_KnownSchema(footer[:at], shapes))
        else:
            at = _skip(footer, at, head & 15)


@frozen
class _KnownSchema:
    """The beginning of a footer up to the end of its schema, and what that states."""

    beginning: bytes
    shapes: tuple[ChunkShape, ...]


class _LastSchema:
    """The schema of the last file: many files of a table have the same. Its methods are thread-safe."""

    def __init__(self) -> None:
        self._known: _KnownSchema | None = None

    def find(self, footer: bytes) -> _KnownSchema | None:
        """Return the schema that a footer begins with, if it is the one of the last file."""
        known = self._known
        return known if known is not None and footer.startswith(known.beginning) else None

    def keep(self, known: _KnownSchema) -> None:
        """Keep a schema, if it is not large."""
        if len(known.beginning) <= _MOST_KEPT_BYTES:
            self._known = known


_LAST = _LastSchema()


def _read_shape(column: pq.ColumnSchema) -> ChunkShape:
    """Return what the schema states of a leaf column."""
    physical = _PHYSICAL[column.physical_type]
    width = _WIDTHS[physical] if physical < BYTE_ARRAY else None if physical == BYTE_ARRAY else column.length
    levels = column.max_repetition_level + 1, column.max_definition_level + 1
    return ChunkShape(physical, width, column.path, *levels)


def _check_schema(data: bytes, at: int) -> int:
    """Check what Arrow ignores in the elements of a schema, and return the offset of its end."""
    count, at = _read_list(data, at)
    for place in range(count):
        element, at = decode_at(data, at)
        _check_types(element, _ELEMENT, "a schema element")
        if place and element.get(_REPETITION) not in _REPETITION_TYPES:
            raise ValueError("a column of the schema is not required, optional or repeated")
        logical = element.get(_LOGICAL) or ThriftStruct({})
        _check_types(logical, _LOGICAL_TYPES, "a logical type")
        decimal = logical.get(_DECIMAL)
        if decimal is not None and element.get(_PRECISION) is not None:
            _check_types(decimal, _DECIMAL_TYPE, "a decimal type")
            if (element.get(_SCALE) or 0, element.get(_PRECISION)) != (decimal.get(1), decimal.get(2)):
                raise ValueError("a column of the schema has two decimal types")
    return at


def _check_group(data: bytes, at: int, shapes: Sequence[ChunkShape]) -> int:
    """Check a row group, and return the offset of its end."""
    number = 0
    while head := data[at]:
        number, at = _read_head(data, at, number, _GROUP)
        if number != _COLUMNS:
            at = _skip(data, at, head & 15)
            continue
        count, at = _read_list(data, at)
        if count != len(shapes):
            raise ValueError(f"a row group has {count} column chunks, and the schema has {len(shapes)} columns")
        for shape in shapes:
            at = shape.match(data, at) or _check_next_chunk(data, at, shape)
    return at + 1


def _check_next_chunk(data: bytes, at: int, shape: ChunkShape) -> int:
    """Decode a column chunk, check it, and return the offset of its end."""
    chunk, end = decode_at(data, at)
    try:
        _check_chunk(chunk, shape)
    except ValueError as error:
        raise ValueError(f"column {shape.name}: {error}") from error
    return end


def _check_chunk(chunk: ThriftStruct, shape: ChunkShape) -> None:
    _check_types(chunk, _CHUNK, "a column chunk")
    if not chunk.members.keys().isdisjoint((_CRYPTO, _ENCRYPTED)):
        raise ValueError("a column chunk is encrypted")
    meta = chunk.get(_CHUNK_META)
    if meta is None:
        raise ValueError("a column chunk has no metadata")
    _check_types(meta, _META, "the metadata of a column chunk")
    if meta.get(_TYPE) != shape.physical:
        raise ValueError("a column chunk has another physical type than the schema")
    if b".".join(meta.get(_PATH).values) != shape.name.encode():
        raise ValueError("a column chunk is at the position of another column")
    if meta.get(_CODEC) not in CODECS:
        raise ValueError("a column chunk is compressed with a codec that does not exist")
    if (statistics := meta.get(_CHUNK_STATISTICS)) is not None:
        _check_statistics(statistics, shape.width)
    if (sizes := meta.get(_CHUNK_SIZES)) is not None:
        _check_sizes(sizes, shape)
    if (geospatial := meta.get(_CHUNK_GEOSPATIAL)) is not None:
        _check_types(geospatial, _GEOSPATIAL, "geospatial statistics")


def _check_statistics(statistics: ThriftStruct, width: int | None) -> None:
    """Check the bounds; writers repeat those of numbers in deprecated members."""
    _check_types(statistics, _STATISTICS, "statistics")
    if width is None:
        return
    for deprecated, number in ((_MAX, _MAX_VALUE), (_MIN, _MIN_VALUE)):
        bounds = {statistics.get(member) for member in (deprecated, number)} - {None}
        if any(len(bound) != width for bound in bounds):
            raise ValueError(f"statistics of values of {width} bytes have bounds of another size")
        if len(bounds) > 1:
            raise ValueError("statistics have two values of the same bound")


def _check_sizes(sizes: ThriftStruct, shape: ChunkShape) -> None:
    """Check that there is one number for each level, and the bytes of strings only for strings."""
    _check_types(sizes, _SIZES, "size statistics")
    if sizes.get(_UNENCODED_BYTES) is not None and shape.physical != BYTE_ARRAY:
        raise ValueError("size statistics have the bytes of strings for a column of another type")
    for number, levels in ((_REPETITIONS, shape.repetitions), (_DEFINITIONS, shape.definitions)):
        histogram = sizes.get(number)
        if histogram is not None and len(histogram.values) not in (0, levels):
            raise ValueError(f"size statistics have {len(histogram.values)} numbers for {levels} levels")


def _check_types(value: ThriftStruct, kinds: _Kinds, name: str) -> None:
    """Compare the wire types of the members of a struct. Arrow skips a member that has another one."""
    for number, (kind, member) in value.members.items():
        found = (kind, member.kind) if isinstance(member, ThriftList) else kind
        if number < len(kinds) and found != kinds[number]:
            raise ValueError(f"member {number} of {name} has another wire type than Parquet defines")
        if kind == I32 and not -_MOST_I32 <= member < _MOST_I32:
            raise ValueError(f"member {number} of {name} has more than 32 bits")


def _read_head(data: bytes, at: int, last: int, kinds: _Kinds) -> tuple[int, int]:
    """Return a member's number and the offset of its value; ValueError unless it exceeds `last`, with the wire type."""
    kind: int | tuple[int, int] = data[at] & 15
    if data[at] > 15:
        number, at = last + (data[at] >> 4), at + 1
    else:
        source = ByteReader(data, at + 1)
        number, at = source.read_zigzag(), source.at
    if not last < number <= _MOST_NUMBER:
        raise ValueError(f"member {number} of the footer follows member {last}")
    if kind == LIST:
        kind = LIST, data[at] & 15
    if number < len(kinds) and kind != kinds[number]:
        raise ValueError(f"member {number} of the footer has another wire type than Parquet defines")
    return number, at


def _read_list(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of a list, and the offset of its first element."""
    return _read_varint(data, at + 1) if data[at] > 239 else (data[at] >> 4, at + 1)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    if data[at] < 128:
        return data[at], at + 1
    source = ByteReader(data, at)
    return source.read_varint(), source.at


def _skip(data: bytes, at: int, kind: int) -> int:
    """Return the offset of the end of a value. Arrow has limited the nesting."""
    if kind in (I32, I64, I16):
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == BINARY:
        size, at = _read_varint(data, at)
        return at + size
    if kind == STRUCT:
        while head := data[at]:
            at = _skip(data, at + 1 if head > 15 else _skip(data, at + 1, I16), head & 15)
        return at + 1
    if kind in (LIST, SET):
        kind = data[at] & 15
        count, at = _read_list(data, at)
        for _ in range(count):
            at = _skip(data, at, BYTE if kind in (TRUE, FALSE) else kind)
        return at
    if kind not in _FIXED_SIZES:
        raise ValueError(f"the footer has the wire type {kind}")
    return at + _FIXED_SIZES[kind]
