"""How much memory a piece of a Parquet file may take: whether it is read at all, and in batches of how many rows.

Law: pages that decompress to more than a limit and a multiple of the packed bytes are refused before they are
decompressed, and so is a row whose list unfolds to more; a batch has no more rows than fit into the limit, however long
the strings are that a dictionary may repeat. Sound files meet none of these: their pages have about a megabyte, their
values some bytes. Source: our own rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq
from attrs import evolve, frozen

from paimon.adapters.formats.parquet.reading.dictionaries import longest_values, stored_codec
from paimon.adapters.formats.parquet.reading.levels import most_values
from paimon.adapters.formats.parquet.reading.pages import ChunkPages, DictionaryPage, chunk_pages
from paimon.adapters.formats.parquet.reading.row_groups import GroupRange
from paimon.adapters.formats.parquet.reading.stored import Stored

MOST_BYTES = 512 * 1024 * 1024
_BATCH_SHARE = 4
"""Two batches are in memory at once, the one handed out and the one being made, and what grows is copied."""
_RATIO = 100
_FREE_BYTES = 4 * 1024 * 1024
"""What the pages of each column may take besides."""
_TEXT = "BYTE_ARRAY"
_OFFSET_BYTES = 4
"""Of each string, however short."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


@frozen
class Leaf:
    """A leaf column that is read, how deep it lies in lists, and its values' bytes: strings have no width."""

    index: int
    levels: int
    width: int | None

    @property
    def flat(self) -> bool:
        """Whether a row has one value."""
        return self.levels == 0

    @classmethod
    def of(cls, schema: pq.ParquetSchema, index: int) -> Leaf:
        """The leaf column at a position."""
        column = schema.column(index)
        kind = column.physical_type
        width = None if kind == _TEXT else _WIDTHS.get(kind) or column.length
        return cls(index, column.max_repetition_level, width)


@frozen
class _Chunk:
    """A leaf of a row group: what its headers say, and how many values a row has of it.

    On an average of many, or, where all of them would be too many, at most.
    """

    leaf: Leaf
    pages: ChunkPages
    packed: int
    group: int
    repeat: float

    @property
    def held(self) -> int:
        """Bytes of pages that are in memory at once."""
        dictionary = self.pages.dictionary
        return self.pages.largest + (0 if dictionary is None else dictionary.size)

    def row_bytes(self, longest: int | None = None) -> float:
        """Most bytes of a row; without a look into the dictionary one string may be all of it."""
        if self.leaf.width is not None:
            return self.repeat * self.leaf.width
        dictionary = self.pages.dictionary
        repeated = longest if longest is not None else 0 if dictionary is None else dictionary.size
        return self.repeat * max(self.pages.densest, self.pages.repeating, repeated)


def fitting_rows(
    footer: pq.FileMetaData,
    stored: Stored,
    piece: GroupRange,
    leaves: Sequence[Leaf],
    batch_rows: int,
    most_bytes: int,
) -> int:
    """How many rows a batch of a piece may have: `batch_rows`, or fewer where these might not fit.

    Parameters
    ----------
    most_bytes : int
        What pages may take; a batch may take a quarter of it.

    Raises
    ------
    ValueError
        Pages whose headers cannot be, or that take more than is allowed.
    """
    if stored.ahead is not None:
        groups = [footer.row_group(group) for group in piece.groups]
        stored.ahead.load(_range(group.column(leaf.index)) for group in groups for leaf in leaves)
    fitting, batch_bytes = batch_rows, most_bytes // _BATCH_SHARE
    left = piece.skip + piece.count
    for number in piece.groups:
        group = footer.row_group(number)
        rows = min(left, group.num_rows)
        left -= rows
        chunks = [_chunk(stored, group, number, leaf, rows) for leaf in leaves]
        _check_pages(chunks, most_bytes)
        chunks = [_check_lists(stored, group, c, most_bytes) for c in chunks]
        row_bytes = sum(c.row_bytes() for c in chunks)
        if row_bytes * min(fitting, rows) > batch_bytes:
            row_bytes = _looked_up(chunks, stored)
            fitting = max(1, min(fitting, int(batch_bytes / max(row_bytes, 1))))
    return fitting


def _chunk(stored: Stored, group: pq.RowGroupMetaData, number: int, leaf: Leaf, rows: int) -> _Chunk:
    meta = group.column(leaf.index)
    values = meta.num_values
    start, end = _range(meta)
    pages = chunk_pages(stored, start, end, min(rows, values) if leaf.flat else values)
    repeat = 1.0 if leaf.flat else max(1.0, pages.values / max(1, group.num_rows))
    return _Chunk(leaf, pages, end - start, number, repeat)


def _range(meta: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where Arrow reads a chunk."""
    start, dictionary = meta.data_page_offset, meta.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    return start, start + meta.total_compressed_size


def _check_pages(chunks: Sequence[_Chunk], most_bytes: int) -> None:
    held = sum(max(0, c.held - _FREE_BYTES) for c in chunks)
    if held <= most_bytes:
        return
    packed = sum(c.packed for c in chunks)
    if held > most_bytes + _RATIO * packed:
        raise ValueError(f"pages within {packed} bytes decompress to {held} bytes, more than they may")


def _check_lists(stored: Stored, group: pq.RowGroupMetaData, chunk: _Chunk, most_bytes: int) -> _Chunk:
    """The chunk, with the values of its longest row where all its rows unfold to more than they may."""
    leaf = chunk.leaf
    width = _OFFSET_BYTES if leaf.width is None else leaf.width
    allowed = most_bytes + _RATIO * chunk.packed
    if leaf.flat or chunk.pages.values * width <= allowed:
        return chunk
    meta = group.column(leaf.index)
    codec = stored_codec(stored, chunk.group, leaf.index)
    longest = most_values(stored, *_range(meta), meta.num_values, codec, leaf.levels)
    if longest * width > allowed:
        raise ValueError(f"a row of {longest} values within {chunk.packed} bytes unfolds to more than it may")
    return evolve(chunk, repeat=float(max(1, longest)))


def _looked_up(chunks: Sequence[_Chunk], stored: Stored) -> float:
    """Most bytes of a row, given the longest string of each dictionary."""
    by_codec: dict[int, list[tuple[_Chunk, DictionaryPage]]] = {}
    total = 0.0
    for chunk in chunks:
        dictionary = chunk.pages.dictionary
        if dictionary is None or chunk.leaf.width is not None:
            total += chunk.row_bytes()
        else:
            codec = stored_codec(stored, chunk.group, chunk.leaf.index)
            by_codec.setdefault(codec, []).append((chunk, dictionary))
    for codec, held in by_codec.items():
        longest = longest_values(stored, [dictionary for _, dictionary in held], codec)
        total += sum(chunk.row_bytes(most) for (chunk, _), most in zip(held, longest, strict=True))
    return total
