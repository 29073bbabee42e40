"""Decide whether a piece of a Parquet file may be read, and with how many rows per batch.

Pages of sound files have about a megabyte and values of some bytes, so that these limits do not affect them.

Invariant: pages are refused before they are decompressed if their size exceeds a limit plus 100 times the stored
bytes. A row with a list that is too long is refused, too. A batch has no more rows than fit into the limit, even if
each row repeats the longest string of a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq
from attrs import define, evolve, field, frozen

from paimon.adapters.formats.guards.parquet_longest_values import (
    count_longest_row_values,
    measure_longest_values,
    read_codec,
)
from paimon.adapters.formats.guards.parquet_pages import ChunkPages, DictionaryPage, Stored, read_chunk_pages

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
