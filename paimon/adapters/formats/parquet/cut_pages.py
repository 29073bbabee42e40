"""Cut the pages of a few rows out of a Parquet file, as a small file in memory.

Invariant: the rows of the small file are rows of the file, in the same columns. Where the page index is missing or
contradicts the pages, nothing is cut, and the row group is decoded from its beginning.
Source: Parquet format, "Page Index".
"""

# Arrow decodes a row group from its first page, and offers no way to begin at another one. The row of a lookup is
# behind half of the rows of its row group on average, which are decoded in vain. The offset index of a column chunk
# says where each page is, and with which row it begins:
#
#     column id      page at 1053, row 0      page at 9400, row 20000      page at 17800, row 40000
#     column note    page at 30100, row 0     page at 81000, row 16000     page at 139000, row 33000
#
# For the rows 20500 to 20503, the second page of each column is enough. These pages, behind the dictionary of the
# column if it has one, are copied to a new file with a footer that describes them:
#
#     PAR1  [page of id]  [page of note]  footer: schema, row group 0 of rows 20000 to 40000 (id),
#                                                         row group 1 of rows 16000 to 33000 (note)  PAR1
#
# Several distant rows are the same: pages that lie between them are left out of the copy.
#
# It is a file like any other, so all checks of Arrow and of `guards` hold for it. Columns whose pages begin and end
# with the same rows share a row group. Most writers end a page after 20,000 rows, so narrow columns do; columns of long
# texts have their own. Each row group describes all columns, but only its own are read.
#
# Columns with lists have more values than rows, and no index says how many a page has, so they are not cut.

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.formats.guards.parquet_pages import MAGIC, Stored, read_chunk_pages
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.adapters.formats.thrift import STRUCT, ThriftList, ThriftStruct, decode, decode_head, encode
from paimon.adapters.formats.varints import encode_varint, encode_zigzag

_GROUPS, _COLUMNS, _CHUNK_META, _INDEX_OFFSET, _INDEX_LENGTH = 4, 1, 3, 4, 5
_LOCATIONS, _LOCATION_OFFSET, _LOCATION_SIZE, _LOCATION_ROW = 1, 1, 2, 3
_GROUP_ROWS, _SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 7, 9, 11
_FILE_MEMBERS, _CHUNK_MEMBERS = (1, 2), (1, 2, 3, 4)
"""Version and schema of a file; type, encodings, path and codec of a chunk."""
_MOST_CHUNKS = 1_024
"""The footer of a file with more column chunks is not decoded for this."""
_MOST_INDEX_BYTES = 1 << 20
_MOST_DESCRIBED_CHUNKS = 1 << 16
"""Each row group of a small file describes all columns. Files with more descriptions take longer than they save."""
_Pairs = tuple[tuple[int, int], ...]
# How members of a struct begin in Thrift: the distance from the number of the member before, and the wire type.
_NEXT_NUMBER, _SECOND_NUMBER, _NEXT_LIST, _NEXT_STRUCT, _END = b"\x16", b"\x26", b"\x19", b"\x1c", b"\x00"


@frozen(eq=False)
class _Pages:
    """The pages of one column chunk, without a gap between them."""

    # where the dictionary, or else the first page, begins
    begin: int
    # where each page begins, then where the last one ends
    offsets: npt.NDArray[np.int64]
    # the first row of each page, then the number of rows
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, index: ThriftStruct, chunk: _Chunk, group_rows: int) -> _Pages | None:
        """Return the pages of an offset index; None if it contradicts its chunk or itself."""
        listed = index.get(_LOCATIONS)
        members = (_LOCATION_OFFSET, _LOCATION_SIZE, _LOCATION_ROW)
        locations = [[page.get(m) for m in members] for page in _list_structs(listed)]
        if not locations or not all(isinstance(number, int) for row in locations for number in row):
            return None
        offsets, sizes, rows = np.array(locations, np.int64).T
        ends, next_rows = offsets + sizes, np.append(rows[1:], group_rows)
        is_sound = (
            offsets[0] == chunk.start
            and (sizes > 0).all()
            and (ends[:-1] == offsets[1:]).all()
            and ends[-1] == chunk.end
            and rows[0] == 0
            and (next_rows > rows).all()
        )
        return cls(chunk.begin, np.append(offsets, ends[-1]), np.append(rows, group_rows)) if is_sound else None


def _list_structs(found: object) -> list[ThriftStruct]:
    return [v for v in found.values if isinstance(v, ThriftStruct)] if isinstance(found, ThriftList) else []


