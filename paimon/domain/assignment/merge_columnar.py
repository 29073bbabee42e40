"""Find the rows of a source that match rows of a target, and the clause that applies to each row, over Arrow columns.

Invariant: pairs, clauses and refusals equal those of `merge_reference`.
"""

# `SourceIndex` gives each distinct key of the source a number, its code, and lists the rows of each code. With key
# columns (day, id), and the source rows (d1, 7), (d2, 7), (d1, 9), (d1, 7):
#
#     values      day: d1 d2          id: 7 9                  distinct values; their positions are codes of one column
#     column 1    0  1  0  0
#     combined    code * 2 + id code: 0 2 1 0  ->  occurring: 0 1 2  (`combined_codes`)  ->  dense again: 0 2 1 0
#     order       rows 0 3 | 2 | 1     starts 0 2 3 4          the rows of code 0, 1, 2
#
# After each column the combined codes are made dense again, so that their product never overflows 64 bits. A row of the
# target is looked up in the same way, column by column; where a value or a combination does not occur, its code is -1.
# Integers and dates find their values in `IntegerSlots`, others by Arrow's hash table, floats as ordinals. A null
# equals nothing. Arrow's `index_in` builds its table for each call, which takes longer than the lookup of one batch.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.columns.java_float_order import to_ordinal_array

Integers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
NO_CLAUSE = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_PROBES = 64
"""Values that need more probes collide too often, by accident or on purpose; they are searched in another way."""

_FILTER_SHARE = 8
"""Places in the filter for each slot, so that few unknown integers pass it."""
_MOST_FILTER_PLACES = 1 << 24


@frozen(eq=False)
class SourceIndex:
    """The rows of a source by key codes; without key columns each row is a candidate for each target row."""

    # the distinct values of each key column, without null
    values: tuple[pa.Array, ...]
    # a hash table of these values, for integers and dates; None for other types
    slots: tuple[IntegerSlots | None, ...]
    # for each key column after the first, the codes of the key up to this column that occur, ascending
    combined_codes: tuple[Integers, ...]
    # the numbers of the source rows without a null in their key, ordered by code
    order: Integers
    # for each code the position of its first row in `order`, and one more value for the end
    starts: Integers

    @classmethod
    def of(cls, keys: Sequence[pa.Array], row_count: int) -> SourceIndex:
        """Index the rows of a source by its key columns, which have the types of the target."""
        arrays = [_to_comparable(key) for key in keys]
        values = tuple(array.unique().drop_null() for array in arrays)
        slots = tuple(build_slots(_to_integers(v)) if _is_integral(v.type) else None for v in values)
        codes = np.zeros(row_count, np.int64)
        combined: list[Integers] = []
        for position, (array, known) in enumerate(zip(arrays, values, strict=True)):
            codes = _append_code(codes, _find_codes(array, known, slots[position]), len(known))
            if position:
                combined.append(np.unique(codes[codes >= 0]))
                codes = _find_positions(combined[-1], codes)
        order = np.argsort(codes, kind="stable")
        order = order[int(np.count_nonzero(codes < 0)) :]
        codes_in_order = codes[order]
        size = int(codes_in_order[-1]) + 1 if len(order) else 0
        return cls(values, slots, tuple(combined), order, np.searchsorted(codes_in_order, np.arange(size + 1)))

    def find_codes(self, keys: Sequence[pa.Array], row_count: int) -> Integers:
        """Return the code of the key of each target row; -1 if no row of the source has this key."""
        codes = np.zeros(row_count, np.int64)
        for position, (key, known) in enumerate(zip(keys, self.values, strict=True)):
            found = _find_codes(_to_comparable(key), known, self.slots[position])
            codes = found if not position else _append_code(codes, found, len(known))
            if position:
                codes = _find_positions(self.combined_codes[position - 1], codes)
        codes[codes >= len(self.starts) - 1] = -1
        return codes

    def find_pairs(
        self, keys: Sequence[pa.Array], row_count: int, most_pairs: int
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yield pairs of equal keys in blocks of about `most_pairs`; one target row's pairs stay together."""
        codes = self.find_codes(keys, row_count)
        rows = np.flatnonzero(codes >= 0)
        first, last = self.starts[codes[rows]], self.starts[codes[rows] + 1]
        counts = last - first
        blocks = (np.cumsum(counts) - counts) // max(1, most_pairs)
        for block in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(blocks)) + 1):
            if len(block):
                yield np.repeat(rows[block], counts[block]), self.order[_expand(first[block], counts[block])]


