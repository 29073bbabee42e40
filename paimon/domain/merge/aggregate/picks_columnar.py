"""Functions that return one of the values of the column: only row numbers are computed, then one take.

Steps before the last SET or CLEAR are left out, except for functions that see all steps.

Invariant: equals `paimon.domain.merge.aggregate.picks_reference`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import from_stored_numbers, has_stored_numbers, to_stored_numbers
from paimon.domain.merge.aggregate.actions import ADD, ADD_OLDER, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps, drop_null_steps, mask_valid_steps


def last_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value of each group, which can be null; null after a retract.

    `steps` must include all steps, also those before the last SET or CLEAR.
    """
    if steps.plain:
        return steps.take_at(column, steps.last())
    places = steps.last(steps.actions != ADD_OLDER)
    if len(steps.actions):
        actions = steps.actions[places]
        places = np.where((actions == RETRACT) | (actions == CLEAR), -1, places)
    return steps.take_at(column, places)


def primary_key(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value of each group, whatever the row kind of its record."""
    return steps.take_at(column, steps.last(steps.actions != ADD_OLDER))


def last_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the last value that is not null after the last retract of one; otherwise the first of the older ones."""
    if steps.plain:
        return _pick_newest(column, steps)
    steps = drop_null_steps(column, steps)
    retracts = steps.retracts
    if retracts.any():
        steps = steps.of(np.arange(len(retracts)) > steps.last(retracts)[steps.groups])
    late = steps.actions == ADD_OLDER
    places = steps.last(~late)
    return steps.take_at(column, np.where(places < 0, steps.first(late), places) if late.any() else places)


def _pick_newest(column: pa.Array, steps: Steps) -> pa.Array:
    """Return the last value of each group that is not null, where steps only add; numbers are copied without a take."""
    valid = mask_valid_steps(column, steps)
    if not has_stored_numbers(column.type):
        return steps.take_at(column, steps.last(valid))
    numbers, groups = steps.gather(to_stored_numbers(column)), steps.groups
    if valid is not None:
        places = np.flatnonzero(valid)
        numbers, groups = numbers[places], groups[places]
    newest = np.zeros(steps.group_count, dtype=numbers.dtype)
    newest[groups] = numbers  # of equal groups numpy keeps the last
    found = np.zeros(steps.group_count, dtype=np.bool_)
    found[groups] = True
    return from_stored_numbers(newest, column.type, found)


def first_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the first value of each group, which can be null; records added as older come before it.

    `steps` must include all steps, also those before the last SET or CLEAR.
    """
    if steps.plain:
        return steps.take_at(column, steps.first())
    actions = steps.actions
    effective = (actions == ADD_OLDER) | (actions == SET) | (actions == CLEAR)
    begins = steps.first((actions == ADD) | (actions == ADD_OLDER))
    effective[begins[begins >= 0]] = True
    places = steps.last(effective)
    if len(actions):
        places = np.where(actions[places] == CLEAR, -1, places)
    return steps.take_at(column, places)


def first_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Return the first value that is not null, for groups of which every step adds."""
    return steps.take_at(column, steps.first(mask_valid_steps(column, steps)))