@frozen
class _Chunk:
    """What the footer says about a column chunk."""

    # the encoded members before the number of values: type, encodings, path and codec
    head: bytes
    # where the dictionary, or else the first page, begins; where the first page begins; where the last one ends
    begin: int
    start: int
    end: int
    # where the offset index is, and its bytes; 0 if there is none
    index_offset: int
    index_bytes: int

    @classmethod
    def of(cls, chunk: ThriftStruct) -> _Chunk:
        """Return the description of a chunk in a checked footer."""
        meta = chunk.get(_CHUNK_META)
        start, dictionary = meta.get(_DATA_OFFSET), meta.get(_DICTIONARY_OFFSET)
        begin = dictionary if dictionary is not None and 0 < dictionary < start else start
        place = chunk.get(_INDEX_OFFSET) or 0, chunk.get(_INDEX_LENGTH) or 0
        return cls(_encode_members(meta, _CHUNK_MEMBERS), begin, start, begin + meta.get(_SIZE), *place)


@frozen(eq=False)
class PageIndex:
    """What a file says about its pages. The indexes of the chunks are read when they are asked for."""

    # the encoded members of the footer before its number of rows, and those behind its row groups
    head: bytes
    tail: bytes
    # the number of rows of each row group, and its chunks
    rows: tuple[int, ...]
    chunks: tuple[tuple[_Chunk, ...], ...]
    _pages: dict[tuple[int, int], _Pages | None] = field(factory=dict, init=False)

    @classmethod
    def of(cls, stored: Stored, chunk_count: int) -> PageIndex | None:
        """Decode the footer of a file whose footer is checked; None if it has very many column chunks."""
        if chunk_count > _MOST_CHUNKS:
            return None
        footer, tail = decode_head(stored.footer_bytes, _GROUPS)
        groups = footer.get(_GROUPS).values
        chunks = tuple(tuple(map(_Chunk.of, group.get(_COLUMNS).values)) for group in groups)
        rows = tuple(group.get(_GROUP_ROWS) for group in groups)
        return cls(_encode_members(footer, _FILE_MEMBERS), tail, rows, chunks)

    def find_pages(self, stored: Stored, group: int, leaves: Sequence[int]) -> dict[int, _Pages] | None:
        """Return the pages of some columns of a row group; None if they are not known of one."""
        missing = [leaf for leaf in leaves if (group, leaf) not in self._pages]
        if missing:
            self._pages.update(self._read_pages(stored, group, missing))
        found = {leaf: pages for leaf in leaves if (pages := self._pages[group, leaf]) is not None}
        return found if len(found) == len(leaves) else None

    def _read_pages(self, stored: Stored, group: int, leaves: Sequence[int]) -> dict[tuple[int, int], _Pages | None]:
        chunks = {leaf: self.chunks[group][leaf] for leaf in leaves}
        begin = min(chunk.index_offset for chunk in chunks.values())
        end = max(chunk.index_offset + chunk.index_bytes for chunk in chunks.values())
        has_all = begin > 0 and all(chunk.index_bytes > 0 for chunk in chunks.values())
        if not has_all or end > stored.source.size() or end - begin > _MOST_INDEX_BYTES:
            return dict.fromkeys((group, leaf) for leaf in leaves)
        data = bytes(stored.read_at(end - begin, begin))
        indexes = {leaf: _decode_index(data[c.index_offset - begin :][: c.index_bytes]) for leaf, c in chunks.items()}
        return {(group, leaf): _Pages.of(indexes[leaf], c, self.rows[group]) for leaf, c in chunks.items()}


def _decode_index(data: bytes) -> ThriftStruct:
    """Decode an offset index; it is empty if the bytes are damaged, because no row depends on them."""
    try:
        return decode(data)
    except (IndexError, ValueError):
        return ThriftStruct({})


def _encode_members(value: ThriftStruct, numbers: Sequence[int]) -> bytes:
    kept = {number: value.members[number] for number in numbers if number in value.members}
    return encode(ThriftStruct(kept))[:-1]


@frozen
class CutRows:
    """The rows of pages that are copied: ranges of the original row group, which follow each other in the copy."""

    ranges: _Pairs

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(end - start for start, end in self.ranges)

    @property
    def skipped(self) -> int:
        """How many rows before the last one are left out."""
        return self.ranges[-1][1] - self.count

    def find_in_copy(self, wanted: RowRanges) -> RowRanges:
        """Return where rows of the original row group are in the copy."""
        starts, ends = np.array(self.ranges, np.int64).T
        shifts = np.cumsum(ends - starts) - ends
        mine = shifts[np.searchsorted(starts, wanted.starts, "right") - 1]
        return RowRanges(wanted.starts + mine, wanted.ends + mine)


@frozen(eq=False)
class CutFile:
    """A small file in memory, whose row groups each have some of the columns."""

    data: pa.Buffer
    # of each row group: its leaf columns, and its rows
    groups: tuple[tuple[tuple[int, ...], CutRows], ...]


