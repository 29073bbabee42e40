"""Open a Parquet file, and refuse footers over which pyarrow ends the process.

Arrow checks a footer when it opens a file, but decodes the statistics of a column chunk when they are asked for. If they
contradict the schema, its C++ code raises an exception there that its Python code does not catch.

Invariant: the bytes that are checked are those that Arrow decodes, as Arrow decodes them. What readers may decode in
different ways is refused: members that occur twice, or have another wire type than Parquet defines. The time is in
proportion to the bytes of the footer. Source: `parquet.thrift`, and Arrow's `ColumnChunkMetaData` and
`SizeStatistics::Validate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pyarrow.parquet as pq
from attrs import frozen

from paimon.adapters.formats.guards.parquet_bytes import Stored
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
)

_PHYSICAL = {
    name: number
    for number, name in enumerate(
        ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
    )
}
_WIDTHS = (1, 4, 8, 12, 4, 8)
"""The bytes of a bound, by number of the physical type."""
_BYTE_ARRAY, _FIXED = 6, 7
_CODECS = 8
_MOST_NUMBER = 2**15 - 1

_FILE = (0, I32, LIST, I64, LIST, LIST, BINARY, LIST, STRUCT, BINARY)
_GROUP = (0, LIST, I64, I64, LIST, I64, I64, I16)
_CHUNK = (0, BINARY, I64, STRUCT, I64, I32, I64, I32, STRUCT, BINARY)
_META = (0, I32, LIST, LIST, I32, I64, I64, I64, LIST, I64, I64, I64, STRUCT, LIST, I64, I32, STRUCT, STRUCT)
_STATISTICS = (0, BINARY, BINARY, I64, I64, BINARY, BINARY, TRUE, TRUE, I64)
_SIZES = (0, I64, LIST, LIST)
"""The wire types of the members of each struct, by their numbers."""
_FILE_LISTS = {2: STRUCT, 4: STRUCT, 5: STRUCT, 7: STRUCT}
_GROUP_LISTS = {1: STRUCT, 4: STRUCT}
_META_LISTS = {2: I32, 3: BINARY, 8: STRUCT, 13: STRUCT}
_GEOSPATIAL_LISTS = {2: I32}
_NO_LISTS: Mapping[int, int] = {}
"""The wire types of the elements of lists. Arrow reads these, whatever type a list states."""
_ROW_GROUPS, _COLUMNS, _CHUNK_META, _CRYPTO, _ENCRYPTED = 4, 1, 3, 8, 9
_TYPE, _CODEC, _META_STATISTICS, _SIZE_STATISTICS, _GEOSPATIAL_STATISTICS = 1, 4, 12, 16, 17
_UNENCODED_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3


def open_parquet_file(stored: Stored, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file whose footer is not known yet.

    A remote file is requested once for Arrow and for the check.

    Parameters
    ----------
    stored : Stored
        The bytes of the file.
    **options
        Options of `pyarrow.parquet.ParquetFile`.

    Returns
    -------
    pyarrow.parquet.ParquetFile
        The file. The metadata of its column chunks can be read without an end of the process.

    Raises
    ------
    ValueError, pyarrow.ArrowException, OSError
        The footer is damaged.
    IndexError
        The footer is truncated.
    """
    stored.fetch_footer()
    file = pq.ParquetFile(stored.source, **options)
    check_footer(stored.footer_bytes, file.schema)
    return file


def check_footer(footer: bytes, schema: pq.ParquetSchema) -> None:
    """Compare the column chunks in a footer with the schema.

    Parameters
    ----------
    footer : bytes
        The footer as stored, from which Arrow has read the schema.
    schema : pyarrow.parquet.ParquetSchema
        The schema.

    Raises
    ------
    ValueError
        A column chunk contradicts the schema or is encrypted, or a member occurs twice or has another wire type.
    IndexError
        The footer is truncated.
    """
    leaves = [_Leaf.of(schema.column(index)) for index in range(len(schema))]
    at = number = 0
    while head := footer[at]:
        number, at = (number + (head >> 4), at + 1) if head > 15 else _read_number(footer, at + 1, number)
        kind = head & 15
        if number >= len(_FILE):
            _check_unknown(number)
        elif kind != _FILE[number]:
            _refuse_type("the footer", number)
        if number != _ROW_GROUPS:
            at = _skip(footer, at, kind, _FILE_LISTS.get(number))
            continue
        count, at = _read_list(footer, at, STRUCT)
        for _ in range(count):
            at = _check_group(footer, at, leaves)


