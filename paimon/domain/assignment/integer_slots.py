"""Find integers in a set that does not change, with a hash table of numpy arrays that is built once.

Arrow's `index_in` builds its table for each call, which takes longer than the lookup of one batch. Most integers are
usually unknown: a small filter finds them before the table is read.

Invariant: `find_integers` returns the position that `known.index(value)` would return, or -1.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from attrs import frozen

Integers: TypeAlias = npt.NDArray[np.int64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_PROBES = 64
"""Values that need more probes collide too often, by accident or on purpose; they are searched in another way."""

_FILTER_SHARE = 8
"""Places in the filter for each slot, so that few unknown integers pass it."""
_MOST_FILTER_PLACES = 1 << 24


@frozen(eq=False)
class IntegerSlots:
    """A hash table of integers; the sizes of both arrays are powers of two."""

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
