"""Find out from the page headers to how many bytes the pages of a column chunk decompress. Nothing is decompressed.

`Stored` has the bytes of the file, for the guards and for the reader.

Invariant: the headers are those that Arrow obeys, found as Arrow finds them: from the chunk's first offset, page after
page, until the values that the footer states are reached or the chunk ends. Sizes in footers may be wrong. Sizes in
headers cannot: Arrow refuses a page that decompresses to another size than its header states.
Source: Parquet format, "Data Pages".
"""

# A footer says how many values a column chunk has and how large they are, and the writer of the file chose these
# numbers. Arrow sizes its buffers by the header of each page instead, and refuses a page that decompresses to another
# size. So a guard that reads the headers knows what Arrow will need before a byte is decompressed. A chunk with a
# dictionary, at the offsets 4 to 220:
#
#     offset               4         23                87        109            169       188            220
#                          [header]  [dictionary page]  [header]  [data page]    [header]  [data page]
#     kind                 2                            0                        0
#     stored bytes         64                           60                       32
#     decompressed bytes   120                          4 000 000                900
#     values               10                           500 000                  200
#
# Nothing says where a header ends: it is Thrift, which is decoded member by member. The page follows its header, and
# the next header follows the page, so one pass visits all headers and skips the pages. It ends with the 500 200 values
# of the footer, as Arrow ends there. Of the pages, `ChunkPages` keeps what limits memory:
#
#     largest      4 000 000, because Arrow holds one data page, and the dictionary next to it (`held`)
#     densest      bytes per value of a plain page; times the rows of a batch, this is the size of the batch
#     repeating    the largest page with shared prefixes, whose short bytes can repeat one long value
#     dictionary   where its bytes are: `parquet_batches` measures its longest string, which each row may repeat
#
# Decoding Thrift in Python takes longer than Arrow needs for a small page. But nearly all headers have one form, and
# differ only in numbers of variable length. The regular expression `_USUAL` reads it from the bytes:
#
#     15 00    15 80 a4 e8 03    15 78           2c         15 c0 84 3d   15 10      15 06 15 06     00 00
#     kind 0   4 000 000 bytes   60 are stored   the data   500 000       encoding   two encodings   both end
#                                                header     values        8          of levels
#
# A checksum comes before the data header, which then begins with 1c. All other headers are decoded as Thrift. Of
# remote files, ranges are fetched ahead: the guard and Arrow read the same bytes, with one request (`PrefetchedFile`).

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache

import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.thrift import ThriftStruct, decode, decode_sized
from paimon.adapters.formats.varints import decode_zigzag
from paimon.ports.files import RangeInput

# The bytes of a Parquet file as its reader and the guards take them: in place if local, fetched ahead if remote.
#
# Invariant: ranges that are close together are one request, and no byte is requested twice within a piece. The guards
# check the same bytes that Arrow decodes.


MAGIC = b"PAR1"
_HOLE_BYTES = 8 * 1024
_RANGE_BYTES = 32 * 1024 * 1024
"""The limit of Arrow's own prefetching."""
_END_BYTES = 8
"""The length of the footer and the magic bytes."""
_FOOTER_BYTES = 64 * 1024
"""How many bytes Arrow reads to find the footer."""