@frozen
class _Leaf:
    """What the schema states of a leaf column.

    `width` has the bytes of a bound, None for strings. `repetitions` and `definitions` have the numbers of levels.
    """

    physical: int
    width: int | None
    repetitions: int
    definitions: int

    @classmethod
    def of(cls, column: pq.ColumnSchema) -> _Leaf:
        """Return what a schema states of a column."""
        physical = _PHYSICAL[column.physical_type]
        width = _WIDTHS[physical] if physical < _BYTE_ARRAY else column.length if physical == _FIXED else None
        return cls(physical, width, column.max_repetition_level + 1, column.max_definition_level + 1)


def _check_group(data: bytes, at: int, leaves: list[_Leaf]) -> int:
    """Check a row group, and return the offset of its end, as all these functions do."""
    number = 0
    while head := data[at]:
        number, at = (number + (head >> 4), at + 1) if head > 15 else _read_number(data, at + 1, number)
        kind = head & 15
        if number >= len(_GROUP):
            _check_unknown(number)
        elif kind != _GROUP[number]:
            _refuse_type("a row group", number)
        if number != _COLUMNS:
            at = _skip(data, at, kind, _GROUP_LISTS.get(number))
            continue
        count, at = _read_list(data, at, STRUCT)
        if count != len(leaves):
            raise ValueError(f"a row group has {count} column chunks, and the schema has {len(leaves)} columns")
        for leaf in leaves:
            at = _check_chunk(data, at, leaf)
    return at + 1


def _check_chunk(data: bytes, at: int, leaf: _Leaf) -> int:
    number, described = 0, False
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _read_number(data, at, number)
        kind = head & 15
        if number >= len(_CHUNK):
            _check_unknown(number)
        elif kind != _CHUNK[number]:
            _refuse_type("a column chunk", number)
        if kind == I64 or kind == I32:
            while data[at] > 127:
                at += 1
            at += 1
        elif number == _CHUNK_META:
            at, described = _check_meta(data, at, leaf), True
        elif number in (_CRYPTO, _ENCRYPTED):
            raise ValueError("a column chunk is encrypted")
        else:
            at = _skip(data, at, kind)
    if not described:
        raise ValueError("a column chunk has no metadata")
    return at + 1


def _check_meta(data: bytes, at: int, leaf: _Leaf) -> int:
    """Check the metadata of a column chunk; Arrow has found the members that are required."""
    number = 0
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _read_number(data, at, number)
        kind = head & 15
        if number >= len(_META):
            _check_unknown(number)
        elif kind != _META[number]:
            _refuse_type("the metadata of a column chunk", number)
        if kind == I64:
            while data[at] > 127:
                at += 1
            at += 1
        elif number == _TYPE:
            if data[at] != leaf.physical << 1:
                raise ValueError("a column chunk has another physical type than the schema")
            at += 1
        elif number == _CODEC:
            if data[at] & 1 or data[at] >= _CODECS << 1:
                raise ValueError("a column chunk is compressed with a codec that does not exist")
            at += 1
        elif number == _META_STATISTICS:
            at = _check_statistics(data, at, leaf.width)
        elif number == _SIZE_STATISTICS:
            at = _check_sizes(data, at, leaf)
        elif number == _GEOSPATIAL_STATISTICS:
            at = _skip_struct(data, at, _GEOSPATIAL_LISTS)
        else:
            at = _skip(data, at, kind, _META_LISTS.get(number))
    return at + 1


def _check_statistics(data: bytes, at: int, width: int | None) -> int:
    """Check the lengths of bounds."""
    number = 0
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _read_number(data, at, number)
        kind = head & 15
        if number >= len(_STATISTICS):
            _check_unknown(number)
        elif kind != _STATISTICS[number] and not (kind == FALSE and _STATISTICS[number] == TRUE):
            _refuse_type("statistics", number)
        if kind == BINARY:
            size = data[at]
            at += 1
            if size > 127:
                size, at = _read_varint(data, at - 1)
            if width is not None and size != width and number < len(_STATISTICS):
                raise ValueError(f"the statistics of a column of {width} bytes a value have a bound of {size} bytes")
            at += size
        elif kind == I64:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind > FALSE:
            at = _skip(data, at, kind)
    return at + 1


