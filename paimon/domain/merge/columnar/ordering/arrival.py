"""Rows of a merge that need no ordering: they stand in order of age, and each knows the number of its key.

Law: `numbers` ascend as keys do; of one key a later row is newer. Where keys are dense enough to be slots of an array
nothing is sorted. Twin: `paimon.domain.merge.columnar.ordering.order`, which orders whatever comes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.columnar.ordering.largest import first_place, last_place
from paimon.domain.merge.columnar.ordering.newest import SLOTS_PER_ROW
from paimon.domain.merge.columnar.ordering.order import Groups, Mask, Rows, Scalar, retracts, sorted_rows, stands_by_age
from paimon.domain.merge.columnar.ordering.words import Words, concatenated, packed, parts_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import LEVEL


class Arrival(NamedTuple):
    """The number of each row's key, and the last row of each key."""

    numbers: Rows
    last: Rows

    @property
    def key_count(self) -> int:
        """How many keys there are."""
        return len(self.last)

    @property
    def lone(self) -> Mask:
        """Which keys came as a single record."""
        mask: Mask = np.bincount(self.numbers, minlength=self.key_count) == 1
        return mask

    @property
    def all_lone(self) -> bool:
        """Whether every key came as a single record."""
        return len(self.numbers) == self.key_count

    @property
    def first(self) -> Rows:
        """The first row of each key."""
        return first_place(self.numbers, self.key_count)

    @property
    def alone(self) -> Rows:
        """The places of the lone records."""
        return self.last[self.lone]

    @property
    def rows(self) -> Rows | None:
        """None: rows stand in merge order."""
        return None

    def of_row(self) -> Rows:
        """The number of each row's key."""
        return self.numbers

    def placed(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """What belongs to each row, as it is."""
        return values

    def ordered(self) -> Groups:
        """The same records, key after key."""
        order = sorted_rows([self.numbers.view(np.uint64)], len(self.numbers))
        sizes = np.bincount(self.numbers, minlength=self.key_count)
        return Groups(order, np.cumsum(sizes) - sizes, self.lone)


Grouping = Groups | Arrival
"""Records by key: ordered, or as they stand."""


def arrival_of(table: pa.Table, spec: MergeSpec) -> Arrival | None:
    """Number the keys of a table; None where its rows must be ordered, or some are not shown to the engine."""
    if spec.sequence_fields or table.num_rows == 0 or (spec.lookup and LEVEL.name in table.column_names):
        return None
    if (spec.ignore_delete or spec.retracts_first) and retracts(table).any():
        return None
    words = packed(part for column in concatenated([table[n] for n in spec.key_names]) for part in parts_of(column))
    if not stands_by_age(table, words):
        return None
    numbers, count = _numbers(words, table.num_rows)
    return Arrival(numbers, last_place(numbers, count))


def _numbers(words: list[Words], rows: int) -> tuple[Rows, int]:
    if len(words) == 1 and int(words[0].max()) < SLOTS_PER_ROW * rows:
        slots = words[0].view(np.int64)
        taken = np.zeros(int(slots.max()) + 1, dtype=np.int64)
        taken[slots] = 1
        ends = np.cumsum(taken, out=taken)
        numbers = ends[slots]
        numbers -= 1
        return numbers, int(ends[-1])
    order = sorted_rows(words, rows)
    change = np.zeros(rows, dtype=np.bool_)
    for word in words:
        own = word[order]
        change[1:] |= own[1:] != own[:-1]
    steps = np.cumsum(change)
    numbers = np.empty(rows, dtype=np.int64)
    numbers[order] = steps
    return numbers, int(steps[-1]) + 1