def _expand(first: Integers, counts: Integers) -> Integers:
    """Return the numbers `first[i], first[i] + 1, …` of each range, one after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Integers = np.arange(total) + np.repeat(first - (ends - counts), counts)
    return positions


def _to_comparable(key: pa.Array) -> pa.Array:
    return to_ordinal_array(key) if pa.types.is_floating(key.type) else key


def _is_integral(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def _to_integers(array: pa.Array) -> Integers:
    """Return integers or dates as int64; null is 0."""
    whole = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
    filled = pc.fill_null(whole, 0) if whole.null_count else whole
    integers: Integers = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return integers


def _find_codes(array: pa.Array, known: pa.Array, slots: IntegerSlots | None) -> Integers:
    if slots is None:
        found: Integers = pc.fill_null(pc.index_in(array, value_set=known, skip_nulls=True), -1).to_numpy()
        return found.astype(np.int64)
    codes = find_integers(slots, _to_integers(known), _to_integers(array))
    if array.null_count:
        codes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return codes


def _append_code(codes: Integers, next_codes: Integers, size: int) -> Integers:
    combined: Integers = np.where((codes >= 0) & (next_codes >= 0), codes * size + next_codes, -1)
    return combined


def _find_positions(known: Integers, codes: Integers) -> Integers:
    if not len(known):
        return np.full(len(codes), -1, np.int64)
    positions = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    found: Integers = np.where(known[positions] == codes, positions, -1)
    return found


def find_repeated(rows: Integers) -> int | None:
    """Return the position of the first row number that equals the one before it; None if all are different."""
    repeated = np.flatnonzero(rows[1:] == rows[:-1])
    return int(repeated[0]) if len(repeated) else None


def choose_clauses(truths: Sequence[Mask | None], row_count: int) -> Integers:
    """Return each row's first clause whose `truths` (None: no condition) hold, or `NO_CLAUSE`."""
    chosen = np.full(row_count, NO_CLAUSE, np.int64)
    for number in reversed(range(len(truths))):
        truth = truths[number]
        chosen[slice(None) if truth is None else truth] = number
    return chosen


@frozen(eq=False)
class IntegerSlots:
    """A hash table of integers, built once; the sizes of both arrays are powers of two.

    Most integers are usually unknown: a small filter finds them before the table is read.
    """

    # the position of an integer in each used slot, -1 in free slots
    positions: npt.NDArray[np.int32]
    # a filter by hash; False means that the integer is certainly unknown
    is_possible: npt.NDArray[np.bool_]


def build_slots(known: Integers) -> IntegerSlots | None:
    """Build the hash table of distinct integers; None if too many of them collide."""
    slots = np.full(1 << max(4, (2 * len(known)).bit_length()), -1, np.int32)
    waiting = np.arange(len(known), dtype=np.int32)
    places = _hash(known, len(slots))
    # Steps become longer, because neighbors of full slots are often full. All slots are visited.
    for step in range(1, _MOST_PROBES + 1):
        if not len(waiting):
            break
        free = slots[places] < 0
        slots[places[free]] = waiting[free]
        lost = slots[places] != waiting
        waiting, places = waiting[lost], (places[lost] + step) & (len(slots) - 1)
    return None if len(waiting) else IntegerSlots(slots, _build_filter(known, len(slots)))


def _build_filter(known: Integers, slot_count: int) -> npt.NDArray[np.bool_]:
    is_possible = np.zeros(max(slot_count, min(slot_count * _FILTER_SHARE, _MOST_FILTER_PLACES)), np.bool_)
    is_possible[_hash(known, len(is_possible))] = True
    return is_possible


def find_integers(slots: IntegerSlots, known: Integers, wanted: Integers) -> Integers:
    """Return the position in `known` of each wanted integer, or -1; `slots` is the result of `build_slots(known)`."""
    found = np.full(len(wanted), -1, np.int64)
    if not len(known):
        return found
    rows: Integers = np.flatnonzero(slots.is_possible[_hash(wanted, len(slots.is_possible))])
    size = len(slots.positions)
    places = _hash(wanted[rows], size)
    step = 0
    while len(rows):
        step += 1
        candidates = slots.positions[places]
        used = candidates >= 0
        rows, places, candidates = rows[used], places[used], candidates[used]
        equal = known[candidates] == wanted[rows]
        found[rows[equal]] = candidates[equal]
        rows, places = rows[~equal], (places[~equal] + step) & (size - 1)
    return found


def _hash(values: Integers, size: int) -> Integers:
    bits = np.uint64(64 - (size.bit_length() - 1))
    places: Integers = ((values.view(np.uint64) * _MULTIPLIER) >> bits).view(np.int64)
    return places