def _check_sizes(data: bytes, at: int, leaf: _Leaf) -> int:
    """Check that there is one number for each level, and the bytes of strings only for strings."""
    number = 0
    while head := data[at]:
        number, at = (number + (head >> 4), at + 1) if head > 15 else _read_number(data, at + 1, number)
        kind = head & 15
        if number >= len(_SIZES):
            _check_unknown(number)
            at = _skip(data, at, kind)
            continue
        if kind != _SIZES[number]:
            _refuse_type("size statistics", number)
        if number == _UNENCODED_BYTES:
            if leaf.physical != _BYTE_ARRAY:
                raise ValueError("size statistics state the bytes of strings for a column of another type")
            at = _skip_numbers(data, at, 1)
            continue
        levels = leaf.repetitions if number == _REPETITIONS else leaf.definitions
        count, at = _read_list(data, at, I64)
        if count and count != levels:
            raise ValueError(f"size statistics have {count} numbers for {levels} levels")
        at = _skip_numbers(data, at, count)
    return at + 1


def _skip(data: bytes, at: int, kind: int, elements: int | None = None) -> int:
    """Return the offset of the end of a value of any wire type; `elements` is the one that a list must have."""
    if kind == I64 or kind == I32 or kind == I16:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == BINARY:
        size, at = _read_varint(data, at)
        return at + size
    if kind == STRUCT:
        return _skip_struct(data, at)
    if kind == LIST or kind == SET:
        return _skip_list(data, at, elements)
    if kind == TRUE or kind == FALSE:
        return at
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    raise ValueError(f"the footer has the wire type {kind}")


def _skip_struct(data: bytes, at: int, lists: Mapping[int, int] = _NO_LISTS) -> int:
    """Skip the members of a struct. Arrow has limited the nesting."""
    number = 0
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _read_number(data, at, number)
        kind = head & 15
        if kind == I32 or kind == I64:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind == BINARY and data[at] < 128:
            at += data[at] + 1
        else:
            at = _skip(data, at, kind, lists.get(number))
    if number > _MOST_NUMBER:
        _check_unknown(number)
    return at + 1


def _skip_list(data: bytes, at: int, elements: int | None) -> int:
    kind = data[at] & 15
    count, at = _read_list(data, at, kind if elements is None else elements)
    if kind == STRUCT:
        for _ in range(count):
            at = _skip_struct(data, at)
        return at
    if kind == I32 or kind == I64 or kind == I16:
        return _skip_numbers(data, at, count)
    if kind == TRUE or kind == FALSE:
        return at + count
    for _ in range(count):
        at = _skip(data, at, kind)
    return at


def _skip_numbers(data: bytes, at: int, count: int) -> int:
    for _ in range(count):
        while data[at] > 127:
            at += 1
        at += 1
    return at


def _read_list(data: bytes, at: int, kind: int) -> tuple[int, int]:
    """Return the length of a list and the offset of its first element."""
    head = data[at]
    if head & 15 != kind:
        raise ValueError(f"the footer has a list of the wire type {head & 15} instead of {kind}")
    return _read_varint(data, at + 1) if head > 239 else (head >> 4, at + 1)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def _read_number(data: bytes, at: int, last: int) -> tuple[int, int]:
    """Read the number of a member that is stored as a whole; it must be larger than the last one."""
    value, at = _read_varint(data, at)
    number = (value >> 1) ^ -(value & 1)
    if number <= last:
        raise ValueError(f"member {number} follows member {last}")
    return number, at


def _check_unknown(number: int) -> None:
    """Refuse a number of a member that has more than 15 bits, which Arrow would truncate."""
    if number > _MOST_NUMBER:
        raise ValueError(f"member {number} cannot exist")


def _refuse_type(name: str, number: int) -> NoReturn:
    raise ValueError(f"member {number} of {name} has another wire type than Parquet defines")
