"""Find the first, the last or the largest row of each group, without sorting.

Invariant: rows compare by their normalized keys. Of equally large rows, the last one is found.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paimon.domain.merge.ordering.merge_order import Mask, Rows
from paimon.domain.merge.ordering.normalized_keys import KeyWord


def find_last_positions(groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """Find the last position of each group; -1 for a group without a position in the mask."""
    places = np.arange(len(groups)) if mask is None else np.flatnonzero(mask)
    found = np.full(group_count, -1, dtype=np.int64)
    found[groups if mask is None else groups[places]] = places  # of equal groups numpy keeps the last
    return found


def find_first_positions(groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """Find the first position of each group; -1 for a group without a position in the mask."""
    places = np.arange(len(groups)) if mask is None else np.flatnonzero(mask)
    found = np.full(group_count, -1, dtype=np.int64)
    found[(groups if mask is None else groups[places])[::-1]] = places[::-1]
    return found


def find_largest_positions(keys: Iterable[KeyWord], groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """Find each group's position of the largest key, the last of equals; -1 without one in the mask."""
    for word in keys:
        own = word if mask is None else word & (-mask.astype(np.int64)).view(np.uint64)
        largest = np.zeros(group_count, dtype=np.uint64)
        np.maximum.at(largest, groups, own)
        equal = own == largest[groups]
        mask = equal if mask is None else mask & equal
    return find_last_positions(groups, group_count, mask)
