"""Find integers in a set that does not change, with a hash table of numpy arrays that is built once.

Arrow's `index_in` builds its table for each call, which takes longer than the lookup of one batch.

Invariant: `find_integers` returns the position that `known.index(value)` would return, or -1.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_PROBES = 64
"""Values that need more probes collide too often, by accident or on purpose; they are searched in another way."""


def build_slots(known: Integers) -> npt.NDArray[np.int32] | None:
    """Build the hash table of different integers.

    Parameters
    ----------
    known : array of int64
        The integers, all different.

    Returns
    -------
    array of int32, optional
        The position of an integer in each used slot, -1 in the others; the size is a power of two. None if too many
        integers collide.
    """
    slots = np.full(1 << max(4, (2 * len(known)).bit_length()), -1, np.int32)
    waiting = np.arange(len(known), dtype=np.int32)
    places = _hash(known, len(slots))
    for _ in range(_MOST_PROBES):
        if not len(waiting):
            return slots
        free = slots[places] < 0
        slots[places[free]] = waiting[free]
        lost = slots[places] != waiting
        waiting, places = waiting[lost], (places[lost] + 1) & (len(slots) - 1)
    return None if len(waiting) else slots


def find_integers(slots: npt.NDArray[np.int32], known: Integers, wanted: Integers) -> Integers:
    """Return the position of each integer in the known ones; -1 if it is not known.

    Parameters
    ----------
    slots : array of int32
        The result of `build_slots`.
    known : array of int64
        The integers of the table.
    wanted : array of int64
        The integers to find.

    Returns
    -------
    array of int64
        One position for each integer.
    """
    found = np.full(len(wanted), -1, np.int64)
    if not len(known):
        return found
    rows: Integers = np.arange(len(wanted))
    places = _hash(wanted, len(slots))
    while len(rows):
        candidates = slots[places]
        used = candidates >= 0
        rows, places, candidates = rows[used], places[used], candidates[used]
        equal = known[candidates] == wanted[rows]
        found[rows[equal]] = candidates[equal]
        rows, places = rows[~equal], (places[~equal] + 1) & (len(slots) - 1)
    return found


def _hash(values: Integers, size: int) -> Integers:
    bits = np.uint64(64 - (size.bit_length() - 1))
    places: Integers = ((values.view(np.uint64) * _MULTIPLIER) >> bits).astype(np.int64)
    return places
