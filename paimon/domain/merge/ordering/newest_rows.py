"""Find the newest row of each key, where rows are in order of age.

Nothing is sorted where keys are dense enough to be slots of an array. No row is moved: a filter keeps the order of
each file.

Invariant: the marked rows are those that `merge` keeps with the deduplicate engine and row numbers as sequence numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.merge.ordering.merge_order import Mask, Rows, argsort_keys, mark_key_starts
from paimon.domain.merge.ordering.normalized_keys import KeyWord, pack_key_columns

SLOTS_PER_ROW = 8
"""How many slots a row may cost before sorting is cheaper."""


def mask_newest_rows(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Mask:
    """Mark the last row of each key, given the key columns; chunks with strictly ascending keys are faster."""
    keys = pack_key_columns(columns)
    rows = len(columns[0])
    if not keys:
        mask = np.zeros(rows, dtype=np.bool_)
        mask[-1:] = True
        return mask
    highest = int(keys[0].max())
    if len(keys) > 1 or highest >= SLOTS_PER_ROW * rows:
        return _mask_last_in_order(keys, rows)
    slots = keys[0].view(np.int64)
    sizes = [len(chunk) for chunk in columns[0].chunks] if isinstance(columns[0], pa.ChunkedArray) else [rows]
    pieces = np.split(slots, np.cumsum(sizes)[:-1])
    if all((piece[1:] > piece[:-1]).all() for piece in pieces):
        return _mask_unseen_later(pieces, highest + 1)
    return _mask_last_in_slot(slots, highest + 1)


def _mask_unseen_later(pieces: Sequence[Rows], slots: int) -> Mask:
    """Mark the last row of each slot, where a piece holds a key once: from the newest piece to the oldest."""
    unseen = np.ones(slots, dtype=np.bool_)
    masks: list[Mask] = []
    for piece in reversed(pieces):
        masks.append(unseen[piece])
        unseen[piece] = False
    return np.concatenate(masks[::-1])


def _mask_last_in_slot(slots: Rows, count: int) -> Mask:
    numbers = np.arange(len(slots), dtype=np.int32 if len(slots) < 1 << 31 else np.int64)
    last = np.empty(count, dtype=numbers.dtype)
    last[slots] = numbers  # of equal slots numpy keeps the last
    mask: Mask = last[slots] == numbers
    return mask


def _mask_last_in_order(keys: list[KeyWord], rows: int) -> Mask:
    order = argsort_keys(keys, rows)
    mask = np.empty(rows, dtype=np.bool_)
    mask[order] = np.append(mark_key_starts(keys, order)[1:], True)
    return mask