def cut_pages(
    index: PageIndex, stored: Stored, group: int, leaves: Sequence[int], wanted: RowRanges, most_bytes: int
) -> CutFile | None:
    """Copy the pages with the wanted rows of a row group, whose positions begin with 0 in it.

    `leaves` are columns without lists. None if the pages are not known, if these are the first ones, which Arrow finds,
    if they have more than `most_bytes`, or if too many columns differ in pages. Damaged page headers raise ValueError.
    """
    found = index.find_pages(stored, group, leaves)
    if found is None:
        return None
    cuts = {leaf: _Cut.of(pages, wanted) for leaf, pages in found.items()}
    leaves_out = any(cut.rows.skipped for cut in cuts.values())
    if len({cut.rows for cut in cuts.values()}) * len(index.chunks[group]) > _MOST_DESCRIBED_CHUNKS:
        return None
    if not leaves_out or sum(cut.byte_count for cut in cuts.values()) > most_bytes:
        return None
    if stored.ahead is not None:
        stored.ahead.load(r for cut in cuts.values() for r in cut.ranges)
    by_rows: dict[CutRows, list[int]] = {}
    places: dict[int, tuple[int, int]] = {}
    end = len(MAGIC)
    for leaf, cut in cuts.items():
        by_rows.setdefault(cut.rows, []).append(leaf)
        places[leaf] = end, end + cut.byte_count
        end += cut.byte_count
    heads = [chunk.head for chunk in index.chunks[group]]
    chunks = [_describe_chunk(head, places.get(leaf, (0, 0)), cuts.get(leaf)) for leaf, head in enumerate(heads)]
    footer = _describe_file(index, chunks, [rows.count for rows in by_rows])
    data = pa.allocate_buffer(end + len(footer) + 8)
    view = memoryview(data).cast("B")
    view[: len(MAGIC)] = MAGIC
    view[end:] = footer + struct.pack("<I", len(footer)) + MAGIC
    copied = Stored(pa.BufferReader(data))
    for leaf, cut in cuts.items():
        begin = at = places[leaf][0]
        counts = [0] * bool(cut.dictionary_bytes) + [last - first for first, last in cut.rows.ranges]
        for (low, high), count in zip(cut.ranges, counts, strict=True):
            view[at : at + high - low] = stored.read_at(high - low, low)
            at += high - low
            if count and read_chunk_pages(copied, begin, at, count).values != count:
                return None
            begin = at if count else begin
    return CutFile(data, tuple((tuple(mine), rows) for rows, mine in by_rows.items()))


@frozen
class _Cut:
    """The pages that are copied of one column."""

    # offsets of bytes in the file: the dictionary if there is one, then the pages
    ranges: tuple[tuple[int, int], ...]
    dictionary_bytes: int
    rows: CutRows

    @property
    def byte_count(self) -> int:
        """How many bytes are copied."""
        return sum(high - low for low, high in self.ranges)

    @classmethod
    def of(cls, pages: _Pages, wanted: RowRanges) -> _Cut:
        """Return the cut for ranges of rows."""
        low = np.searchsorted(pages.rows, wanted.starts, "right") - 1
        high = np.searchsorted(pages.rows, wanted.ends)
        is_apart = low[1:] > high[:-1]
        low, high = low[np.append(True, is_apart)], high[np.append(is_apart, True)]
        begin, first = pages.begin, int(pages.offsets[0])
        ranges = _to_pairs(pages.offsets, low, high)
        return cls(
            ((begin, first), *ranges) if first > begin else ranges,
            first - begin,
            CutRows(_to_pairs(pages.rows, low, high)),
        )


def _to_pairs(numbers: npt.NDArray[np.int64], low: npt.NDArray[Any], high: npt.NDArray[Any]) -> _Pairs:
    return tuple(zip(numbers[low].tolist(), numbers[high].tolist(), strict=True))


def _describe_chunk(head: bytes, place: tuple[int, int], cut: _Cut | None) -> bytes:
    """Encode a column chunk between two offsets."""
    begin, end = place
    values, dictionary_bytes = (0, 0) if cut is None else (cut.rows.count, cut.dictionary_bytes)
    size = _NEXT_NUMBER + encode_zigzag(end - begin)
    page = _SECOND_NUMBER + encode_zigzag(begin + dictionary_bytes)
    dictionary = _SECOND_NUMBER + encode_zigzag(begin) if dictionary_bytes else b""
    meta = head + _NEXT_NUMBER + encode_zigzag(values) + size + size + page + dictionary
    return _SECOND_NUMBER + encode_zigzag(0) + _NEXT_STRUCT + meta + _END + _END


def _describe_file(index: PageIndex, chunks: Sequence[bytes], row_counts: Sequence[int]) -> bytes:
    """Encode a footer whose row groups have the same chunks, but other numbers of rows."""
    columns = _NEXT_LIST + _begin_list(len(chunks)) + b"".join(chunks) + _NEXT_NUMBER + encode_zigzag(0)
    groups = b"".join(columns + _NEXT_NUMBER + encode_zigzag(rows) + _END for rows in row_counts)
    rows = _NEXT_NUMBER + encode_zigzag(sum(row_counts))
    return index.head + rows + _NEXT_LIST + _begin_list(len(row_counts)) + groups + index.tail


def _begin_list(count: int) -> bytes:
    """Encode how many structs a list has."""
    return bytes([count << 4 | STRUCT]) if count < 15 else bytes([240 | STRUCT]) + encode_varint(count)