class PrefetchedFile(RangeInput):
    """A seekable file of which whole ranges are fetched before they are read."""

    def __init__(self, source: pa.NativeFile) -> None:
        super().__init__(source.size())
        self._source = source
        self._held: list[tuple[int, bytes]] = []

    def load(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges of (start, end) offsets, and release the ranges that were held before."""
        self._held = []
        within = ((max(0, start), min(end, self._size)) for start, end in ranges)
        for start, end in _join_ranges(sorted(r for r in within if r[0] < r[1])):
            self._held.append((start, self._source.read_at(end - start, start)))

    def read_at(self, size: int, start: int) -> bytes:
        """Return `size` bytes at the offset `start`; fewer only at the end of the file."""
        for begin, data in self._held:
            if begin <= start and start + size <= begin + len(data):
                return data[start - begin : start - begin + size]
        return bytes(self._source.read_at(size, start))


def _join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1] + _HOLE_BYTES and end - joined[-1][0] <= _RANGE_BYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Stored:
    """The bytes of a file for the guards: `whole` in memory or mapped, or ranges that `ahead` fetches."""

    def __init__(self, source: pa.NativeFile) -> None:
        is_local = isinstance(source, pa.MemoryMappedFile | pa.BufferReader | pa.OSFile)
        self.ahead = None if is_local else PrefetchedFile(source)
        self.source: pa.NativeFile = source if self.ahead is None else pa.PythonFile(self.ahead, mode="r")
        self.read_at = source.read_at if self.ahead is None else self.ahead.read_at

    @cached_property
    def whole(self) -> memoryview | None:
        """The bytes of a file that is in memory or mapped. The first use moves its position, so one thread makes it."""
        if not isinstance(self.source, pa.MemoryMappedFile | pa.BufferReader):
            return None
        self.source.seek(0)
        return memoryview(self.source.read_buffer())

    def fetch_footer(self) -> None:
        """Fetch the footer of a remote file, with no more requests than Arrow needs to open the file."""
        if self.ahead is None:
            return
        size = self.ahead.size()
        self.ahead.load([(size - _FOOTER_BYTES, size)])
        start = self._find_footer()[0]
        if 0 <= start < size - _FOOTER_BYTES:
            self.ahead.load([(start, size)])

    @cached_property
    def footer_bytes(self) -> bytes:
        """The footer as stored, of a file that Arrow has opened."""
        start, end = self._find_footer()
        return bytes(self.read_at(end - start, start))

    @cached_property
    def footer(self) -> ThriftStruct:
        """The decoded footer. It is decoded once, because a file may have thousands of row groups."""
        return decode(self.footer_bytes)

    def _find_footer(self) -> tuple[int, int]:
        """Return the offsets of the footer as the end of the file states them."""
        end = max(0, self.source.size() - _END_BYTES)
        length = int.from_bytes(bytes(self.read_at(_END_BYTES, end))[:4], "little")
        return end - length, end


_ReadAt = Callable[[int, int], bytes]
_WINDOW = 64
"""Headers without statistics are shorter."""
_LONGEST_HEADER = 16 * 1024 * 1024
"""Arrow's limit."""
_NUMBER = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_MORE = rb"\x15[\x80-\xff]{0,4}[\x00-\x7f]"
_SIZES = rb"\x15" + _NUMBER + rb"\x15" + _NUMBER
_USUAL = re.compile(
    rb"\x15\x00" + _SIZES + rb"(?:\x15" + _NUMBER + rb"\x1c|\x2c)" + _SIZES + rb"(?:" + _MORE + rb"){2}\x00\x00",
    re.DOTALL,
)
"""The header of a data page as most writers make it, with or without a checksum; others are decoded as Thrift."""
_USUAL_DICTIONARY = re.compile(
    rb"\x15\x04" + _SIZES + rb"(?:\x15" + _NUMBER + rb"\x3c|\x4c)\x15" + _NUMBER + _MORE + rb"[\x11\x12]?\x00\x00",
    re.DOTALL,
)
"""The same for a dictionary page."""
DICTIONARY_PAGE = 2
DATA_PAGES = {0: 5, 2: 7, 3: 8}
"""The number of the member with the specific header, by kind of page."""
_DATA_ENCODING = {0: 2, 2: 2, 3: 4}
_CHECKSUM = 4
_SIZE_LIMIT = 2**31
_FROM_DICTIONARY = (2, 8)
_DELTA_STRINGS = 7


@frozen
class DictionaryPage:
    """A dictionary page: offset and size of its compressed bytes, decompressed size, number of values."""

    start: int
    packed: int
    size: int
    values: int


@frozen
class ChunkPages:
    """The pages of one column chunk."""

    # decompressed bytes of the largest data page
    largest: int
    # most bytes per value of a page with a plain encoding
    densest: float
    # bytes of the largest page whose encoding shares prefixes: each value may be as large as the page
    repeating: int
    # number of values of all pages
    values: int
    dictionary: DictionaryPage | None

    @property
    def held(self) -> int:
        """Bytes of the decompressed pages that are in memory at the same time."""
        return self.largest + (0 if self.dictionary is None else self.dictionary.size)

    @property
    def code_count(self) -> int | None:
        """The number of values of the dictionary if each page has codes of it, otherwise None."""
        return None if self.densest or self.repeating or self.dictionary is None else self.dictionary.values


def read_chunk_pages(stored: Stored, start: int, end: int, values: int, checksums: bool = False) -> ChunkPages:
    """Read the page headers of a column chunk, until the pages have `values` values.

    With `checksums`, the bytes of each page that has a checksum are compared with it, for a decoder that does not. A
    damaged page or header, or sizes that cannot be, raise ValueError.
    """
    read_at, whole = stored.read_at, stored.whole
    at, seen, largest, densest, repeating = start, 0, 0, 0.0, 0
    dictionary: DictionaryPage | None = None
    while seen < values and at < end:
        head, begin = (read_at(_WINDOW, at), 0) if whole is None else (whole, at)
        header = _match_header(head, begin) or _decode_header(read_at, at)
        kind, size, packed, count, encoding, checksum, length = header
        if not (0 <= size < _SIZE_LIMIT and 0 <= packed < _SIZE_LIMIT and 0 <= count < _SIZE_LIMIT):
            raise ValueError(f"the page at {at} states sizes that cannot be")
        at += length
        if checksums and checksum is not None:
            _check_page(read_at(packed, at) if whole is None else whole[at : at + packed], checksum)
        if kind == DICTIONARY_PAGE:
            if count > size:
                raise ValueError(f"a dictionary of {count} values has {size} bytes")
            dictionary = DictionaryPage(at, packed, size, count)
        else:
            seen += count
            largest = max(largest, size)
            if encoding == _DELTA_STRINGS:
                repeating = max(repeating, size)
            elif encoding not in _FROM_DICTIONARY and size > densest * count and count:
                densest = size / count
        at += packed
    return ChunkPages(largest, densest, repeating, seen, dictionary)


_Header = tuple[int, int, int, int, int, int | None, int]
"""Kind, decompressed size, stored size, number of values, encoding, checksum and length of a header."""


def _match_header(data: bytes | memoryview, at: int) -> _Header | None:
    """Return a header that has a usual form, much faster than by decoding."""
    found = _USUAL.match(data, at)
    if found is not None:
        size, packed, count, encoding = map(_number, found.group(1, 2, 4, 5))
        return 0, size, packed, count, encoding, None if found[3] is None else _number(found[3]), found.end() - at
    found = _USUAL_DICTIONARY.match(data, at)
    if found is None:
        return None
    size, packed, count = map(_number, found.group(1, 2, 4))
    return DICTIONARY_PAGE, size, packed, count, 0, None if found[3] is None else _number(found[3]), found.end() - at


def _check_page(data: bytes | memoryview, checksum: int) -> None:
    """Compare the stored bytes of a page with its checksum, which Thrift has as a signed number."""
    if zlib.crc32(data) != checksum & 0xFFFFFFFF:
        raise ValueError("the checksum of a page does not match")


@lru_cache(4096)
def _number(digits: bytes) -> int:
    value = shift = 0
    for byte in digits:
        value |= (byte & 0x7F) << shift
        shift += 7
    return decode_zigzag(value)


def read_page_header(read_at: _ReadAt, at: int) -> tuple[ThriftStruct, int]:
    """Return the page header at an offset, and its length in bytes. ValueError if none ends within 16 MiB."""
    window = _WINDOW * 4
    while True:
        data = read_at(window, at)
        try:
            return decode_sized(data)
        except IndexError:
            if len(data) < window or window >= _LONGEST_HEADER:
                raise ValueError(f"the page at {at} has no header") from None
            window *= 16


def _decode_header(read_at: _ReadAt, at: int) -> _Header:
    header, length = read_page_header(read_at, at)
    kind, size, packed = (header_number(header, number) for number in (1, 2, 3))
    checksum = None if header.get(_CHECKSUM) is None else header_number(header, _CHECKSUM)
    inner = header.get(DATA_PAGES.get(kind, 0))
    if not isinstance(inner, ThriftStruct):
        return kind, size, packed, 0, 0, checksum, length
    return kind, size, packed, header_number(inner, 1), header_number(inner, _DATA_ENCODING[kind]), checksum, length


def header_number(struct: ThriftStruct, number: int) -> int:
    """Return the number in a member of a page header."""
    value = struct.get(number)
    if not isinstance(value, int):
        raise ValueError(f"a page header has no number in member {number}")
    return value
