"""Keys of which some record has a NaN in the sequence of a group: it equals everything, so no rank tells its place.

Law: a record is in order unless what the group holds is larger; what it holds is the last record in order, or what a
record that removed the row left. Such keys are few, so their records are looked at one by one.
Twin: `paimon.domain.merge.reference.partial_update`. Source: `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.merge.columnar.ordering.arrival import Grouping
from paimon.domain.merge.columnar.ordering.nan_order import is_larger
from paimon.domain.merge.columnar.ordering.order import Mask, Rows
from paimon.domain.merge.columnar.ordering.words import concatenated


class NanKey(NamedTuple):
    """The places of one key in merge order, and what its records have in the sequence of a group."""

    number: int
    places: Rows
    sequences: list[tuple[Any, ...]]

    def in_order(self, removed: Sequence[bool] | Mask) -> Mask:
        """Which of the records are in order; `removed` are those that removed the row."""
        found = np.zeros(len(self.sequences), dtype=np.bool_)
        held: tuple[Any, ...] | None = None
        for place, values in enumerate(self.sequences):
            said = any(value is not None for value in values)
            found[place] = said and (held is None or not is_larger(held, values, descending=False))
            if found[place] or removed[place]:
                held = values
        return found


def nan_keys(table: pa.Table, groups: Grouping, sequence: Sequence[str]) -> list[NanKey]:
    """The keys that have a NaN in one of these columns."""
    nans = np.zeros(table.num_rows, dtype=np.bool_)
    columns = concatenated([table[name] for name in sequence])
    for column in columns:
        if pa.types.is_floating(column.type):
            nans |= np.asarray(pc.is_nan(column).fill_null(False))
    if not nans.any():
        return []
    numbers, rows = groups.of_row(), groups.placed(np.arange(table.num_rows))
    keys = np.unique(numbers[groups.placed(nans)])
    places = np.flatnonzero(np.isin(numbers, keys))
    places = places[np.argsort(numbers[places], kind="stable")]
    sequences = list(zip(*(c.take(pa.array(rows[places])).to_pylist() for c in columns), strict=True))
    bounds = [*np.searchsorted(numbers[places], keys).tolist(), len(places)]
    return [
        NanKey(int(key), places[start:end], sequences[start:end])
        for key, start, end in zip(keys.tolist(), bounds, bounds[1:], strict=False)
    ]
