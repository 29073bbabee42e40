"""Number the keys of rows, and find the first, last, largest or newest row of each group, without sorting if possible.

Rows that are in order of age already are grouped without being sorted. Their newest rows need no sort where keys are
dense enough to be slots of an array. No row is moved: a filter keeps the order of each file.

Invariant: key numbers ascend as keys do. `group_rows_by_age` returns the groups of `group_rows_by_key` (`merge_order`).
`number_keys` is for the key index of cross-partition tables: null equals null, all NaN are equal, and -0.0 does not
equal 0.0. The newest rows are those that `merge` keeps with the deduplicate engine and row numbers as sequence numbers.
Of equally large rows, the last one is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.java_float_order import unify_nans
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import (
    Groups,
    Mask,
    Rows,
    Scalar,
    argsort_keys,
    is_ordered_by_age,
    mark_key_starts,
    mask_retracts,
    number_keys_in_order,
)
from paimon.domain.merge.ordering.normalized_keys import KeyWord, pack_key_columns, pack_keys, to_key_parts
from paimon.domain.types.system_columns import LEVEL


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


SLOTS_PER_ROW = 8
"""How many slots a row may cost before sorting is cheaper."""


def mask_newest_rows(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Mask:
    """Mark the last row of each key, given the key columns; chunks with strictly ascending keys are faster."""
    keys = pack_key_columns(columns)
    rows = len(columns[0])
    if not keys:
        mask = np.zeros(rows, dtype=np.bool_)
        mask[-1:] = True
        return mask
    highest = int(keys[0].max())
    if len(keys) > 1 or highest >= SLOTS_PER_ROW * rows:
        return _mask_last_in_order(keys, rows)
    slots = keys[0].view(np.int64)
    sizes = [len(chunk) for chunk in columns[0].chunks] if isinstance(columns[0], pa.ChunkedArray) else [rows]
    pieces = np.split(slots, np.cumsum(sizes)[:-1])
    if all((piece[1:] > piece[:-1]).all() for piece in pieces):
        return _mask_unseen_later(pieces, highest + 1)
    return _mask_last_in_slot(slots, highest + 1)


def _mask_unseen_later(pieces: Sequence[Rows], slots: int) -> Mask:
    """Mark the last row of each slot, where a piece holds a key once: from the newest piece to the oldest."""
    unseen = np.ones(slots, dtype=np.bool_)
    masks: list[Mask] = []
    for piece in reversed(pieces):
        masks.append(unseen[piece])
        unseen[piece] = False
    return np.concatenate(masks[::-1])


def _mask_last_in_slot(slots: Rows, count: int) -> Mask:
    numbers = np.arange(len(slots), dtype=np.int32 if len(slots) < 1 << 31 else np.int64)
    last = np.empty(count, dtype=numbers.dtype)
    last[slots] = numbers  # of equal slots numpy keeps the last
    mask: Mask = last[slots] == numbers
    return mask


def _mask_last_in_order(keys: list[KeyWord], rows: int) -> Mask:
    order = argsort_keys(keys, rows)
    mask = np.empty(rows, dtype=np.bool_)
    mask[order] = np.append(mark_key_starts(keys, order)[1:], True)
    return mask


# A merge needs groups of rows with equal keys, and the order of age in each. Where rows are in order of age already
# (one flush, or files that follow each other), nothing has to be sorted: it is enough to number the keys.
#
#     key (one word)   4  0  2  4  0         the largest is below 8 slots for each row: dense
#     slots            1  0  1  0  1         a 1 for each key that occurs
#     ranks            0  .  1  .  2         key 4 is the third one, key 2 the second one
#     numbers          2  0  1  2  0         of row 0, 1, 2, 3, 4
#     last             4  2  3               the last row of each key, by number; numpy keeps the last assignment
#
# Ids and dates are mostly that dense. If they are not, or a key needs several words, rows are sorted by key to find the
# numbers (`mark_key_starts`), but still not moved. `GroupsByAge` and `Groups` (which is ordered by key) have the same
# members, so that an engine takes either; `to_key_order` converts the first to the second.


class GroupsByAge(NamedTuple):
    """Rows in order of age, not moved: the key number of each row, and the last row of each key."""

    numbers: Rows
    last: Rows

    @property
    def key_count(self) -> int:
        """The number of keys."""
        return len(self.last)

    @property
    def singletons(self) -> Mask:
        """Which keys have exactly one record."""
        mask: Mask = np.bincount(self.numbers, minlength=self.key_count) == 1
        return mask

    @property
    def all_singletons(self) -> bool:
        """Whether every key has exactly one record."""
        return len(self.numbers) == self.key_count

    @property
    def first(self) -> Rows:
        """The first row of each key."""
        return find_first_positions(self.numbers, self.key_count)

    @property
    def singleton_positions(self) -> Rows:
        """The positions of the singletons."""
        return self.last[self.singletons]

    @property
    def rows(self) -> Rows | None:
        """None: rows are in merge order."""
        return None

    def group_ids(self) -> Rows:
        """Return the key number of each row."""
        return self.numbers

    def gather(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return values by row unchanged: positions are row numbers."""
        return values

    def to_key_order(self) -> Groups:
        """Return the same records ordered by key."""
        order = argsort_keys([self.numbers.view(np.uint64)], len(self.numbers))
        sizes = np.bincount(self.numbers, minlength=self.key_count)
        return Groups(order, np.cumsum(sizes) - sizes, self.singletons)


Grouping = Groups | GroupsByAge
"""The records by key: ordered by key, or in order of age."""


def group_rows_by_age(table: pa.Table, spec: MergeSpec) -> GroupsByAge | None:
    """Group rows by key without a sort; None if not in order of age, or if the engine skips some."""
    if spec.sequence_fields or table.num_rows == 0 or (spec.lookup and LEVEL.name in table.column_names):
        return None
    if (spec.ignore_delete or spec.retracts_first) and mask_retracts(table).any():
        return None
    keys = pack_key_columns([table[n] for n in spec.key_names])
    if not is_ordered_by_age(table, keys):
        return None
    numbers, count = _number_keys(keys, table.num_rows)
    return GroupsByAge(numbers, find_last_positions(numbers, count))


def _number_keys(keys: list[KeyWord], rows: int) -> tuple[Rows, int]:
    """Return the number of each row's key, and the number of keys."""
    if len(keys) == 1 and int(keys[0].max()) < SLOTS_PER_ROW * rows:
        slots = keys[0].view(np.int64)
        taken = np.zeros(int(slots.max()) + 1, dtype=np.bool_)
        taken[slots] = True
        used = np.flatnonzero(taken)
        numbers = np.empty(len(taken), dtype=np.int32 if rows < 1 << 31 else np.int64)
        numbers[used] = np.arange(len(used))
        return numbers[slots].astype(np.int64, copy=False), len(used)
    order = argsort_keys(keys, rows)
    is_start = mark_key_starts(keys, order)
    return number_keys_in_order(order, is_start), int(np.count_nonzero(is_start))


class KeyNumbers(NamedTuple):
    """The number of the key of each row, from 0 on without gaps, and the first row of each key."""

    numbers: Rows
    first_rows: Rows


def number_keys(columns: Sequence[pa.Array]) -> KeyNumbers:
    """Assign numbers to the distinct keys in ascending key order; the key columns have no chunks."""
    keys = pack_keys([part for column in columns for part in to_key_parts(unify_nans(column))])
    order = argsort_keys(keys, len(columns[0]))
    is_start = mark_key_starts(keys, order)
    return KeyNumbers(number_keys_in_order(order, is_start), order[is_start])
