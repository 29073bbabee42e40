"""Read the same field of many Avro records at the same time, from many offsets in one buffer.

Where records begin is not known, so each offset that may begin one is a *candidate* (see `record_starts`). A candidate
whose bytes do not match the schema is *dead*.

Invariant: nothing is read outside of the buffer. An offset whose bytes do not match the schema is marked as dead and
stays dead; values read from it mean nothing. Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import mutable

from paimon.domain.types.arrow_arrays import from_numpy

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Rows = Integers | None
"""Positions of rows; None means all rows."""

PADDING = bytes(16)
"""The bytes that must follow the data, so that no read of eight bytes leaves the buffer."""
_STOPS = np.uint64(0x8080_8080_8080_8080)
_TWO_STOPS = np.uint64(0x8080)
_ONE = np.uint64(1)
_NARROW_LIMIT = 1 << 31


@mutable(eq=False)
class Cursors:
    """One offset for each candidate record; to read all of them (positions None) is the cheapest by far."""

    # the blocks, followed by `PADDING`
    data: npt.NDArray[np.uint8]
    # the eight bytes from each offset on, overlapping, without a copy
    words: npt.NDArray[np.uint64]
    # number of bytes without the padding
    limit: int
    # offsets, which advance as values are read
    places: Integers
    # candidates whose bytes do not match the schema
    dead: Mask
    # whether any candidate is dead
    lost: bool = False

    @classmethod
    def at(cls, padded: npt.NDArray[np.uint8], places: Integers) -> Cursors:
        """Return cursors at these offsets of the data, which `PADDING` follows."""
        size = len(padded) - len(PADDING)
        words = np.ndarray((size + 8,), dtype="<u8", buffer=padded.data, strides=(1,))
        return cls(padded, words, size, places.copy(), np.zeros(len(places), dtype=bool))

    def count(self, rows: Rows) -> int:
        """Return the number of these rows."""
        return len(self.places if rows is None else rows)

    def longs(self, rows: Rows) -> npt.NDArray[np.signedinteger]:
        """Read a number for each of these rows; the result has the narrowest type that holds them."""
        places = self.places if rows is None else self.places[rows]
        first = self.data.take(places)
        if not len(first) or int(first.max()) < 0x80:  # one byte each, as most numbers of manifests are
            self._advance(rows, places + 1)
            return ((first >> 1) ^ (~(first & 1) + np.uint8(1))).view(np.int8)
        words = self.words[places]
        more = words & _TWO_STOPS
        if not bool((more == _TWO_STOPS).any()):  # one or two bytes each
            second = (more & np.uint64(0x80)) >> np.uint64(7)
            self._advance(rows, places + second.astype(np.int64) + 1)
            return _zigzag(words & np.uint64(0x7F) | (words >> _ONE & np.uint64(0x3F80)) * second)
        # The last byte of a number has its top bit clear. `last` is that bit in the first such byte; all bytes up to it
        # are kept.
        stops = ~words & _STOPS
        last = stops & (~stops + _ONE)
        values = _pack_varint_bits(words & ((last << _ONE) - _ONE))
        short = stops != 0
        sizes = np.full(len(places), 8, dtype=np.int64)
        sizes[short] = (np.log2(last[short].astype(np.float64)).astype(np.int64) + 1) >> 3
        if not bool(short.all()):
            self._long_tails(rows, places, values, sizes, np.flatnonzero(~short))
        self._advance(rows, places + sizes)
        return _zigzag(values)

    def _long_tails(
        self, rows: Rows, places: Integers, values: npt.NDArray[np.uint64], sizes: Integers, tails: Integers
    ) -> None:
        """Read the last bytes of numbers of nine and ten bytes."""
        at = np.minimum(places[tails] + 8, self.limit)
        ninth, tenth = self.data[at].astype(np.uint64), self.data[at + 1].astype(np.uint64)
        values[tails] = _pack_varint_bits(self.words[places[tails]]) | (ninth & np.uint64(0x7F)) << np.uint64(56)
        more = ninth >= 0x80
        values[tails[more]] |= (tenth[more] & _ONE) << np.uint64(63)
        sizes[tails] = np.where(more, 10, 9)
        bad = tails[more & (tenth > 1)]
        self.kill(bad if rows is None else rows[bad])

    def branches(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Read for each of these rows which of two branches its union has: 0 or 1, in one byte."""
        places = self.places if rows is None else self.places[rows]
        found: npt.NDArray[np.uint8] = self.data.take(places)
        bad = found & ~np.uint8(2)
        if bool(bad.any()):
            self._kill_where(rows, bad != 0)
        self._advance(rows, places + 1)
        return np.right_shift(found, 1, dtype=np.uint8)

    def spans(self, rows: Rows) -> tuple[npt.NDArray[np.signedinteger], npt.NDArray[np.signedinteger]]:
        """Read the start and length of a byte string for each of these rows; starts are narrow if all fit."""
        lengths = self.longs(rows)
        starts = self.places if rows is None else self.places[rows]
        after = starts + lengths
        # A damaged length near 2**63 makes the sum negative: the lengths are checked before their sums.
        is_damaged = int(lengths.min(initial=0)) < 0 or int(lengths.max(initial=0)) > self.limit
        if is_damaged or int(after.max(initial=0)) > self.limit:
            bad = (lengths < 0) | (lengths > self.limit - starts)
            self._kill_where(rows, bad)
            lengths[bad] = 0
            after = starts + lengths
        self._advance(rows, after)
        return starts.astype(np.int32) if self.limit < _NARROW_LIMIT else starts, lengths

    def read_fixed(self, rows: Rows, width: int) -> npt.NDArray[np.uint64]:
        """Read `width` bytes, 8 at most, for each of these rows as an unsigned little-endian number."""
        places = self.places if rows is None else self.places[rows]
        words = self.words[places]
        self._advance(rows, places + width)
        return words if width == 8 else words & np.uint64((1 << 8 * width) - 1)

    def kill(self, rows: Integers) -> None:
        """Mark rows as dead."""
        if len(rows):
            self.dead[rows] = self.lost = True

    def _kill_where(self, rows: Rows, bad: Mask) -> None:
        self.kill(np.flatnonzero(bad) if rows is None else rows[bad])

    def _advance(self, rows: Rows, places: Integers) -> None:
        if int(places.max(initial=0)) > self.limit:
            self._kill_where(rows, places > self.limit)
            places = np.minimum(places, self.limit)
        if rows is None:
            self.places = places
        else:
            self.places[rows] = places


