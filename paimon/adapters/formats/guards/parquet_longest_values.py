"""Find the longest string of a Parquet dictionary, and the number of values of the longest row of a list column.

Both are read from the pages, because a batch may hold the longest string once per row, and a row all values of a list.

Invariant: the dictionary page becomes the data page of a small Parquet file with one column, which Arrow decodes, so
the lengths are those that Arrow finds, not those that a page states. The time for the longest row is in proportion to
the number of runs of repetition levels, not of values, and more than `_MOST_RUNS` runs are refused.
Source: Parquet format, "Data Pages" (repetition levels) and "Run Length Encoding / Bit-Packing Hybrid".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import define

from paimon.adapters.formats.guards.parquet_pages import (
    DATA_PAGES,
    DICTIONARY_PAGE,
    MAGIC,
    DictionaryPage,
    Stored,
    header_number,
    read_page_header,
)
from paimon.adapters.formats.thrift import BINARY, I32, I64, LIST, STRUCT, ByteReader, ThriftList, ThriftStruct, encode
from paimon.domain.types.arrow_arrays import to_numpy

_BYTE_ARRAY, _REQUIRED, _DATA_PAGE, _PLAIN, _RLE_ENCODING = 6, 0, 0, 0, 3
_KNOWN_CODECS = (0, 1, 2, 4, 5, 6, 7)
"""The codecs that Arrow reads. For any other number, pyarrow ends the process when it looks up the name."""
_ROW_GROUPS_MEMBER, _COLUMNS, _META, _CODEC = 4, 1, 3, 4
_LENGTH_BYTES = 4
"""The length before each string."""


def measure_longest_values(stored: Stored, dictionaries: Sequence[DictionaryPage], codec: int) -> list[int]:
    """Return the length of the longest string of each dictionary, 0 for an empty one; all have one codec."""
    if any(d.values * _LENGTH_BYTES > d.size for d in dictionaries):
        raise ValueError("a dictionary has more strings than bytes for their lengths")
    held = [d for d in dictionaries if d.values]
    if not held:
        return [0] * len(dictionaries)
    column = pq.ParquetFile(pa.BufferReader(_build_file(stored, held, codec))).read().column(0)
    lengths = np.concatenate([to_numpy(pc.binary_length(piece)) for piece in column.chunks])
    starts = np.cumsum([0] + [d.values for d in held[:-1]])
    longest = iter(np.maximum.reduceat(lengths, starts).tolist())
    return [next(longest) if d.values else 0 for d in dictionaries]


def read_codec(stored: Stored, group: int, column: int) -> int:
    """Return the number of the codec of a leaf column in a row group, as stored in the footer."""
    try:
        number = stored.footer.get(_ROW_GROUPS_MEMBER).values[group].get(_COLUMNS).values[column].get(_META).get(_CODEC)
    except (AttributeError, IndexError) as error:
        raise ValueError(f"the footer has no codec for column {column}") from error
    if number not in _KNOWN_CODECS:
        raise ValueError(f"column {column} is compressed with codec {number}, which is not supported")
    return int(number)


def _build_file(stored: Stored, dictionaries: Sequence[DictionaryPage], codec: int) -> bytes:
    """Return a Parquet file whose only column holds the values of the dictionaries."""
    pages = b"".join(_data_page_header(d) + stored.read_at(d.packed, d.start) for d in dictionaries)
    values, size = sum(d.values for d in dictionaries), sum(d.size for d in dictionaries)
    meta = _struct(
        {
            1: (I32, _BYTE_ARRAY),
            2: (LIST, ThriftList(I32, [_PLAIN])),
            3: (LIST, ThriftList(BINARY, [b"v"])),
            4: (I32, codec),
            5: (I64, values),
            6: (I64, size),
            7: (I64, len(pages)),
            9: (I64, len(MAGIC)),
        }
    )
    chunk = _struct({2: (I64, len(MAGIC)), 3: (STRUCT, meta)})
    group = _struct({1: (LIST, ThriftList(STRUCT, [chunk])), 2: (I64, size), 3: (I64, values)})
    footer = encode(_file_metadata(group, values))
    return MAGIC + pages + footer + struct.pack("<I", len(footer)) + MAGIC


def _file_metadata(group: ThriftStruct, values: int) -> ThriftStruct:
    """Return the footer of a file with one row group and one required column of byte arrays."""
    root = _struct({4: (BINARY, b"r"), 5: (I32, 1)})
    leaf = _struct({1: (I32, _BYTE_ARRAY), 3: (I32, _REQUIRED), 4: (BINARY, b"v")})
    schema, groups = ThriftList(STRUCT, [root, leaf]), ThriftList(STRUCT, [group])
    return _struct({1: (I32, 1), 2: (LIST, schema), 3: (I64, values), 4: (LIST, groups)})


def _data_page_header(dictionary: DictionaryPage) -> bytes:
    inner = _struct({1: (I32, dictionary.values), 2: (I32, _PLAIN), 3: (I32, _RLE_ENCODING), 4: (I32, _RLE_ENCODING)})
    sizes = {1: (I32, _DATA_PAGE), 2: (I32, dictionary.size), 3: (I32, dictionary.packed)}
    return encode(_struct({**sizes, 5: (STRUCT, inner)}))


def _struct(members: dict[int, tuple[int, object]]) -> ThriftStruct:
    return ThriftStruct(dict(members))


# Find the largest number of values that one row of a Parquet list column has, from the repetition levels of its chunk.
#
# A repetition level of 0 begins a row. This check runs only for chunks whose lists together exceed
# the limit of pages plus 100 times the stored bytes.


_CODEC_NAMES = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_DATA_PAGE_V2 = 3
"""Data pages of version 2, whose levels are not compressed and precede the values."""
_RLE = 3
_ENCODING_OF_LEVELS = 4
_REPETITION_BYTES = 6
_LEVELS_LENGTH_BYTES = 4
_MOST_RUNS = 4_000_000
_VALUES_PER_GROUP = 8
_SLICE_GROUPS = 1 << 16


def count_longest_row_values(stored: Stored, start: int, end: int, values: int, codec: int, highest: int) -> int:
    """Return the number of values of the longest row among the first `values` of a chunk.

    `start` and `end` are the offsets of the chunk, whose page headers were checked before. `highest` is the highest
    repetition level of the leaf. Levels that are damaged, or not encoded in runs, raise ValueError.
    """
    rows = _Rows()
    at = start
    while rows.values < values and at < end:
        header, length = read_page_header(stored.read_at, at)
        kind, size, packed = (header_number(header, number) for number in (1, 2, 3))
        at += length
        if kind != DICTIONARY_PAGE:
            inner = header.get(DATA_PAGES.get(kind, 0))
            if not isinstance(inner, ThriftStruct):
                raise ValueError(f"the page at {at} is not a data page")
            levels = _level_runs(stored.read_at(packed, at), kind, size, inner, codec)
            try:
                _read_runs(levels, highest.bit_length(), header_number(inner, 1), rows)
            except IndexError as error:
                raise ValueError("repetition levels end in the middle of a run") from error
        at += packed
    return rows.longest


@define
class _Rows:
    """The rows seen so far. A row may continue on the next page."""

    values: int = 0
    longest: int = 0
    current: int = 0
    runs: int = 0

    def add_values(self, count: int) -> None:
        """Add values to the current row."""
        self.current += count
        self.longest = max(self.longest, self.current)

    def begin_rows(self, count: int) -> None:
        """Begin `count` rows of one value each; the last one may continue."""
        if count:
            self.current = 0
            self.add_values(1)


def _level_runs(page: bytes, kind: int, size: int, inner: ThriftStruct, codec: int) -> bytes:
    """Return the runs of the repetition levels of a page."""
    if kind == _DATA_PAGE_V2:
        return page[: header_number(inner, _REPETITION_BYTES)]
    if header_number(inner, _ENCODING_OF_LEVELS) != _RLE:
        raise ValueError("lists have too many elements, and their levels are not encoded in runs")
    if codec:
        if codec not in _CODEC_NAMES:
            raise ValueError("lists have too many elements, and are compressed with LZ4 in Hadoop's frames")
        page = pa.decompress(page, size, codec=_CODEC_NAMES[codec], asbytes=True)
    length = int.from_bytes(page[:_LEVELS_LENGTH_BYTES], "little")
    return page[_LEVELS_LENGTH_BYTES : _LEVELS_LENGTH_BYTES + length]


def _read_runs(levels: bytes, width: int, count: int, rows: _Rows) -> None:
    """Read the runs of `count` levels."""
    source, left = ByteReader(levels), count
    while left > 0:
        head = source.read_varint()
        rows.runs += 1
        count_in_run = min(left, (head >> 1) * (_VALUES_PER_GROUP if head & 1 else 1))
        if count_in_run <= 0 or rows.runs > _MOST_RUNS:
            raise ValueError("lists have too many elements, and the runs of their levels are damaged or too many")
        if head & 1:
            _read_packed_run(source.read_bytes((head >> 1) * width), width, count_in_run, rows)
        else:
            (rows.add_values if any(source.read_bytes((width + 7) // 8)) else rows.begin_rows)(count_in_run)
        left -= count_in_run
    rows.values += count


def _read_packed_run(packed: bytes, width: int, count: int, rows: _Rows) -> None:
    """Read a run of `count` bit-packed levels."""
    step = _SLICE_GROUPS * width
    for start in range(0, -(-count // _VALUES_PER_GROUP) * width, step):
        bits = np.unpackbits(np.frombuffer(packed[start : start + step], np.uint8), bitorder="little")
        sliced = min(count, _SLICE_GROUPS * _VALUES_PER_GROUP)
        continues = np.any(bits.reshape(-1, width), axis=1)[:sliced]
        begins = np.flatnonzero(np.logical_not(continues))
        if len(begins):
            rows.add_values(int(begins[0]))
            rows.longest = max(rows.longest, int(np.diff(begins).max(initial=0)))
            rows.begin_rows(1)
            rows.add_values(sliced - int(begins[-1]) - 1)
        else:
            rows.add_values(sliced)
        count -= sliced
