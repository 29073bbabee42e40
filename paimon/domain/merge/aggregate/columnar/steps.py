"""What happens to an aggregated column, as arrays: one step a record that takes part.

Law: steps of one group stand in the order of the merge, groups among each other anyhow; a group without a step has a
null value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.stored import from_stored, validity
from paimon.domain.merge.aggregate.deeds import CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.columnar.ordering.largest import first_place, last_place
from paimon.domain.merge.columnar.ordering.order import Mask, Rows, Scalar, sorted_rows

Deeds = npt.NDArray[np.int8]


class Steps(NamedTuple):
    """Row numbers in the column (None: all rows as they stand), what each row does, its group, and how many groups.

    `plain` steps only add, or set what is the only step of its group.
    """

    rows: Rows | None
    deeds: Deeds
    groups: Rows
    group_count: int
    plain: bool = False

    def of(self, mask: Mask) -> Steps:
        """Only some of the steps."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask) if self.rows is None else self.rows[mask]
        return self._replace(rows=rows, deeds=self.deeds[mask], groups=self.groups[mask])

    def contiguous(self) -> Steps:
        """The same steps, group after group."""
        if (self.groups[1:] >= self.groups[:-1]).all():
            return self if self.rows is not None else self._replace(rows=np.arange(len(self.groups)))
        order = sorted_rows([self.groups.view(np.uint64)], len(self.groups))
        rows = order if self.rows is None else self.rows[order]
        return self._replace(rows=rows, deeds=self.deeds[order], groups=self.groups[order])

    @property
    def starts(self) -> Rows:
        """Where each group that has a step begins; of contiguous steps."""
        if len(self.groups) == 0:
            return np.empty(0, dtype=np.int64)
        change = np.empty(len(self.groups), dtype=np.bool_)
        change[0] = True
        np.not_equal(self.groups[1:], self.groups[:-1], out=change[1:])
        return np.flatnonzero(change)

    def placed(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The value of each step, out of those of the column."""
        return values if self.rows is None else values[self.rows]

    def taken(self, column: pa.Array) -> pa.Array:
        """The column's value of each step."""
        return column if self.rows is None else column.take(pa.array(self.rows))

    def any_of(self, mask: Mask | None) -> Mask:
        """For each group, also those without a step, whether one of its steps is in the mask (None: whether any)."""
        if mask is None:
            return np.bincount(self.groups, minlength=self.group_count) > 0
        found = np.zeros(self.group_count, dtype=np.bool_)
        found[self.groups[mask]] = True
        return found

    def without_skips(self) -> Steps:
        """Only steps that do something."""
        return self if self.plain else self.of(self.deeds != SKIP)

    def without_past(self) -> Steps:
        """Only steps that still matter: what precedes a value that was set or cleared does not."""
        if self.plain:
            return self
        decisive = (self.deeds == SET) | (self.deeds == CLEAR)
        if not decisive.any():
            return self
        last = last_place(self.groups, self.group_count, decisive)
        return self.of((np.arange(len(self.groups)) >= last[self.groups]) & (self.deeds != CLEAR))

    def past(self) -> Steps:
        """What `without_past` leaves out; each stretch up to the next set or cleared value is a group of its own."""
        steps = self.contiguous()
        decisive = (steps.deeds == SET) | (steps.deeds == CLEAR)
        last = last_place(steps.groups, steps.group_count, decisive)
        begins = decisive.copy()
        begins[steps.starts] = True
        mask = (np.arange(len(steps.groups)) < last[steps.groups]) & (steps.deeds != CLEAR)
        stretches = (np.cumsum(begins) - 1)[mask]
        left = steps.of(mask)
        numbers, groups = np.unique(stretches, return_inverse=True)
        return left._replace(groups=groups.astype(np.int64), group_count=len(numbers))

    def has_past(self) -> bool:
        """Whether `without_past` leaves out anything that did something."""
        last = last_place(self.groups, self.group_count, (self.deeds == SET) | (self.deeds == CLEAR))
        return bool(((np.arange(len(self.groups)) < last[self.groups]) & (self.deeds != CLEAR)).any())

    def picked(self, places: Rows) -> pa.Array:
        """Row numbers of the steps at `places`; null where a place is -1."""
        rows = places if self.rows is None or len(self.rows) == 0 else self.rows[places]
        return from_stored(rows, pa.int64(), places >= 0)

    def last(self, mask: Mask | None = None) -> Rows:
        """The place of the last step of each group, of those in the mask; -1 where there is none."""
        return last_place(self.groups, self.group_count, mask)

    def first(self, mask: Mask | None = None) -> Rows:
        """The place of the first step of each group, of those in the mask; -1 where there is none."""
        return first_place(self.groups, self.group_count, mask)

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


def present(values: npt.NDArray[Any] | pa.Array, found: Mask) -> pa.Array:
    """The values of all groups, null for those that are not found."""
    if isinstance(values, np.ndarray):
        return pa.array(values) if found.all() else pa.array(values, mask=~found)
    return values if found.all() else values.take(pa.array(np.arange(len(values)), mask=~found))


def spread(values: pa.Array, groups: Rows, count: int) -> pa.Array:
    """Values of some groups as an array of all groups, null for the others."""
    if len(groups) == count:
        return values
    places = np.zeros(count, dtype=np.int64)
    missing = np.ones(count, dtype=np.bool_)
    places[groups] = np.arange(len(groups))
    missing[groups] = False
    return values.take(pa.array(places, mask=missing))


def valid_steps(column: pa.Array, steps: Steps) -> Mask | None:
    """Which steps have a value; None where all have."""
    return None if column.null_count == 0 else steps.placed(validity(column))


def with_values(column: pa.Array, steps: Steps) -> Steps:
    """Only the steps that have a value."""
    valid = valid_steps(column, steps)
    return steps if valid is None else steps.of(valid)
