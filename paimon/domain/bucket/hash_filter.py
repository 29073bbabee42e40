"""A Bloom filter for hashes: which ones may be known, so that a new hash is rarely searched for.

Invariant: a hash that was added is always a candidate. The highest bits of a hash select its byte, so that sorted
hashes read the filter in order, and the next six select two bits of the byte. A state machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MIN_INDEX_BITS = 7
_MAX_INDEX_BITS = 26
"""A larger filter would have no bits of the hash left to select bits of a byte."""
_HASH_BITS = 32
_SIGN = np.uint32(1 << 31)
_MASKS = np.array([1 << (n & 7) | 1 << (n >> 3) for n in range(64)], np.uint8)


class HashFilter:
    """A set of hashes that may also report hashes that were never added.

    It takes two to four bytes for each of `count` expected hashes, and at most 64 MiB.
    """

    def __init__(self, count: int = 0) -> None:
        index_bits = max(_MIN_INDEX_BITS, min(_MAX_INDEX_BITS, (2 * count).bit_length()))
        self._shift = np.uint32(_HASH_BITS - index_bits)
        self._bits = np.zeros(1 << index_bits, np.uint8)

    @property
    def held_bytes(self) -> int:
        """The size of the filter."""
        return self._bits.nbytes

    def is_too_small(self, count: int) -> bool:
        """Return whether so many hashes need a larger filter, and one is possible."""
        return self._bits.size < min(count, 1 << _MAX_INDEX_BITS)

    def add(self, hashes: npt.NDArray[np.int32]) -> None:
        """Add hashes."""
        np.bitwise_or.at(self._bits, *self._locate(hashes))

    def find_candidates(self, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the positions of the hashes that may have been added, in ascending order."""
        places, masks = self._locate(hashes)
        return np.flatnonzero(self._bits[places] & masks == masks)

    def _locate(self, hashes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Return the byte of each hash, and the bits in it; ascending hashes have ascending bytes."""
        numbers = hashes.view(np.uint32) ^ _SIGN
        masks = _MASKS[(numbers >> (self._shift - np.uint32(6))) & np.uint32(63)]
        return numbers >> self._shift, masks
