"""Find where the records of an Avro block begin, without a step in Python for each record.

A block has no index of its records. Every offset of the block is parsed as if a record began there, all offsets
together, field by field. Offsets that cannot be records are dropped. The chain of records is then followed from the
first byte on, in many segments of the block at the same time.

Invariant: the result is a guess. The decoder of the records checks that each record ends where the next one begins, and
the last one at the end of the block. Source: Avro specification, "Binary Encoding".
"""

# Where a record begins is known only after all records before it are read. To find out in columns, each offset of the
# block is tried as a beginning. Three records (1, "ab"), (2, "c"), (3, "") of an INT and a STRING, in nine bytes:
#
#     offset         0    1    2    3    4    5    6    7    8
#     byte           02   04   61   62   04   02   63   06   00
#     true records   [---- 1, "ab" ---] [-- 2, "c" -] [3, ""]
#
#     the INT ends   1    2    3    4    5    6    7    8    9     a number ends at the first byte below 80
#     the length     2    -49  49   2    1    -50  3    0    -     the next number, halved; odd bytes are negative
#     record ends    4    no   no   7    7    no   no   9    no    not beyond the block; no negative length
#
# So 0, 3, 4 and 7 are left. Each of their records ends where another one begins, or at the end of the block: 3 looks
# like a record, but no record leads to it. From offset 0 on, the ends lead to 4, to 7 and to the end 9. Fields that may
# be null drop many more offsets, because their first byte is 0 or 2.
#
# The chain is followed over positions in the list of offsets that are left (`following`), in segments of about the
# square root of their number (`_follow_chain`). Eight offsets in two segments of four:
#
#     position     0  1  2  3 | 4  5  6  7
#     following    2  3  3  5 | 5  6  8  8     8: the end
#     exits        5  5  5  5 | 8  8  8  8     filled from right to left, one column of all segments at a time
#     entries      0          |    5           0 leaves its segment to 5, which leaves it to the end
#     chain        0  -  2  3 | -  5  6  -     followed from all entries together
#
# That needs a step of numpy for each place of a segment, not a step of Python for each record.
#
# Trying all offsets pays off where records are short. Blocks with long texts have many offsets for each value, so the
# work is limited (`_PLACES_PER_VALUE`), also for each window of 256 KiB, and such a block is decoded row by row.
# The result is a guess: bytes of a text may look like a record that hits the chain. The decoder checks each record.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from paimon.adapters.formats.avro.column_decoder.cursor import PADDING, Integers

Bytes = npt.NDArray[np.uint8]

FIXED_BYTES = {"boolean": 1, "float": 4, "double": 8}
SPANS = frozenset({"string", "bytes"})
_VARINTS = frozenset({"int", "long"})
_MAX_VARINT_BYTES = 10
_WINDOW_BYTES = 1 << 18
"""The number of offsets that are parsed together, so that their arrays stay in the processor's cache."""
_SIZES_BYTES = 1 << 16
"""The number of offsets whose numbers are measured together, for the same reason."""
_PLACES_PER_VALUE = 32
"""Offsets to look at for each value of the block; beyond that, row-wise decoding is as fast."""
_CHEAP_SHARE = 4
"""To look at a number that cannot be null takes this part (1/n) of the time of other values."""
_UNEVENNESS = 2
"""How much more than its share one window may look at: most unsuitable blocks are given up after the first window."""
_WINDOWS_OF_ALL = 8
"""The whole work may be used up in so many windows: a block of long values has its records in few windows."""
_PLACES_TO_FOLLOW = 4
"""To follow the chain takes as much time for each offset as to look at so many offsets."""
_SMALLEST_SEGMENT = 16


@frozen
class FlatField:
    """A field of a record with a primitive type, or with a union of null and one."""

    name: str
    # Avro's name of the type
    primitive: str
    # position of null in the union; None if the type is not a union
    null_branch: int | None


def flat_fields(record: dict[str, Any]) -> tuple[FlatField, ...] | None:
    """Return the fields of a record schema; None if a field is nested or has a named type."""
    fields = [_flat_field(f["name"], f["type"]) for f in record["fields"]]
    found = tuple(f for f in fields if f is not None)
    return found if found and len(found) == len(fields) else None


