"""The file index `bloom-filter`: whether a file can contain a value, by the xxHash64 of texts and bytes with seed 0.

Invariant: a value that was added is always found. The bytes equal those that Java writes for the same values.
`xx_hash_texts(array)[i] == xx_hash(array[i])`.
Source: `BloomFilterFileIndex`, `BloomFilter64`, `FastHash`, `LongHashFunction.xx`, and the specification of xxHash.
"""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen
from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.index.index_bytes import IndexBytes, pack_int
from paimon.domain.index.index_keys import Key, KeyForm, Keys, to_keys, to_stored_integers
from paimon.domain.predicate.expression import Operator
from paimon.domain.types.arrow_arrays import to_numpy

# xxHash64 mixes stripes of 32 bytes into four lanes, then what remains: words of 8 bytes, one of 4 bytes, single bytes.
# For many values at once, each step mixes the same part of every value that still has it. The values are ordered by
# length, the longest first, so the values of a step are a prefix of all:
#
#     length 70   stripe 0   stripe 1   byte .. of the rest
#     length 40   stripe 0              word 0
#     length  5                         word of 4 bytes, 1 byte
#
# A value of more than `_LONG_BYTES` is hashed alone: a step with few values costs as much as one with thousands.


Hashes: TypeAlias = npt.NDArray[np.uint64]
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_STRIPE = 32
_LONG_BYTES = 2_048
_LANES = tuple(seed & _MASK for seed in (_P1 + _P2, _P2, 0, -_P1))


def xx_hash(data: bytes) -> int:
    """Return the hash of bytes as an unsigned number."""
    stripes = len(data) // _STRIPE
    state = _P5
    if stripes:
        lanes = list(_LANES)
        for words in struct.iter_unpack("<4Q", data[: stripes * _STRIPE]):
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        state = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return _finish((state + len(data)) & _MASK, data[stripes * _STRIPE :])


