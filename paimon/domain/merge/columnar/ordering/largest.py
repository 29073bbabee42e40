"""Which row of each group is the largest, without sorting.

Law: rows compare by their words from left to right; of equally large ones the last is found.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paimon.domain.merge.columnar.ordering.order import Mask, Rows
from paimon.domain.merge.columnar.ordering.words import Words


def last_place(groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """The last place of each group, of those in the mask; -1 where a group has none."""
    places = np.arange(len(groups)) if mask is None else np.flatnonzero(mask)
    found = np.full(group_count, -1, dtype=np.int64)
    found[groups if mask is None else groups[places]] = places  # of equal groups numpy keeps the last
    return found


def first_place(groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """The first place of each group, of those in the mask; -1 where a group has none."""
    places = np.arange(len(groups)) if mask is None else np.flatnonzero(mask)
    found = np.full(group_count, -1, dtype=np.int64)
    found[(groups if mask is None else groups[places])[::-1]] = places[::-1]
    return found


def largest_place(words: Iterable[Words], groups: Rows, group_count: int, mask: Mask | None = None) -> Rows:
    """The last of the places of each group, of those in the mask, with the largest words; -1 where it has none."""
    for word in words:
        own = word if mask is None else word & (-mask.astype(np.int64)).view(np.uint64)
        largest = np.zeros(group_count, dtype=np.uint64)
        np.maximum.at(largest, groups, own)
        equal = own == largest[groups]
        mask = equal if mask is None else mask & equal
    return last_place(groups, group_count, mask)
