"""Ranges of sort keys with about the same number of bytes or rows, chosen from sampled rows.

Invariant: ranges are disjoint and ascend, and each row is in exactly one. Samples are taken at fixed distances, so the
same files give the same ranges.
Source: `RangeShuffle`, which samples at random.
"""

# A sort that runs in several tasks first divides the keys into ranges, so that each task sorts one of them alone:
#
#     samples (key: weight)   1:10  2:10  4:10  5:30  9:10  9:10          80 in all, for 2 ranges: 40 each
#     bound                   5, the first key at which 40 are reached
#     ranges                  below 5                 5 and more
#
# The weight of a sample is what it represents: the rows up to the next sample, or their bytes
# (`sort-compaction.range-strategy`). Rows with equal keys are in one range, so there may be fewer ranges.

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.maintenance.sort_order import SortOrder, argsort_rows, compute_sort_keys

WEIGHT = "weight"


def sample_keys(rows: pa.Table, order: SortOrder, skipped: int, step: int, row_weight: float) -> pa.Table:
    """Return each `step`-th row's sort key, with weights; `skipped` rows came before."""
    places = pa.array(np.arange(-skipped % step, rows.num_rows, step))
    keys = compute_sort_keys(rows.select([f.name for f in order.fields]).take(places), order)
    return keys.append_column(WEIGHT, pa.array(np.full(len(places), step * row_weight)))


def choose_bounds(samples: pa.Table, ranges: int) -> pa.Table:
    """Return the first key of each range but the first, ascending; there are at most `ranges` - 1."""
    keys = samples.drop_columns([WEIGHT])
    order = argsort_rows(keys)
    reached = np.cumsum(samples[WEIGHT].to_numpy()[order])
    if not len(reached):
        return keys
    wanted = reached[-1] * np.arange(1, ranges) / ranges
    places = np.unique(np.searchsorted(reached, wanted))
    return keys.take(pa.array(order[places]))


def find_ranges(rows: pa.Table, order: SortOrder, bounds: pa.Table) -> npt.NDArray[np.int64]:
    """Return the number of the range of each row."""
    keys = compute_sort_keys(rows.select([f.name for f in order.fields]), order)
    # A bound comes before the rows that equal it, because the sort is stable.
    both = pa.concat_tables([bounds.cast(keys.schema), keys])
    merged = argsort_rows(both)
    is_bound = merged < bounds.num_rows
    ranges = np.empty(rows.num_rows, np.int64)
    ranges[merged[~is_bound] - bounds.num_rows] = np.cumsum(is_bound)[~is_bound]
    return ranges
