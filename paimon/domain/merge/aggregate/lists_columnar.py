"""listagg and collect on columns: lists are sliced out of the values in the order in which they are joined.

Invariant: older values precede the others, the latest of them first. Equals
`paimon.domain.merge.aggregate.lists_reference`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.merge.aggregate.actions import ADD_OLDER
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps, drop_null_steps, scatter_to_groups


def listagg(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Join the texts of each group; null for a group without a value.

    Empty texts are skipped, unless the group has no other text.
    """
    steps = drop_null_steps(column, steps).to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    groups = steps.groups[steps.starts]
    filled = steps.gather(np.asarray(pc.binary_length(column).fill_null(0))) > 0
    texts = _move_late_first(steps.of(filled))
    sizes = np.bincount(texts.groups, minlength=steps.group_count)[groups]
    offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, texts.take_column(column))
    return scatter_to_groups(pc.binary_join(lists, aggregate.delimiter).cast(column.type), groups, steps.group_count)


def _move_late_first(steps: Steps) -> Steps:
    late = steps.actions == ADD_OLDER
    if not late.any():
        return steps
    places = np.arange(len(late))
    order = np.lexsort((np.where(late, -places, places), ~late, steps.groups))
    rows = order if steps.rows is None else steps.rows[order]
    return Steps(rows, steps.actions[order], steps.groups[order], steps.group_count)


def collect(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array:
    """Concatenate the lists of each group, which has no retracts; null where all lists are null."""
    steps = drop_null_steps(column, steps).to_contiguous()
    if len(steps.groups) == 0:
        return pa.nulls(steps.group_count, column.type)
    lists = steps.take_column(column)
    starts = steps.starts
    bounds = np.asarray(lists.offsets)
    offsets = pa.array(np.append(bounds[starts], bounds[-1]).astype(np.int32))
    joined = pa.ListArray.from_arrays(offsets, lists.values, type=column.type)
    return scatter_to_groups(joined, steps.groups[starts], steps.group_count)
