"""What the pages of a column chunk decompress to, told by their own headers.

Law: the headers are those that Arrow will obey, found as it finds them: from the chunk's first offset, page after page,
until the values that the footer tells are there or the chunk ends. Nothing is decompressed. Footers may lie about
sizes; headers cannot, because a page that decompresses to another size than its header tells is refused by Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from paimon.adapters.formats.parquet.reading.stored import Stored
from paimon.adapters.formats.parquet.thrift import ThriftStruct, decode_sized

_ReadAt = Callable[[int, int], bytes]

_WINDOW = 64
"""A header without statistics is shorter."""
_LONGEST_HEADER = 16 * 1024 * 1024
"""As Arrow has it."""
_NUMBER = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_MORE = rb"\x15[\x80-\xff]{0,4}[\x00-\x7f]"
_SIZES = rb"\x15" + _NUMBER + rb"\x15" + _NUMBER
_USUAL = re.compile(
    rb"\x15\x00" + _SIZES + rb"(?:" + _MORE + rb"\x1c|\x2c)" + _SIZES + rb"(?:" + _MORE + rb"){2}\x00\x00", re.DOTALL
)
"""A data page in compact Thrift as most writers make it, with or without a checksum; others are decoded by member."""
DICTIONARY_PAGE = 2
DATA_PAGES = {0: 5, 2: 7, 3: 8}
"""By kind of page, the member that holds its own header."""
_DATA_ENCODING = {0: 2, 2: 2, 3: 4}
_TOO_MUCH = 2**31
_FROM_DICTIONARY = (2, 8)
_DELTA_STRINGS = 7


@frozen
class DictionaryPage:
    """Where the packed bytes of a dictionary lie, what they decompress to, and how many values it has."""

    start: int
    packed: int
    size: int
    values: int


@frozen
class ChunkPages:
    """The pages of one chunk.

    Parameters
    ----------
    largest : int
        Bytes of the data page that decompresses to most.
    densest : float
        Most bytes a value of a page whose values stand in it one by one.
    repeating : int
        Bytes of the largest page whose values may hold what was written once: each value may be as large as the page.
    values : int
        Values of all pages.
    """

    largest: int
    densest: float
    repeating: int
    values: int
    dictionary: DictionaryPage | None


def chunk_pages(stored: Stored, start: int, end: int, values: int) -> ChunkPages:
    """The pages from an offset on, as far as so many values take; ValueError where they have no sound headers."""
    read_at, whole = stored.read_at, stored.whole
    at, seen, largest, densest, repeating = start, 0, 0, 0.0, 0
    dictionary: DictionaryPage | None = None
    while seen < values and at < end:
        found = _USUAL.match(read_at(_WINDOW, at)) if whole is None else _USUAL.match(whole, at)
        if found is None:
            kind, size, packed, count, encoding, length = _unusual(read_at, at)
        else:
            size, packed, count, encoding = map(_number, found.groups())
            kind, length = 0, found.end() if whole is None else found.end() - at
        if not (0 <= size < _TOO_MUCH and 0 <= packed < _TOO_MUCH and 0 <= count < _TOO_MUCH):
            raise ValueError(f"the page at {at} has sizes that cannot be")
        at += length
        if kind == DICTIONARY_PAGE:
            if count > size:
                raise ValueError(f"a dictionary of {count} values has {size} bytes")
            dictionary = DictionaryPage(at, packed, size, count)
        else:
            seen += count
            if size > largest:
                largest = size
            if encoding == _DELTA_STRINGS:
                repeating = max(repeating, size)
            elif encoding not in _FROM_DICTIONARY and size > densest * count and count:
                densest = size / count
        at += packed
    return ChunkPages(largest, densest, repeating, seen, dictionary)


@lru_cache(4096)
def _number(digits: bytes) -> int:
    value = shift = 0
    for byte in digits:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value >> 1 ^ -(value & 1)


def header_at(read_at: _ReadAt, at: int) -> tuple[ThriftStruct, int]:
    """The header of the page at an offset, and its length; ValueError where there is none."""
    window = _WINDOW * 4
    while True:
        data = read_at(window, at)
        try:
            return decode_sized(data)
        except IndexError:
            if len(data) < window or window >= _LONGEST_HEADER:
                raise ValueError(f"the page at {at} has no header") from None
            window *= 16


def _unusual(read_at: _ReadAt, at: int) -> tuple[int, int, int, int, int, int]:
    header, length = header_at(read_at, at)
    kind, size, packed = (integer(header, number) for number in (1, 2, 3))
    inner = header.get(DATA_PAGES.get(kind, 0))
    if not isinstance(inner, ThriftStruct):
        return kind, size, packed, 0, 0, length
    return kind, size, packed, integer(inner, 1), integer(inner, _DATA_ENCODING[kind]), length


def integer(struct: ThriftStruct, number: int) -> int:
    """A number of a header; ValueError where it has none."""
    value = struct.get(number)
    if not isinstance(value, int):
        raise ValueError(f"a page's header has no member {number}")
    return value
