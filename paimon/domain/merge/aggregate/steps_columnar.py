"""What happens to an aggregated column, as arrays: one step for each record that takes part.

Invariant: the steps of a group are in merge order; groups are in any order. A group without a step has the value null.
"""

# An engine decides what each record does to a column (`rule` has the actions), and hands all groups over at once: three
# arrays with an entry for each record. Here, two keys with five records; the value of the column is at `rows`.
#
#     rows      0     3     1     2     4        values of the column: 5 7 1 9 2
#     actions   ADD   ADD   SET   ADD   CLEAR
#     groups    0     0     1     1     1        sum of group 0: 5 + 9
#
# Before a function sees them, three kinds of steps go away, so that most functions only know ADD, SET and RETRACT:
#
# 1. SKIP steps (`drop_skips`): the record does not change the value.
# 2. Retracts, where the column ignores them; a function that cannot retract refuses them.
# 3. The past (`drop_past`): what comes before the last SET or CLEAR of a group cannot matter, and the CLEAR itself
#    leaves null, which is where each function starts. In group 1 nothing remains, so its value is null. A function that
#    could have refused a value of the past gets it in a check of its own (`select_past`).
#
# Then a function reduces all groups with one call of numpy: `ufunc.at` applies the steps one after the other, so floats
# are rounded as in Java, and groups need not be adjacent. Functions that pick a value compute its position instead, and
# take it from the column. `plain` steps (only ADD, and SET for singletons) skip all of this.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.buffers import from_stored_numbers, read_validity
from paimon.domain.merge.aggregate.rule import CLEAR, RETRACT, SET, SKIP
from paimon.domain.merge.ordering.key_groups import find_first_positions, find_last_positions
from paimon.domain.merge.ordering.merge_order import Mask, Rows, Scalar, argsort_keys
from paimon.domain.types.arrow_arrays import from_numpy

Actions = npt.NDArray[np.int8]
Numbers = npt.NDArray[Any]


class Steps(NamedTuple):
    """The steps of a column: what each record does to it, in merge order within each group."""

    # the row number of each step; None: all rows in their order
    rows: Rows | None
    # constants of `paimon.domain.merge.aggregate.rule`
    actions: Actions
    # the group id of each step
    groups: Rows
    group_count: int
    # whether every group has a step, and each step is an ADD, or a SET that is the only step of its group
    plain: bool = False

    def of(self, mask: Mask) -> Steps:
        """Return the steps in the mask."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask) if self.rows is None else self.rows[mask]
        return Steps(rows, self.actions[mask], self.groups[mask], self.group_count)

    def to_contiguous(self) -> Steps:
        """Return the same steps, group after group."""
        if (self.groups[1:] >= self.groups[:-1]).all():
            return self if self.rows is not None else self._replace(rows=np.arange(len(self.groups)))
        order = argsort_keys([self.groups.view(np.uint64)], len(self.groups))
        rows = order if self.rows is None else self.rows[order]
        return self._replace(rows=rows, actions=self.actions[order], groups=self.groups[order])

    @property
    def starts(self) -> Rows:
        """The position of the first step of each group that has one; for contiguous steps."""
        if len(self.groups) == 0:
            return np.empty(0, dtype=np.int64)
        change = np.empty(len(self.groups), dtype=np.bool_)
        change[0] = True
        np.not_equal(self.groups[1:], self.groups[:-1], out=change[1:])
        return np.flatnonzero(change)

    def gather(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return values by row as values by step."""
        return values if self.rows is None else values[self.rows]

    def take_column(self, column: pa.Array) -> pa.Array:
        """Return the value of the column for each step."""
        return column if self.rows is None else column.take(from_numpy(self.rows))

    def any_of(self, mask: Mask | None) -> Mask:
        """Return, for each group, whether one of its steps is in the mask; None: whether it has a step."""
        if mask is None and self.plain:
            return np.ones(self.group_count, dtype=np.bool_)
        if mask is None:
            return np.bincount(self.groups, minlength=self.group_count) > 0
        found = np.zeros(self.group_count, dtype=np.bool_)
        found[self.groups[mask]] = True
        return found

    def drop_skips(self) -> Steps:
        """Return the steps that change the value."""
        return self if self.plain else self.of(self.actions != SKIP)

    def drop_past(self) -> Steps:
        """Return the steps that matter: those from the last SET or CLEAR of each group on, without the CLEAR itself."""
        if self.plain:
            return self
        decisive = (self.actions == SET) | (self.actions == CLEAR)
        if not decisive.any():
            return self
        last = find_last_positions(self.groups, self.group_count, decisive)
        return self.of((np.arange(len(self.groups)) >= last[self.groups]) & (self.actions != CLEAR))

    def select_past(self) -> Steps:
        """Return the steps that `drop_past` leaves out; each stretch up to a SET or CLEAR is a group of its own."""
        steps = self.to_contiguous()
        decisive = (steps.actions == SET) | (steps.actions == CLEAR)
        last = find_last_positions(steps.groups, steps.group_count, decisive)
        begins = decisive.copy()
        begins[steps.starts] = True
        mask = (np.arange(len(steps.groups)) < last[steps.groups]) & (steps.actions != CLEAR)
        stretches = (np.cumsum(begins) - 1)[mask]
        left = steps.of(mask)
        numbers, groups = np.unique(stretches, return_inverse=True)
        return left._replace(groups=groups.astype(np.int64), group_count=len(numbers))

    def has_past(self) -> bool:
        """Return whether `drop_past` leaves out a step that changes the value."""
        last = find_last_positions(self.groups, self.group_count, (self.actions == SET) | (self.actions == CLEAR))
        return bool(((np.arange(len(self.groups)) < last[self.groups]) & (self.actions != CLEAR)).any())

    def take_at(self, column: pa.Array, places: Rows) -> pa.Array:
        """Return the values of the column for the steps at these positions; null where a position is -1."""
        return column.take(find_row_numbers(self.rows, places))

    def last(self, mask: Mask | None = None) -> Rows:
        """Return the position of the last step of each group, of those in the mask; -1 where there is none."""
        return find_last_positions(self.groups, self.group_count, mask)

    def first(self, mask: Mask | None = None) -> Rows:
        """Return the position of the first step of each group, of those in the mask; -1 where there is none."""
        return find_first_positions(self.groups, self.group_count, mask)

    @property
    def sets(self) -> Mask:
        """Which steps set the value."""
        mask: Mask = self.actions == SET
        return mask

    @property
    def retracts(self) -> Mask:
        """Which steps retract."""
        mask: Mask = self.actions == RETRACT
        return mask


