"""Number the keys of rows that are in order of age already, so that they need not be sorted.

If keys are dense enough to be slots of an array, nothing is sorted at all.

Invariant: key numbers ascend as keys do. Of two rows with the same key, the later one is newer. For rows in any order,
`paimon.domain.merge.ordering.merge_order` gives the same groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.group_maximum import find_first_places, find_last_places
from paimon.domain.merge.ordering.merge_order import (
    Groups,
    Mask,
    Rows,
    Scalar,
    argsort_words,
    is_ordered_by_age,
    mask_retracts,
)
from paimon.domain.merge.ordering.newest_rows import SLOTS_PER_ROW
from paimon.domain.merge.ordering.normalized_keys import Words
from paimon.domain.merge.ordering.packed_integers import pack_key_columns
from paimon.domain.types.system_columns import LEVEL


class Arrival(NamedTuple):
    """The key number of each row, and the last row of each key."""

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
        return find_first_places(self.numbers, self.key_count)

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
        order = argsort_words([self.numbers.view(np.uint64)], len(self.numbers))
        sizes = np.bincount(self.numbers, minlength=self.key_count)
        return Groups(order, np.cumsum(sizes) - sizes, self.singletons)


Grouping = Groups | Arrival
"""The records by key: ordered by key, or in order of age."""


def number_keys_by_arrival(table: pa.Table, spec: MergeSpec) -> Arrival | None:
    """Assign numbers to the keys of a table without sorting its rows.

    Returns None if the rows are not in order of age already, or if the engine does not see some of them.
    """
    if spec.sequence_fields or table.num_rows == 0 or (spec.lookup and LEVEL.name in table.column_names):
        return None
    if (spec.ignore_delete or spec.retracts_first) and mask_retracts(table).any():
        return None
    words = pack_key_columns([table[n] for n in spec.key_names])
    if not is_ordered_by_age(table, words):
        return None
    numbers, count = _numbers(words, table.num_rows)
    return Arrival(numbers, find_last_places(numbers, count))


def _numbers(words: list[Words], rows: int) -> tuple[Rows, int]:
    """Return the number of each row's key, and the number of keys."""
    if len(words) == 1 and int(words[0].max()) < SLOTS_PER_ROW * rows:
        slots = words[0].view(np.int64)
        taken = np.zeros(int(slots.max()) + 1, dtype=np.int64)
        taken[slots] = 1
        ends = np.cumsum(taken, out=taken)
        numbers = ends[slots]
        numbers -= 1
        return numbers, int(ends[-1])
    order = argsort_words(words, rows)
    change = np.zeros(rows, dtype=np.bool_)
    for word in words:
        own = word[order]
        change[1:] |= own[1:] != own[:-1]
    steps = np.cumsum(change)
    numbers = np.empty(rows, dtype=np.int64)
    numbers[order] = steps
    return numbers, int(steps[-1]) + 1
