"""Find where the records of one Avro block begin, without a step in Python for each record.

A block has no index of its records. Every place of the block is parsed as if a record began there, all places together,
field by field; a place that cannot be a record is dropped. The chain of records is then followed from the first byte
on, in many segments of the block at the same time.

Invariant: the result is a guess that whoever decodes the records must check: that each record ends where the next one
begins, and the last one with the block. Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from paimon.adapters.formats.avro.cursor import PADDING, Integers

Bytes = npt.NDArray[np.uint8]

FIXED_BYTES = {"boolean": 1, "float": 4, "double": 8}
_VARINTS = frozenset({"int", "long"})
_SPANS = frozenset({"string", "bytes"})
_MAX_VARINT_BYTES = 10
_WINDOW_BYTES = 1 << 18
"""So many places are parsed at once: the arrays for them stay in the processor's cache."""
_PLACES_PER_VALUE = 32
"""Places to look at for each value of the block; beyond that, to decode row by row is as fast."""
_UNEVENNESS = 2
"""How much more than its share of the places one window may look at: most blocks are left alone after the first."""
_WINDOWS_OF_ALL = 8
"""Beyond that, so many windows may take all that the block may: one of long values has its records in few windows."""
_PLACES_TO_FOLLOW = 4
"""To follow the chain takes for each place the time to look at so many."""
_SMALLEST_SEGMENT = 16


@frozen
class FlatField:
    """A field of a record: a primitive type, or a union of null and one.

    `null_branch` is the position of null in the union; None where the type is no union.
    """

    name: str
    primitive: str
    null_branch: int | None


def flat_fields(record: dict[str, Any]) -> tuple[FlatField, ...] | None:
    """Return the fields of a record schema; None where one of them is nested, or of a named type."""
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
    if isinstance(node, str) and (node in FIXED_BYTES or node in _VARINTS or node in _SPANS):
        return FlatField(name, node, null_branch)
    return None


def find_record_starts(
    padded: Bytes, count: int, fields: Sequence[FlatField], window_bytes: int = _WINDOW_BYTES
) -> Integers | None:
    """Find the places where the records of a block begin.

    Parameters
    ----------
    padded : array of uint8
        The block's data, which `PADDING` follows.
    count : int
        How many records the block has.
    fields : sequence of FlatField
        The fields of each record, at least one.
    window_bytes : int
        So many places are parsed at once.

    Returns
    -------
    array of int64, or None
        As many places as there are records, ascending, the first one 0; a guess, see the module. None where the
        records do not follow each other, or where it would take more work than to decode them row by row.
    """
    size = len(padded) - len(PADDING)
    record_bytes = _fixed_record_bytes(fields)
    if record_bytes is not None:
        return np.arange(0, size, record_bytes) if record_bytes * count == size else None
    parser = _Parser(padded, size, _varint_sizes(padded), fields)
    work = allowed = _PLACES_PER_VALUE * count * len(fields)
    found: list[Integers] = []
    begin = rows = 0
    while begin < size:
        stop = min(begin + window_bytes, size)
        share = allowed // _WINDOWS_OF_ALL + _UNEVENNESS * allowed * (stop - begin) // size
        starts, ends, cost = parser.parse(begin, stop, min(work, share))
        if not len(starts) or starts[0] != begin:
            return None
        chain = _follow(starts, ends)
        found.append(starts[chain])
        begin = int(ends[chain[-1]])
        rows, work = rows + len(chain), work - cost
        if rows > count:
            return None
    return np.concatenate(found) if rows == count and found else None


def _fixed_record_bytes(fields: Sequence[FlatField]) -> int | None:
    """Return the bytes of each record; None where they differ from record to record."""
    if any(f.null_branch is not None or f.primitive not in FIXED_BYTES for f in fields):
        return None
    return sum(FIXED_BYTES[f.primitive] for f in fields)


def _varint_sizes(data: Bytes) -> Bytes:
    """How many bytes a number has that begins at each place; 11 where it has no end."""
    more: Bytes = data >> np.uint8(7)
    sizes: Bytes = more + np.uint8(1)
    longer = more
    for place in range(1, _MAX_VARINT_BYTES):
        longer = longer[:-1] & more[place:]
        if not longer.any():
            break
        sizes[: len(longer)] += longer
    return sizes


@frozen(eq=False)
class _Parser:
    padded: Bytes
    size: int
    varint_sizes: Bytes
    fields: Sequence[FlatField]

    def parse(self, begin: int, stop: int, work: int) -> tuple[Integers, Integers, int]:
        """Return the places in a window that can be records, where these would end, and how many places it looked at.

        No places, where that would be more than `work`.
        """
        starts = self._first_places(begin, stop)
        places = starts.copy()
        cost = 0
        for flat in self.fields:
            cost += len(places)
            if cost > work:
                return starts[:0], starts[:0], cost
            present: Any = True
            if flat.null_branch is not None:
                branches = self.padded.take(places)
                possible = branches & ~np.uint8(2) == 0
                if not possible.all():
                    kept = np.flatnonzero(possible)
                    starts, places, branches = starts[kept], places[kept], branches[kept]
                places += 1
                present = branches == 2 * (1 - flat.null_branch)
            places += self._widths(flat.primitive, places) * present
            if int(places.max(initial=0)) > self.size:
                kept = np.flatnonzero(places <= self.size)
                starts, places = starts[kept], places[kept]
        return starts, places, cost + _PLACES_TO_FOLLOW * len(starts)

    def _first_places(self, begin: int, stop: int) -> Integers:
        if self.fields[0].null_branch is None:
            return np.arange(begin, stop)
        return np.flatnonzero(self.padded[begin:stop] & ~np.uint8(2) == 0) + begin

    def _widths(self, primitive: str, places: Integers) -> Any:
        """The bytes of a value at each place; beyond the block where there cannot be one."""
        if primitive in _VARINTS:
            return self.varint_sizes.take(places)
        if primitive in _SPANS:
            return self._span_widths(places)
        return FIXED_BYTES[primitive]

    def _span_widths(self, places: Integers) -> Integers:
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


def _follow(starts: Integers, ends: Integers) -> Integers:
    """The positions, among the places, of the chain that begins with the first: each begins where the one before ends.

    The places are cut into segments. Backwards and in all segments together, each place learns through which place the
    chain would leave its segment. That gives the place through which the true chain enters each segment, and from these
    it is followed in all segments together.
    """
    count = len(starts)
    if bool((ends[:-1] == starts[1:]).all()):
        return np.arange(count)
    following = _following(starts, ends)
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


def _following(starts: Integers, ends: Integers) -> Integers:
    """The position of the place at which each one ends; their number where there is none."""
    count, begin, stop = len(starts), int(starts[0]), int(starts[-1]) + 1
    positions: Integers = np.full(stop - begin + 1, count)
    positions[starts - begin] = np.arange(count)
    following: Integers = positions[np.minimum(ends, stop) - begin]
    return following


def _segment_exits(following: Integers, segment: int) -> Integers:
    """The first position outside of its segment that each position leads to; one row for each offset in segments."""
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
