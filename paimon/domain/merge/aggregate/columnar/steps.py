"""What happens to an aggregated column, as arrays: one step a record that takes part, grouped by key.

Law: steps stand in the order of the merge; `groups` ascends; a group without a step has a null value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.aggregate.deeds import CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.columnar.order import Mask, Rows

Deeds = npt.NDArray[np.int8]


class Steps(NamedTuple):
    """Row numbers in the column, what each row does, the group of each, and how many groups there are."""

    rows: Rows
    deeds: Deeds
    groups: Rows
    group_count: int

    def of(self, mask: Mask) -> Steps:
        """Only some of the steps."""
        return self if mask.all() else Steps(self.rows[mask], self.deeds[mask], self.groups[mask], self.group_count)

    @property
    def starts(self) -> Rows:
        """Where each group that has a step begins."""
        if len(self.groups) == 0:
            return np.empty(0, dtype=np.int64)
        change = np.empty(len(self.groups), dtype=np.bool_)
        change[0] = True
        np.not_equal(self.groups[1:], self.groups[:-1], out=change[1:])
        return np.flatnonzero(change)

    def any_of(self, mask: Mask) -> Mask:
        """For each group, also those without a step, whether one of its steps is in the mask."""
        found = np.zeros(self.group_count, dtype=np.bool_)
        found[self.groups[mask]] = True
        return found

    def without_skips(self) -> Steps:
        """Only steps that do something."""
        return self.of(self.deeds != SKIP)

    def without_past(self) -> Steps:
        """Only steps that still matter: what precedes a value that was set or cleared does not."""
        decisive = (self.deeds == SET) | (self.deeds == CLEAR)
        found = np.flatnonzero(decisive)
        later = found[found > 0]
        if not (self.groups[later] == self.groups[later - 1]).any() and not (self.deeds[found] == CLEAR).any():
            return self  # values were set where groups begin: nothing precedes them
        places = np.arange(len(self.rows))
        last = np.full(self.group_count, -1, dtype=np.int64)
        last[self.groups[found]] = found  # of equal groups numpy keeps the last
        return self.of((places >= last[self.groups]) & (self.deeds != CLEAR))

    def past(self) -> Steps:
        """What `without_past` leaves out; each stretch up to the next set or cleared value is a group of its own."""
        decisive = (self.deeds == SET) | (self.deeds == CLEAR)
        found = np.flatnonzero(decisive)
        last = np.full(self.group_count, -1, dtype=np.int64)
        last[self.groups[found]] = found
        begins = decisive.copy()
        begins[self.starts] = True
        stretches = np.cumsum(begins) - 1
        mask = (np.arange(len(self.rows)) < last[self.groups]) & (self.deeds != CLEAR)
        numbers, groups = np.unique(stretches[mask], return_inverse=True)
        return Steps(self.rows[mask], self.deeds[mask], groups.astype(np.int64), len(numbers))

    def picked(self, places: Rows, found: Rows) -> pa.Array:
        """Row numbers of the steps at `places`, which belong to the groups `found`; null for all other groups."""
        picked = np.zeros(self.group_count, dtype=np.int64)
        missing = np.ones(self.group_count, dtype=np.bool_)
        picked[found] = self.rows[places]
        missing[found] = False
        return pa.array(picked, mask=missing)

    def last(self, mask: Mask) -> tuple[Rows, Rows]:
        """The place of the last step of each group that is in the mask, and those groups."""
        return _ends_of(np.flatnonzero(mask), self.groups, last=True)

    def first(self, mask: Mask) -> tuple[Rows, Rows]:
        """The place of the first step of each group that is in the mask, and those groups."""
        return _ends_of(np.flatnonzero(mask), self.groups, last=False)

    @property
    def sets(self) -> Mask:
        """Which steps take a value as it is."""
        mask: Mask = self.deeds == SET
        return mask

    @property
    def retracts(self) -> Mask:
        """Which steps retract."""
        mask: Mask = self.deeds == RETRACT
        return mask


def _ends_of(places: Rows, groups: Rows, last: bool) -> tuple[Rows, Rows]:
    numbers = groups[places]
    edge = np.ones(len(places), dtype=np.bool_)
    change = numbers[1:] != numbers[:-1]
    if last:
        edge[:-1] = change
    else:
        edge[1:] = change
    return places[edge], numbers[edge]


def spread(values: pa.Array, groups: Rows, count: int) -> pa.Array:
    """Values of some groups as an array of all groups, null for the others."""
    if len(groups) == count:
        return values
    places = np.zeros(count, dtype=np.int64)
    missing = np.ones(count, dtype=np.bool_)
    places[groups] = np.arange(len(groups))
    missing[groups] = False
    return values.take(pa.array(places, mask=missing))


def valid_steps(column: pa.Array, steps: Steps) -> Mask:
    """Which steps have a value."""
    if column.null_count == 0:
        return np.ones(len(steps.rows), dtype=np.bool_)
    mask: Mask = np.asarray(column.is_valid())[steps.rows]
    return mask