def _flat_field(name: str, node: Any) -> FlatField | None:
    null_branch = None
    if isinstance(node, list):
        if len(node) != 2 or "null" not in node:
            return None
        null_branch = node.index("null")
        node = node[1 - null_branch]
    if isinstance(node, str) and (node in FIXED_BYTES or node in _VARINTS or node in SPANS):
        return FlatField(name, node, null_branch)
    return None


def find_record_starts(
    padded: Bytes, count: int, fields: Sequence[FlatField], window_bytes: int = _WINDOW_BYTES
) -> Integers | None:
    """Find the offsets where the records of a block begin, ascending from 0. The result is a guess (see the module).

    `padded` is the block's data, followed by `PADDING`. `window_bytes` offsets are parsed together. None means that the
    records do not follow each other, or that the search takes more work than row-wise decoding.
    """
    size = len(padded) - len(PADDING)
    record_bytes = _fixed_record_bytes(fields)
    if record_bytes is not None:
        return np.arange(0, size, record_bytes) if record_bytes * count == size else None
    parser = _Parser(ValueWidths.of(padded), fields)
    work = allowed = _PLACES_PER_VALUE * count * len(fields)
    found: list[Integers] = []
    begin = rows = 0
    while begin < size:
        stop = min(begin + window_bytes, size)
        share = allowed // _WINDOWS_OF_ALL + _UNEVENNESS * allowed * (stop - begin) // size
        starts, ends, cost = parser.parse(begin, stop, min(work, share))
        if not len(starts) or starts[0] != begin:
            return None
        chain = _follow_chain(starts, ends)
        found.append(starts[chain])
        begin = int(ends[chain[-1]])
        rows, work = rows + len(chain), work - cost
        if rows > count:
            return None
    return np.concatenate(found) if rows == count and found else None


def _fixed_record_bytes(fields: Sequence[FlatField]) -> int | None:
    """Return the bytes of each record; None if they differ from record to record."""
    if any(f.null_branch is not None or f.primitive not in FIXED_BYTES for f in fields):
        return None
    return sum(FIXED_BYTES[f.primitive] for f in fields)


def _varint_sizes(data: Bytes) -> Bytes:
    """Return the bytes of a number that begins at each offset; 11 if it has no end."""
    sizes: Bytes = np.empty(len(data), np.uint8)
    for begin in range(0, len(data), _SIZES_BYTES):
        more: Bytes = data[begin : begin + _SIZES_BYTES + _MAX_VARINT_BYTES - 1] >> np.uint8(7)
        found: Bytes = more + np.uint8(1)
        longer = more
        for place in range(1, _MAX_VARINT_BYTES):
            longer = longer[:-1] & more[place:]
            if not longer.any():
                break
            found[: len(longer)] += longer
        sizes[begin : begin + _SIZES_BYTES] = found[:_SIZES_BYTES]
    return sizes


@frozen(eq=False)
class ValueWidths:
    """Computes how many bytes the values at some offsets have."""

    # the data, followed by `PADDING`
    padded: Bytes
    # number of bytes without the padding
    size: int
    # bytes of a number that begins at each offset
    varint_sizes: Bytes

    @classmethod
    def of(cls, padded: Bytes) -> ValueWidths:
        """Return the widths of the values in data that `PADDING` follows."""
        return cls(padded, len(padded) - len(PADDING), _varint_sizes(padded))

    def compute(self, primitive: str, places: Integers) -> Any:
        """Return the bytes of a value at each offset; a number beyond the data if there cannot be one."""
        if primitive in _VARINTS:
            return self.varint_sizes.take(places)
        if primitive in SPANS:
            return self._compute_spans(places)
        return FIXED_BYTES[primitive]

    def _compute_spans(self, places: Integers) -> Integers:
        first = self.padded.take(places)
        widths = (first >> 1).astype(np.int64) + 1
        long = np.flatnonzero(first > 0x7F)
        if len(long):
            sizes = self.varint_sizes[places[long]]
            words = np.ndarray((self.size + 8,), dtype="<u4", buffer=self.padded.data, strides=(1,))[places[long]]
            words = words.astype(np.int64) & (np.int64(1) << 8 * np.minimum(sizes, 4).astype(np.int64)) - 1
            lengths = words & 0x7F | words >> 1 & 0x3F80 | words >> 2 & 0x1F_C000 | words >> 3 & 0xFE0_0000
            widths[long] = (lengths >> 1) + sizes
            widths[long[sizes > 4]] = self.size + 1
        widths[np.flatnonzero(first & 1)] = self.size + 1  # a negative length
        return widths


