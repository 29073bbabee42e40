"""listagg and collect on columns: lists are cut out of values in the order in which they are joined.

Law: late values stand before the others, the latest of them first. Twins: `…reference.texts`, `…reference.lists`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.merge.aggregate.columnar.steps import Steps, spread, with_values
from paimon.domain.merge.aggregate.deeds import ADD_OLDER
from paimon.domain.merge.aggregate.rule import Aggregate


def listagg(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The texts joined; empty ones join nothing, but one that is alone stays."""
    steps = with_values(column, steps).contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    groups = steps.groups[steps.starts]
    filled = steps.placed(np.asarray(pc.binary_length(column).fill_null(0))) > 0
    texts = _late_first(steps.of(filled))
    sizes = np.bincount(texts.groups, minlength=steps.group_count)[groups]
    offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, texts.taken(column))
    return spread(pc.binary_join(lists, aggregate.delimiter).cast(column.type), groups, steps.group_count)


def _late_first(steps: Steps) -> Steps:
    late = steps.deeds == ADD_OLDER
    if not late.any():
        return steps
    places = np.arange(len(late))
    order = np.lexsort((np.where(late, -places, places), ~late, steps.groups))
    rows = order if steps.rows is None else steps.rows[order]
    return Steps(rows, steps.deeds[order], steps.groups[order], steps.group_count)


def collect(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """The lists one after another, without retracts; null where all of them are."""
    steps = with_values(column, steps).contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    lists = steps.taken(column)
    starts = steps.starts
    bounds = np.asarray(lists.offsets)
    offsets = pa.array(np.append(bounds[starts], bounds[-1]).astype(np.int32))
    joined = pa.ListArray.from_arrays(offsets, lists.values, type=column.type)
    return spread(joined, steps.groups[starts], steps.group_count)