def find_row_numbers(rows: Rows | None, places: Rows) -> pa.Array:
    """Return the row numbers at positions in merge order; null where a position is -1. None: all rows in order."""
    found = places if rows is None or len(rows) == 0 else rows[places]
    return from_stored_numbers(found, pa.int64(), places >= 0)


def reduce_groups(operation: np.ufunc, neutral: float, values: Numbers, steps: Steps) -> Numbers:
    """Reduce each group's steps with an operation from its `neutral`, which groups without steps keep."""
    found = np.full(steps.group_count, neutral, dtype=values.dtype)
    with np.errstate(all="ignore"):
        operation.at(found, steps.groups, values)
    return found


def fill_neutral(values: Numbers, valid: Mask | None, neutral: float) -> Numbers:
    """Return the values with `neutral` in place of nulls; `valid` is None if there are no nulls."""
    return values if valid is None else np.where(valid, values, values.dtype.type(neutral))


def set_missing_null(values: npt.NDArray[Any] | pa.Array, found: Mask) -> pa.Array:
    """Return one value a group, with null for groups that are not found."""
    if isinstance(values, np.ndarray):
        return from_numpy(values) if found.all() else from_numpy(values, found)
    return values if found.all() else values.take(from_numpy(np.arange(len(values)), found))


def scatter_to_groups(values: pa.Array, groups: Rows, count: int) -> pa.Array:
    """Return values of some groups as an array of all groups, with null for the others; `groups` has each id once."""
    if len(groups) == count:
        return values
    places = np.zeros(count, dtype=np.int64)
    missing = np.ones(count, dtype=np.bool_)
    places[groups] = np.arange(len(groups))
    missing[groups] = False
    return values.take(from_numpy(places, ~missing))


def mask_valid_steps(column: pa.Array, steps: Steps) -> Mask | None:
    """Mark the steps that have a value; None where all have one."""
    return None if column.null_count == 0 else steps.gather(read_validity(column))


def drop_null_steps(column: pa.Array, steps: Steps) -> Steps:
    """Return the steps that have a value."""
    valid = mask_valid_steps(column, steps)
    return steps if valid is None else steps.of(valid)
