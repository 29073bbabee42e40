"""Functions that answer one of the values they saw, on columns: only row numbers are computed, then one take.

Law: steps before the last SET or CLEAR are gone, but for `last_value`, which does not look at them, and the `first`
functions, which remember that they have begun.
Twin: `paimon.domain.merge.aggregate.reference.picks`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.merge.aggregate.columnar.steps import Steps, valid_steps
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.order import Mask


def last_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value, also a null; nothing after a retract. `steps` may have their past."""
    places, groups = steps.last(steps.deeds != ADD_OLDER)
    deeds = steps.deeds[places]
    kept = (deeds != RETRACT) & (deeds != CLEAR)
    return column.take(steps.picked(places[kept], groups[kept]))


def primary_key(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value, whatever brought it."""
    return column.take(steps.picked(*steps.last(steps.deeds != ADD_OLDER)))


def last_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The last value that is not null after the last retract of one; else the first of the late ones."""
    steps = steps.of(valid_steps(column, steps))
    retracts = steps.retracts
    if retracts.any():
        steps = steps.of(_after_last(retracts, steps))
    in_order = steps.deeds != ADD_OLDER
    if in_order.all():
        return column.take(steps.picked(*steps.last(in_order)))
    late = steps.of(~steps.any_of(in_order)[steps.groups] | in_order)
    late_places, late_groups = late.first(late.deeds == ADD_OLDER)
    places, groups = late.last(late.deeds != ADD_OLDER)
    return column.take(late.picked(np.append(places, late_places), np.append(groups, late_groups)))


def _after_last(mask: Mask, steps: Steps) -> Mask:
    last = np.full(steps.group_count, -1, dtype=np.int64)
    last[steps.groups[mask]] = np.flatnonzero(mask)
    after: Mask = np.arange(len(steps.rows)) > last[steps.groups]
    return after


def first_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The first value, also a null; late ones come before it. `steps` are all, with their past."""
    deeds = steps.deeds
    effective = (deeds == ADD_OLDER) | (deeds == SET) | (deeds == CLEAR)
    begins, _ = steps.first((deeds == ADD) | (deeds == ADD_OLDER))
    effective[begins] = True
    places, groups = steps.last(effective)
    kept = deeds[places] != CLEAR
    return column.take(steps.picked(places[kept], groups[kept]))


def first_non_null_value(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The first value that is not null; groups with late or set values are not for this function."""
    return column.take(steps.picked(*steps.first(valid_steps(column, steps))))
