"""The file index `bloom-filter`: whether a file can contain a value.

Invariant: a value that was added is always found. The bytes equal those that Java writes for the same values.
Source: `BloomFilterFileIndex`, `BloomFilter64`, `FastHash`.
"""

# The bytes are the number of hash functions k (4 bytes), then the bits; bit p is bit p % 8 of byte p // 8, from the
# lowest. A value has one hash of 64 bits, whose halves h1 and h2 (signed) make k of them:
#
#     c(i) = h1 + i * h2         for i = 1 .. k, in 32 bits, inverted if negative
#     bit(i) = c(i) % bits
#
# The size follows from the options `items` and `fpp` and not from the values, so a filter for too few items finds too
# many values. Numbers have the hash of Thomas Wang, texts and bytes xxHash64. Nulls are not added.

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen
from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.index.index_bytes import IndexBytes, pack_int
from paimon.domain.index.index_keys import Key, KeyForm, Keys, to_keys, to_stored_integers
from paimon.domain.index.xx_hash import xx_hash, xx_hash_texts
from paimon.domain.predicate.expression import Operator
from paimon.domain.types.arrow_arrays import to_numpy

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