def _finish(state: int, rest: bytes) -> int:
    words = len(rest) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", rest[:words]):
        state = (_rotate(state ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    rest = rest[words:]
    if len(rest) >= 4:
        state = (_rotate(state ^ int.from_bytes(rest[:4], "little") * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        state = _rotate(state ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def xx_hash_texts(texts: pa.Array) -> Hashes:
    """Return the hash of each value of a binary array without nulls."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32, texts.offset + len(texts) + 1)[texts.offset :].astype(
        np.int64
    )
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    is_long = int(np.searchsorted(-lengths[order], -_LONG_BYTES))
    hashes = np.empty(len(texts), np.uint64)
    for row in order[:is_long].tolist():
        hashes[row] = xx_hash(texts[row].as_buffer().to_pybytes())
    short = order[is_long:]
    if len(short):
        data = np.zeros(int(offsets[-1]) + 8, np.uint8)
        stored = texts.buffers()[2]
        if stored is not None and offsets[-1]:
            data[: offsets[-1]] = np.frombuffer(stored, np.uint8, int(offsets[-1]))
        hashes[short] = _hash_ordered(data, offsets[:-1][short], lengths[short])
    return hashes


def _hash_ordered(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    """Return the hashes of values that are ordered by length, the longest first."""
    state = np.full(len(starts), _P5, np.uint64)
    striped = _count_at_least(lengths, _STRIPE)
    if striped:
        state[:striped] = _mix_stripes(data, starts[:striped], lengths[:striped])
    state += lengths.astype(np.uint64)
    places = starts + lengths // _STRIPE * _STRIPE
    rest = lengths % _STRIPE
    for _ in range(3):
        rows = np.flatnonzero(rest >= 8)
        mixed = _mix_round(np.uint64(0), _words(data, places[rows], "<u8"))
        state[rows] = _turn(state[rows] ^ mixed, 27) * np.uint64(_P1) + np.uint64(_P4)
        places[rows] += 8
        rest[rows] -= 8
    rows = np.flatnonzero(rest >= 4)
    mixed = _words(data, places[rows], "<u4").astype(np.uint64) * np.uint64(_P1)
    state[rows] = _turn(state[rows] ^ mixed, 23) * np.uint64(_P2) + np.uint64(_P3)
    places[rows] += 4
    rest[rows] -= 4
    for _ in range(3):
        rows = np.flatnonzero(rest > 0)
        mixed = data[places[rows]].astype(np.uint64) * np.uint64(_P5)
        state[rows] = _turn(state[rows] ^ mixed, 11) * np.uint64(_P1)
        places[rows] += 1
        rest[rows] -= 1
    state = (state ^ state >> np.uint64(33)) * np.uint64(_P2)
    state = (state ^ state >> np.uint64(29)) * np.uint64(_P3)
    return state ^ state >> np.uint64(32)


def _mix_stripes(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    lanes = [np.full(len(starts), seed, np.uint64) for seed in _LANES]
    for stripe in range(int(lengths[0]) // _STRIPE):
        count = _count_at_least(lengths, (stripe + 1) * _STRIPE)
        for i, lane in enumerate(lanes):
            words = _words(data, starts[:count] + (stripe * _STRIPE + 8 * i), "<u8")
            lane[:count] = _mix_round(lane[:count], words)
    state = sum((_turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint64(0))
    for lane in lanes:
        state = (state ^ _mix_round(np.uint64(0), lane)) * np.uint64(_P1) + np.uint64(_P4)
    return np.asarray(state, np.uint64)


def _count_at_least(descending: npt.NDArray[np.int64], least: int) -> int:
    return int(np.searchsorted(-descending, -least, side="right"))


def _words(data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], dtype: str) -> Hashes:
    """Return the words at positions that need no alignment, by a view of all overlapping words."""
    width = np.dtype(dtype).itemsize
    overlapping: Hashes = np.ndarray((len(data) - width + 1,), dtype, data.data, strides=(1,))
    return overlapping[places]


def _mix_round(lanes: Hashes | np.uint64, words: Hashes) -> Hashes:
    return _turn(lanes + words * np.uint64(_P2), 31) * np.uint64(_P1)


def _turn(values: Hashes, bits: int) -> Hashes:
    turned: Hashes = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return turned


# The bytes are the number of hash functions k (4 bytes), then the bits; bit p is bit p % 8 of byte p // 8, from the
# lowest. A value has one hash of 64 bits, whose halves h1 and h2 (signed) make k of them:
#
#     c(i) = h1 + i * h2         for i = 1 .. k, in 32 bits, inverted if negative
#     bit(i) = c(i) % bits
#
# The size follows from the options `items` and `fpp` and not from the values, so a filter for too few items finds too
# many values. Numbers have the hash of Thomas Wang, texts and bytes xxHash64. Nulls are not added.


_MOST_BITS = (1 << 31) - 8
_MOST_FLAGS = 1 << 25
"""A filter of more bits is built in its packed form."""
_FIRST = slice(0, 1)
_YES, _NO = np.array([True]), np.array([False])
_BLOCK_ROWS = 1 << 14
"""The values that are added together, so that their bits stay in the processor's cache."""


@frozen
class BloomSize:
    """The size of a filter."""

    bits: int
    hash_count: int

    @classmethod
    def of(cls, items: int, false_positive_rate: float) -> BloomSize:
        """Return the size for so many values, of which a missing one is found at this rate."""
        if items < 1 or not 0 < false_positive_rate < 1:
            raise InvalidRequest(
                f"A bloom filter for {items} items at a rate of {false_positive_rate} is not possible",
                subject="file-index.bloom-filter",
                hint="set 'items' to at least 1, and 'fpp' to a number between 0 and 1",
            )
        wanted = int(-items * math.log(false_positive_rate) / (math.log(2) * math.log(2)))
        bits = wanted + (8 - wanted % 8)
        if bits > _MOST_BITS:
            raise InvalidRequest(
                f"A bloom filter for {items} items at a rate of {false_positive_rate} needs {bits} bits",
                subject="file-index.bloom-filter",
                hint=f"reduce 'items', or increase 'fpp': a filter has {_MOST_BITS} bits at most",
            )
        return cls(bits, max(1, math.floor(bits / items * math.log(2) + 0.5)))


class BloomFilterBuilder:
    """A filter that takes the values of a file column by column; closed once."""

    def __init__(self, form: KeyForm, size: BloomSize) -> None:
        self._form = form
        self._size = size
        # a byte for each bit is faster to set, but takes eight times the memory
        self._is_packed = size.bits > _MOST_FLAGS
        self._bits = np.zeros(size.bits // 8 if self._is_packed else size.bits, np.uint8)

    def add(self, column: pa.Array) -> None:
        """Add the values of a canonical Arrow array."""
        hashes = _hash_column(column, self._form)
        for start in range(0, len(hashes), _BLOCK_ROWS):
            for places in _bit_places(hashes[start : start + _BLOCK_ROWS], self._size):
                if self._is_packed:
                    np.bitwise_or.at(self._bits, places >> 3, np.left_shift(1, places & 7).astype(np.uint8))
                else:
                    self._bits[places] = 1

    def close(self) -> bytes:
        """Return the bytes of the index."""
        packed = self._bits if self._is_packed else np.packbits(self._bits, bitorder="little")
        return pack_int(self._size.hash_count) + packed.tobytes()


def _hash_column(column: pa.Array, form: KeyForm) -> Keys:
    """Return the hashes of the values, those of texts once for each different one."""
    present = column.drop_null()
    return hash_values(present if form.width else pc.unique(present), form)


def hash_values(column: pa.Array, form: KeyForm) -> Keys:
    """Return the hash of each value of a canonical array without nulls."""
    keys = to_keys(column, form)
    if not form.width:
        return np.asarray(xx_hash_texts(keys).view(np.int64))
    return _hash_numbers(to_stored_integers(to_numpy(keys), form))


def _hash_numbers(numbers: Keys) -> Keys:
    key = ~numbers + (numbers << 21)
    key ^= key >> 24
    key = (key + (key << 3)) + (key << 8)
    key ^= key >> 14
    key = (key + (key << 2)) + (key << 4)
    key ^= key >> 28
    hashed: Keys = key + (key << 31)
    return hashed


def _bit_places(hashes: Keys, size: BloomSize) -> list[npt.NDArray[np.int64]]:
    combined, high = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    places, bits = [], np.uint32(size.bits)
    for _ in range(size.hash_count):
        combined = combined + high
        numbers = (combined ^ (combined >> 31)).view(np.uint32)  # inverts negative numbers
        # numpy divides by one number faster than it takes the remainder
        places.append((numbers - numbers // bits * bits).astype(np.int64))
    return places


@frozen(eq=False)
class HashedKeys:
    """The hashes of many values, and their bits in filters of each size that was asked for."""

    hashes: Keys
    _bits: dict[BloomSize, tuple[Keys, npt.NDArray[np.uint8]]] = field(factory=dict, init=False, repr=False)
    # by bits and hash functions: plain numbers are compared faster
    _first: dict[tuple[int, int], list[tuple[int, int]]] = field(factory=dict, init=False, repr=False)

    def find_bits(self, size: BloomSize) -> tuple[Keys, npt.NDArray[np.uint8]]:
        """Return the bytes and the bits in them: a row for each hash function, a column for each value."""
        found = self._bits.get(size)
        if found is None:
            places = np.stack(_bit_places(self.hashes, size))
            found = self._bits[size] = places >> 3, np.left_shift(1, places & 7).astype(np.uint8)
        return found

    def list_first_bits(self, size: BloomSize) -> list[tuple[int, int]]:
        """Return the byte and the bit in it of the first value, for each hash function."""
        key = size.bits, size.hash_count
        found = self._first.get(key)
        if found is None:
            places, bits = self.find_bits(size)
            found = self._first[key] = list(zip(places[:, 0].tolist(), bits[:, 0].tolist(), strict=True))
        return found


@frozen(eq=False)
class BloomFilter:
    """A filter as its bytes."""

    form: KeyForm
    size: BloomSize
    bits: npt.NDArray[np.uint8]

    @classmethod
    def decode(cls, data: bytes, form: KeyForm) -> BloomFilter:
        """Decode an index; a `ValueError` if it is damaged."""
        source = IndexBytes(data)
        hash_count = source.read_int()
        bits = 8 * (len(data) - source.position)
        # A filter with one bit an item, at the smallest rate, has fewer hash functions than bits.
        if not 1 <= hash_count <= 2_048 or not bits:
            raise ValueError(f"a bloom filter with {bits} bits and {hash_count} hash functions")
        return cls(form, BloomSize(bits, hash_count), np.frombuffer(data, np.uint8, offset=source.position))

    def mask(self, keys: HashedKeys, part: slice) -> npt.NDArray[np.bool_]:
        """Mark the values, in a slice of all, that the file can contain."""
        if len(keys.hashes) == 1 and part == _FIRST:  # numpy would take ten times as long
            data = self.bits.data
            for place, bit in keys.list_first_bits(self.size):
                if not data[place] & bit:
                    return _NO
            return _YES
        places, bits = keys.find_bits(self.size)
        return np.asarray((self.bits[places[:, part]] & bits[:, part]).all(axis=0))

    def select(self, operator: Operator, key: Key) -> BitMap | None:
        """Return no rows if the file cannot contain an equal value; otherwise None, which is all rows."""
        return None if operator is not Operator.EQ or self._contains(key) else BitMap()

    def select_nulls(self) -> BitMap | None:
        """Return None: nulls are not added."""
        return None

    def _contains(self, key: Key) -> bool:
        if isinstance(key, bytes):
            hashes = np.array([xx_hash(key)], np.uint64).view(np.int64)
        else:
            hashes = _hash_numbers(to_stored_integers(np.array([key], np.int64), self.form))
        return bool(self.mask(HashedKeys(hashes), _FIRST)[0])
