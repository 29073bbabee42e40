"""Decide whether a piece of a Parquet file may be read, and with how many rows per batch.

Pages of sound files have about a megabyte and values of some bytes, so that these limits do not affect them. The
longest string of a dictionary and the longest row of a list column are read from the pages, because a batch may hold
the string once per row, and a row all values of a list.

Invariant: pages are refused before they are decompressed if their size exceeds a limit plus 100 times the stored
bytes. A row with a list that is too long is refused, too. A batch has no more rows than fit into the limit, even if
each row repeats the longest string. Lengths of strings are those that Arrow finds: the dictionary page becomes the data
page of a small Parquet file. The time for the longest row is in proportion to the number of runs of repetition levels,
of which more than `_MOST_RUNS` are refused.
Source: Parquet format, "Data Pages" (repetition levels) and "Run Length Encoding / Bit-Packing Hybrid".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import define, evolve, field, frozen

from paimon.adapters.formats.guards.parquet_pages import (
    DATA_PAGES,
    DICTIONARY_PAGE,
    MAGIC,
    ChunkPages,
    DictionaryPage,
    Stored,
    header_number,
    read_chunk_pages,
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


MOST_BYTES = 512 * 1024 * 1024
BATCH_SHARE = 4
"""Two batches are in memory at once, the last one returned and the next one, and growing buffers are copied."""
_RATIO = 100
_FREE_BYTES = 4 * 1024 * 1024
"""What the pages of each column may take in addition."""
_ROWS_PER_CODE = 8
"""Each batch gets a copy of the dictionary, and has so many rows for each entry at least."""
_LEAST_GROUP_ROWS = 8_192
"""A batch of codes ends with its row group. Smaller ones, on average, cost more by batches than codes save."""
_MOST_ROWS = 2**31
_MOST_CODED_BYTES = 2**31 - 1
"""Texts that are made from codes have 32-bit offsets, and are not split."""
_TEXT = "BYTE_ARRAY"
_OFFSET_BYTES = 4
"""The offset of each string."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


@frozen
class GroupRange:
    """A range of rows in consecutive row groups."""

    groups: tuple[int, ...]
    # rows at the beginning of the first group that are left out
    skip: int
    # rows that are read after these
    count: int


@frozen
class Leaf:
    """A leaf column that is read."""

    # position among the leaf columns of the file
    index: int
    # highest repetition level, which is the number of lists around the leaf
    levels: int
    # bytes of a value; None for strings
    width: int | None

    @property
    def flat(self) -> bool:
        """Whether each row has one value."""
        return self.levels == 0

    @classmethod
    def of(cls, schema: pq.ParquetSchema, index: int) -> Leaf:
        """Return the leaf column at a position of the schema."""
        column = schema.column(index)
        kind = column.physical_type
        width = None if kind == _TEXT else _WIDTHS.get(kind) or column.length
        return cls(index, column.max_repetition_level, width)


@frozen
class _Chunk:
    """A leaf of a row group: page sizes, stored bytes, and values per row, of the longest row if large."""

    leaf: Leaf
    pages: ChunkPages
    packed: int
    group: int
    repeat: float

    @property
    def held(self) -> int:
        """Bytes of the decompressed pages that are in memory at the same time."""
        return self.pages.held

    def row_bytes(self, longest: int | None = None) -> float:
        """Return the most bytes of a row; with `longest` None, one string may be as long as the whole dictionary."""
        if self.leaf.width is not None:
            return self.repeat * self.leaf.width
        dictionary = self.pages.dictionary
        repeated = longest if longest is not None else 0 if dictionary is None else dictionary.size
        return self.repeat * max(self.pages.densest, self.pages.repeating, repeated)


@frozen
class BatchPlan:
    """How the batches of a piece are decoded."""

    # the most rows of a batch
    rows: int
    # the leaf columns of texts of which each page has codes of a dictionary, which is short compared with a batch
    coded: frozenset[int]


