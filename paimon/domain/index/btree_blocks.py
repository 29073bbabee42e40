"""The blocks of a B-tree index file, its footer, and the metadata that its index manifest entry has.

Numbers are varints: 7 bits of a number in each byte, the lowest first; the high bit marks that another byte follows. A
column of byte strings is their bytes, one after the other, and the length of each.

Invariant: damage is a ValueError. Encoded bytes equal those of Java.
Source: `BlockWriter`, `BlockReader`, `BlockTrailer`, `BlockHandle`, `BTreeFileFooter`, `BTreeIndexMeta` and, of later
releases, `SortedIndexFileMeta`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

Bytes: TypeAlias = npt.NDArray[np.uint8]
Lengths: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64]
MOST_BYTES = 9
"""A varint of a number that is not negative has at most 63 bits."""
_LIMITS = np.array([1 << (7 * count) for count in range(1, MOST_BYTES)], np.int64)


def encode_varints(numbers: Numbers) -> tuple[Bytes, Lengths]:
    """Encode numbers, none of which is negative."""
    lengths: Lengths = (np.searchsorted(_LIMITS, numbers, side="right") + 1).astype(np.int64)
    starts = start_of_each(lengths)
    encoded = np.empty(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        more = np.where(lengths[longer] > place + 1, 0x80, 0)
        encoded[starts[longer] + place] = ((numbers[longer] >> (7 * place)) & 0x7F) | more
    return encoded, lengths


def decode_varints(data: Bytes) -> Numbers:
    """Decode all numbers of a byte string; raise ValueError if the last one is not complete."""
    ends = np.flatnonzero(data < 0x80)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        raise ValueError("a varint is not complete")
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - starts + 1
    if lengths.max(initial=0) > MOST_BYTES:
        raise ValueError("a varint has more than 63 bits")
    numbers = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        numbers[longer] |= (data[starts[longer] + place].astype(np.int64) & 0x7F) << (7 * place)
    return numbers


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts at a position, and the position after it; raise ValueError if it is not there."""
    number = 0
    for place in range(MOST_BYTES):
        if at + place >= len(data):
            break
        number |= (data[at + place] & 0x7F) << (7 * place)
        if data[at + place] < 0x80:
            return number, at + place + 1
    raise ValueError("a varint is not complete")


