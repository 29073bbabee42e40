"""Functions that answer one of the values they saw, on columns: only row numbers are computed, then one take.

Law: steps before the last SET or CLEAR are gone, but for `last_value`, which does not look at them, and the `first`
functions, which remember that they have begun.
Twin: `paimon.domain.merge.aggregate.reference.picks`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.columns.stored import from_stored, has_stored_numbers, stored
from paimon.domain.merge.aggregate.columnar.steps import Steps, valid_steps, with_values
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.rule import Aggregate


def last_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value, also a null; nothing after a retract. `steps` may have their past."""
    if steps.plain:
        return column.take(steps.picked(steps.last()))
    places = steps.last(steps.deeds != ADD_OLDER)
    if len(steps.deeds):
        deeds = steps.deeds[places]
        places = np.where((deeds == RETRACT) | (deeds == CLEAR), -1, places)
    return column.take(steps.picked(places))


def primary_key(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value, whatever brought it."""
    return column.take(steps.picked(steps.last(steps.deeds != ADD_OLDER)))


def last_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value that is not null after the last retract of one; else the first of the late ones."""
    if steps.plain:
        return _newest(column, steps)
    steps = with_values(column, steps)
    retracts = steps.retracts
    if retracts.any():
        steps = steps.of(np.arange(len(retracts)) > steps.last(retracts)[steps.groups])
    late = steps.deeds == ADD_OLDER
    places = steps.last(~late)
    return column.take(steps.picked(np.where(places < 0, steps.first(late), places) if late.any() else places))


def _newest(column: pa.Array, steps: Steps) -> pa.Array:
    """The last value of each group that is not null, where steps only add: numbers are put in place as they are."""
    valid = valid_steps(column, steps)
    if not has_stored_numbers(column.type):
        return column.take(steps.picked(steps.last(valid)))
    numbers, groups = steps.placed(stored(column)), steps.groups
    if valid is not None:
        places = np.flatnonzero(valid)
        numbers, groups = numbers[places], groups[places]
    newest = np.zeros(steps.group_count, dtype=numbers.dtype)
    newest[groups] = numbers  # of equal groups numpy keeps the last
    found = np.zeros(steps.group_count, dtype=np.bool_)
    found[groups] = True
    return from_stored(newest, column.type, found)


def first_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The first value, also a null; late ones come before it. `steps` are all, with their past."""
    if steps.plain:
        return column.take(steps.picked(steps.first()))
    deeds = steps.deeds
    effective = (deeds == ADD_OLDER) | (deeds == SET) | (deeds == CLEAR)
    begins = steps.first((deeds == ADD) | (deeds == ADD_OLDER))
    effective[begins[begins >= 0]] = True
    places = steps.last(effective)
    if len(deeds):
        places = np.where(deeds[places] == CLEAR, -1, places)
    return column.take(steps.picked(places))


def first_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The first value that is not null; groups with late or set values are not for this function."""
    return column.take(steps.picked(steps.first(valid_steps(column, steps))))