def plan_batches(
    footer: pq.FileMetaData,
    stored: Stored,
    piece: GroupRange,
    leaves: Sequence[Leaf],
    batch_rows: int,
    most_bytes: int,
    batch_bytes: int | None = None,
) -> BatchPlan:
    """Return how many rows a batch of a piece may have: `batch_rows`, or fewer if they might not fit, at least one.

    Pages may take `most_bytes` plus 100 times the stored bytes, a batch `batch_bytes`, by default a quarter of
    `most_bytes`. Fetches the bytes of a remote file ahead. Damaged page headers, and pages or rows that exceed the
    limits, raise ValueError.
    """
    if stored.ahead is not None:
        groups = [footer.row_group(group) for group in piece.groups]
        stored.ahead.load(_byte_range(group.column(leaf.index)) for group in groups for leaf in leaves)
    fitting, batch_bytes = batch_rows, batch_bytes or most_bytes // BATCH_SHARE
    left = piece.skip + piece.count
    most_codes = left // max(1, len(piece.groups)) // _ROWS_PER_CODE
    if len(piece.groups) > 1 and most_codes * _ROWS_PER_CODE < _LEAST_GROUP_ROWS:
        most_codes = 0
    batch_bytes = min(batch_bytes, _MOST_CODED_BYTES)
    longest = {leaf.index: 0 for leaf in leaves if leaf.flat and leaf.width is None}
    for number in piece.groups:
        group = footer.row_group(number)
        rows = min(left, group.num_rows)
        left -= rows
        chunks = [_measure_chunk(stored, group, number, leaf, rows) for leaf in leaves]
        _check_pages(chunks, most_bytes)
        chunks = [_check_lists(stored, group, c, most_bytes) for c in chunks]
        row_bytes = sum(c.row_bytes() for c in chunks)
        if row_bytes * min(fitting, rows) > batch_bytes:
            row_bytes = _row_bytes_by_dictionaries(chunks, stored)
            fitting = max(1, min(fitting, int(batch_bytes / max(row_bytes, 1))))
        for chunk in chunks:
            if chunk.leaf.index in longest:
                longest[chunk.leaf.index] = max(longest[chunk.leaf.index], chunk.pages.code_count or _MOST_ROWS)
    most_codes = min(most_codes, fitting // _ROWS_PER_CODE)
    return BatchPlan(fitting, frozenset(leaf for leaf, codes in longest.items() if codes <= most_codes))


@define
class PageBudget:
    """The pages of a row group that another decoder reads."""

    most_bytes: int
    _held: int = field(default=0, init=False)
    _packed: int = field(default=0, init=False)

    def add(self, pages: ChunkPages, packed: int) -> None:
        """Add the pages of one column with `packed` stored bytes. ValueError if the pages so far exceed the limits."""
        self._held += max(0, pages.held - _FREE_BYTES)
        self._packed += packed
        _check_held(self._held, self._packed, self.most_bytes)


def check_flat_chunk(stored: Stored, start: int, end: int, rows: int) -> ChunkPages:
    """Compare the pages of a flat chunk, between `start` and `end`, with their checksums and rows."""
    pages = read_chunk_pages(stored, start, end, rows, checksums=True)
    if pages.values != rows:
        raise ValueError(f"the pages of a column have {pages.values} values in {rows} rows")
    return pages


def _measure_chunk(stored: Stored, group: pq.RowGroupMetaData, number: int, leaf: Leaf, rows: int) -> _Chunk:
    meta = group.column(leaf.index)
    values = meta.num_values
    start, end = _byte_range(meta)
    pages = read_chunk_pages(stored, start, end, min(rows, values) if leaf.flat else values)
    repeat = 1.0 if leaf.flat else max(1.0, pages.values / max(1, group.num_rows))
    return _Chunk(leaf, pages, end - start, number, repeat)


def _byte_range(meta: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the offsets between which Arrow reads a chunk."""
    start, dictionary = meta.data_page_offset, meta.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    return start, start + meta.total_compressed_size


def _check_pages(chunks: Sequence[_Chunk], most_bytes: int) -> None:
    held = sum(max(0, c.held - _FREE_BYTES) for c in chunks)
    _check_held(held, sum(c.packed for c in chunks) if held > most_bytes else 0, most_bytes)


def _check_held(held: int, packed: int, most_bytes: int) -> None:
    if held > most_bytes + _RATIO * packed:
        raise ValueError(f"pages of {packed} stored bytes decompress to {held} bytes, more than the limit")


def _check_lists(stored: Stored, group: pq.RowGroupMetaData, chunk: _Chunk, most_bytes: int) -> _Chunk:
    """Return the chunk, with the values of its longest row if all its lists together exceed the limit."""
    leaf = chunk.leaf
    width = _OFFSET_BYTES if leaf.width is None else leaf.width
    allowed = most_bytes + _RATIO * chunk.packed
    if leaf.flat or chunk.pages.values * width <= allowed:
        return chunk
    meta = group.column(leaf.index)
    codec = read_codec(stored, chunk.group, leaf.index)
    longest = count_longest_row_values(stored, *_byte_range(meta), meta.num_values, codec, leaf.levels)
    if longest * width > allowed:
        raise ValueError(f"a row has {longest} values in a column of {chunk.packed} stored bytes, more than the limit")
    return evolve(chunk, repeat=float(max(1, longest)))


def _row_bytes_by_dictionaries(chunks: Sequence[_Chunk], stored: Stored) -> float:
    """Return the most bytes of a row, from the longest string of each dictionary."""
    by_codec: dict[int, list[tuple[_Chunk, DictionaryPage]]] = {}
    total = 0.0
    for chunk in chunks:
        dictionary = chunk.pages.dictionary
        if dictionary is None or chunk.leaf.width is not None:
            total += chunk.row_bytes()
        else:
            codec = read_codec(stored, chunk.group, chunk.leaf.index)
            by_codec.setdefault(codec, []).append((chunk, dictionary))
    for codec, held in by_codec.items():
        longest = measure_longest_values(stored, [dictionary for _, dictionary in held], codec)
        total += sum(chunk.row_bytes(most) for (chunk, _), most in zip(held, longest, strict=True))
    return total