def start_of_each(lengths: Lengths) -> Lengths:
    """Return where each byte string starts."""
    starts = np.zeros(len(lengths), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return starts


def join_parts(parts: Sequence[tuple[Bytes, Lengths]]) -> tuple[Bytes, Lengths]:
    """Return the strings that consist of a string of each part, in the order of the parts."""
    total: Lengths = np.sum([lengths for _, lengths in parts], axis=0, dtype=np.int64)
    joined = np.empty(int(total.sum()), np.uint8)
    places = start_of_each(total)
    for data, lengths in parts:
        joined[list_places(places, lengths)] = data
        places = places + lengths
    return joined, total


def list_places(starts: Lengths, lengths: Lengths) -> Numbers:
    """Return the positions of several ranges of bytes, one range after the other."""
    places: Numbers = np.arange(int(lengths.sum())) + np.repeat(starts - start_of_each(lengths), lengths)
    return places


def sum_groups(lengths: Lengths, starts: Lengths) -> Lengths:
    """Return the sums of groups of lengths that follow each other; `starts` has the first place of each group."""
    sums: Lengths = np.add.reduceat(lengths, starts) if len(starts) else np.zeros(0, np.int64)
    return sums


# A file is a sorted string table (SST): blocks of entries sorted by key, the row ids of null, a block that names the
# blocks, and a footer of 52 bytes. Numbers are little endian, `v` are varints:
#
#     data block   entry ... | aligned: length of an entry (int)                            | 0 | trailer
#                            | otherwise: start of each entry (ints), their number (int)    | 1 |
#     entry        v key length, key, v value length, value
#     value        v count, v row id ...
#     null rows    a bitmap of 64-bit numbers, CRC-32
#     index block  a block whose entries have the last key of a block, and as value v its offset, v its length
#     footer       bloom filter: offset (long), length (int), entries (long); zeros if there is none
#                  index block, null rows: offset (long), length (int); zeros if there is none
#                  version (int), magic (int)
#     trailer      compression (byte), CRC-32 of the block and of this byte
#
# A block is aligned if all its entries have the same length. A compressed block starts with v its length before. Row
# ids are relative to the first row id of the range that the manifest entry names.


FOOTER_BYTES = 52
TRAILER_BYTES = 5
CRC_BYTES = 4
MAGIC = 0x50425449
VERSION = 1
_FOOTER = struct.Struct("<qiqqiqiiI")
_ALIGNED, _UNALIGNED = 0, 1
_PLAIN, _ZSTD, _LZ4 = 0, 1, 2
_LZ4_HEAD = struct.Struct("<ii")
_MOST_BLOCK_BYTES = 1 << 30
_FLAGS_VERSION = 1


@frozen
class Place:
    """Where a part of the file is."""

    offset: int
    length: int


@frozen
class Footer:
    """Where the index block and the row ids of null are."""

    index: Place
    nulls: Place | None

    def encode(self) -> bytes:
        """Return the last bytes of a file without a bloom filter."""
        nulls = self.nulls or Place(0, 0)
        return _FOOTER.pack(0, 0, 0, self.index.offset, self.index.length, nulls.offset, nulls.length, VERSION, MAGIC)


def decode_footer(data: bytes, file_size: int) -> Footer:
    """Return the footer of a file, by its last bytes."""
    if len(data) != FOOTER_BYTES:
        raise ValueError("it is shorter than its footer")
    *_, index_offset, index_length, null_offset, null_length, version, magic = _FOOTER.unpack(data)
    if magic != MAGIC or version != VERSION:
        raise ValueError(f"it has the magic number {magic:#x} and version {version}")
    index, nulls = Place(index_offset, index_length), Place(null_offset, null_length)
    for place in (index, nulls):
        if place.offset < 0 or place.length < 0 or place.offset + place.length > file_size:
            raise ValueError("its footer names a part outside the file")
    return Footer(index, nulls if nulls.length else None)


def encode_block(entries: bytes, lengths: npt.NDArray[np.int64]) -> bytes:
    """Return a block of entries, given one after the other, with its trailer."""
    if len(lengths) and (lengths == lengths[0]).all():
        tail = struct.pack("<iB", int(lengths[0]), _ALIGNED)
    else:
        starts = (np.cumsum(lengths) - lengths).astype("<i4")
        tail = starts.tobytes() + struct.pack("<iB", len(lengths), _UNALIGNED)
    block = entries + tail
    return block + struct.pack("<BI", _PLAIN, zlib.crc32(block + bytes([_PLAIN])))


@frozen(eq=False, slots=False)
class Block:
    """The entries of a block, sorted by key."""

    data: bytes
    starts: npt.NDArray[np.int64]

    @classmethod
    def decode(cls, stored: bytes) -> Block:
        """Decode a block with its trailer."""
        data = _unpack(stored)
        if len(data) < TRAILER_BYTES:
            raise ValueError("a block is too short")
        number, kind = struct.unpack_from("<iB", data, len(data) - 5)
        end = len(data) - 5
        if kind == _ALIGNED:
            if number <= 0 or end % number:
                raise ValueError("a block has entries of another length than it names")
            return cls(data[:end], np.arange(0, end, number))
        if kind != _UNALIGNED or not 0 <= 4 * number <= end:
            raise ValueError("a block has no valid end")
        starts = np.frombuffer(data, "<i4", number, end - 4 * number).astype(np.int64)
        entries = data[: end - 4 * number]
        if number and (starts[0] != 0 or starts[-1] >= len(entries) or (np.diff(starts) <= 0).any()):
            raise ValueError("a block names entries outside of it")
        return cls(entries, starts)

    def __len__(self) -> int:
        return len(self.starts)

    def key_at(self, number: int) -> bytes:
        """Return the stored key of an entry."""
        length, at = read_varint(self.data, int(self.starts[number]))
        return self.data[at : at + length]

    def value_at(self, number: int) -> bytes:
        """Return the value of an entry."""
        key_length, at = read_varint(self.data, int(self.starts[number]))
        length, at = read_varint(self.data, at + key_length)
        return self.data[at : at + length]

    def place_at(self, number: int) -> Place:
        """Return what an entry of an index block names: a data block without its trailer."""
        value = self.value_at(number)
        offset, at = read_varint(value, 0)
        return Place(offset, read_varint(value, at)[0])

    def row_ids(self, first: int, end: int) -> Numbers:
        """Return the row ids of consecutive entries, as they are stored."""
        if first >= end:
            return np.empty(0, np.int64)
        starts = self.starts[first:end]
        ends = np.append(self.starts, len(self.data))[first + 1 : end + 1]
        values = self._skip_varints(self._skip_keys(starts))
        counts = self._read_varints(values)
        numbers = self._skip_varints(values)
        if (numbers > ends).any():
            raise ValueError("an entry is longer than it names")
        found = decode_varints(self._bytes[list_places(numbers, ends - numbers)])
        if len(found) != counts.sum():
            raise ValueError("an entry has another number of row ids than it names")
        return found

    @cached_property
    def _bytes(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def _last_bytes(self) -> Numbers:
        return np.flatnonzero(self._bytes < 0x80)

    def _skip_keys(self, starts: Numbers) -> Numbers:
        return self._skip_varints(starts) + self._read_varints(starts)

    def _read_varints(self, places: Numbers) -> Numbers:
        """Return the number at each place."""
        ends = self._skip_varints(places)
        return decode_varints(self._bytes[list_places(places, ends - places)])

    def _skip_varints(self, places: Numbers) -> Numbers:
        """Return the place after the varint at each place."""
        numbers = np.searchsorted(self._last_bytes, places)
        if (numbers >= len(self._last_bytes)).any():
            raise ValueError("a varint is not complete")
        after: Numbers = self._last_bytes[numbers] + 1
        # damage would otherwise make many long ranges of bytes
        if (after <= places).any() or (after - places > MOST_BYTES).any():
            raise ValueError("a varint is not at its place")
        return after


def _unpack(stored: bytes) -> bytes:
    """Check the trailer of a block, and return its bytes, decompressed."""
    if len(stored) < TRAILER_BYTES:
        raise ValueError("a block is too short")
    block, (compression, checksum) = stored[:-TRAILER_BYTES], struct.unpack("<BI", stored[-TRAILER_BYTES:])
    if zlib.crc32(bytes([compression]), zlib.crc32(block)) != checksum:
        raise ValueError("a block has a wrong checksum")
    if compression == _PLAIN:
        return block
    length, at = read_varint(block, 0)
    if length > _MOST_BLOCK_BYTES:
        raise ValueError(f"a block has {length} bytes")
    try:
        if compression == _ZSTD:
            return bytes(pa.decompress(block[at:], length, "zstd", asbytes=True))
        if compression == _LZ4:
            packed = _LZ4_HEAD.unpack_from(block, at)[0]
            return bytes(pa.decompress(block[at + 8 : at + 8 + packed], length, "lz4_raw", asbytes=True))
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from error
    raise ValueError(f"a block has the unknown compression {compression}")


@frozen
class KeyBounds:
    """The first and last key of a file, and whether it has rows of null: metadata of its manifest entry."""

    first: bytes | None
    last: bytes | None
    has_nulls: bool

    def encode(self) -> bytes:
        """Return the bytes that all releases read; later ones need the flags to tell an empty text from none."""
        flags = (self.first is None) + 2 * (self.last is None)
        keys = [struct.pack("<i", len(key or b"")) + (key or b"") for key in (self.first, self.last)]
        return b"".join([*keys, bytes([self.has_nulls, _FLAGS_VERSION, flags])])

    @classmethod
    def decode(cls, data: bytes) -> KeyBounds:
        """Decode the metadata; 1.4 stores an empty text as no key, so such bounds are the empty text."""
        keys, at = [], 0
        for _ in range(2):
            if len(data) < at + 4:
                raise ValueError("its bounds are not complete")
            (length,) = struct.unpack_from("<i", data, at)
            keys.append(data[at + 4 : at + 4 + length])
            at += 4 + length
            if length < 0 or at > len(data):
                raise ValueError("its bounds are not complete")
        if len(data) <= at:
            raise ValueError("its bounds are not complete")
        flags = data[at + 2] if len(data) > at + 2 and data[at + 1] == _FLAGS_VERSION else 0
        return cls(None if flags & 1 else keys[0], None if flags & 2 else keys[1], data[at] == 1)