def span_array(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    valid: Mask | None,
    kind: pa.DataType,
) -> pa.Array:
    """Return spans of the data as an Arrow array; offsets ascend, except those of nulls (start and length 0)."""
    # Offsets ascend, so the values and the gaps between them are one array over the data itself, without a copy.
    ascending = starts if valid is None else np.maximum.accumulate(starts)
    offsets = np.empty(2 * len(starts), dtype=np.int32)
    offsets[::2] = ascending
    np.add(ascending, lengths, out=offsets[1::2], casting="unsafe")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    pieces = pa.Array.from_buffers(kind, max(len(offsets) - 1, 0), buffers)
    even = from_numpy(np.arange(0, len(offsets), 2), valid)
    array = pieces.take(even)
    if pa.types.is_string(kind):
        array.validate(full=True)
    return array


def _pack_varint_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Join the lower seven bits of each of eight bytes, the lowest bits first."""
    packed = words & np.uint64(0x7F)
    for shift in range(1, 8):
        packed |= (words >> np.uint64(shift)) & np.uint64(0x7F << 7 * shift)
    return packed


def _zigzag(values: npt.NDArray[np.uint64]) -> Integers:
    signs = ~(values & _ONE) + _ONE
    found: Integers = ((values >> _ONE) ^ signs).view(np.int64)
    return found