@frozen(eq=False)
class _Parser:
    widths: ValueWidths
    fields: Sequence[FlatField]

    def parse(self, begin: int, stop: int, work: int) -> tuple[Integers, Integers, int]:
        """Parse a record at each offset of a window, within a budget of `work` offsets to look at.

        Returns the offsets that can be records, where these would end, and how much of the budget was used. The arrays
        are empty if the budget is exceeded.
        """
        padded, size = self.widths.padded, self.widths.size
        starts = self._first_places(begin, stop)
        places = starts.copy()
        cost = 0
        for flat in self.fields:
            is_cheap = flat.null_branch is None and flat.primitive in _VARINTS
            cost += len(places) // _CHEAP_SHARE if is_cheap else len(places)
            if cost > work:
                return starts[:0], starts[:0], cost
            present: Any = True
            if flat.null_branch is not None:
                branches = padded.take(places)
                possible = branches & ~np.uint8(2) == 0
                if not possible.all():
                    kept = np.flatnonzero(possible)
                    starts, places, branches = starts[kept], places[kept], branches[kept]
                places += 1
                present = branches == 2 * (1 - flat.null_branch)
            places += self.widths.compute(flat.primitive, places) * present
            if int(places.max(initial=0)) > size:
                kept = np.flatnonzero(places <= size)
                starts, places = starts[kept], places[kept]
        return starts, places, cost + _PLACES_TO_FOLLOW * len(starts)

    def _first_places(self, begin: int, stop: int) -> Integers:
        if self.fields[0].null_branch is None:
            return np.arange(begin, stop)
        return np.flatnonzero(self.widths.padded[begin:stop] & ~np.uint8(2) == 0) + begin


def _follow_chain(starts: Integers, ends: Integers) -> Integers:
    """Return the positions of the chain of records from the first offset on, in which each begins where one ends.

    The offsets are cut into segments. Backwards, and in all segments together, each offset receives the offset through
    which the chain would leave its segment. That gives the offset through which the true chain enters each segment.
    From these offsets it is followed in all segments together.
    """
    count = len(starts)
    if bool((ends[:-1] == starts[1:]).all()):
        return np.arange(count)
    following = _find_next_positions(starts, ends)
    segment = max(_SMALLEST_SEGMENT, 1 << (count.bit_length() // 2))
    exits = _segment_exits(following, segment)
    entries = []
    entry = 0
    while entry < count:
        entries.append(entry)
        entry = exits.item(entry % segment, entry // segment)
    current = np.array(entries)
    stops = np.minimum((current // segment + 1) * segment, count)
    chained = np.zeros(count, dtype=bool)
    while len(current):
        chained[current] = True
        current = following[current]
        inside = current < stops
        if not inside.all():
            current, stops = current[inside], stops[inside]
    return np.flatnonzero(chained)


def _find_next_positions(starts: Integers, ends: Integers) -> Integers:
    """Return for each offset the position of the offset where its record ends; their number if there is none."""
    count, begin, stop = len(starts), int(starts[0]), int(starts[-1]) + 1
    positions: Integers = np.full(stop - begin + 1, count)
    positions[starts - begin] = np.arange(count)
    following: Integers = positions[np.minimum(ends, stop) - begin]
    return following


def _segment_exits(following: Integers, segment: int) -> Integers:
    """Return the first position outside of its segment that each leads to, with one row per offset in a segment."""
    count = len(following)
    segments = -(-count // segment)
    padded = np.full(segments * segment, count)
    padded[:count] = following
    exits = np.ascontiguousarray(padded.reshape(segments, segment).T)
    lanes = np.arange(segments)
    offsets = exits - lanes * segment
    own = np.arange(segments * segment).reshape(segment, segments)
    sources = np.where(offsets < segment, offsets * segments + lanes, own)
    flat = exits.reshape(-1)
    for offset in range(segment - 2, -1, -1):
        exits[offset] = flat.take(sources[offset])
    return exits
