"""Find the newest row of each key, where rows are in order of age.

Nothing is sorted where keys are dense enough to be slots of an array. No row is moved: a filter keeps the order of
each file.

Invariant: the marked rows are those that `merge` keeps with the deduplicate engine and row numbers as sequence numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.merge.ordering.merge_order import Mask, Rows, argsort_words
from paimon.domain.merge.ordering.normalized_keys import Words, pack_keys, to_key_parts_by_chunk

SLOTS_PER_ROW = 8
"""How many slots a row may cost before sorting is cheaper."""


def mask_newest_rows(keys: Sequence[pa.ChunkedArray | pa.Array]) -> Mask:
    """Mark the last row of each key, given the key columns; chunks with strictly ascending keys are faster."""
    words = pack_keys(part for column in keys for part in to_key_parts_by_chunk(column))
    rows = len(keys[0])
    if not words:
        mask = np.zeros(rows, dtype=np.bool_)
        mask[-1:] = True
        return mask
    if len(words) > 1 or int(words[0].max()) >= SLOTS_PER_ROW * rows:
        return _mask_last_in_order(words, rows)
    slots = words[0].view(np.int64)
    sizes = [len(chunk) for chunk in keys[0].chunks] if isinstance(keys[0], pa.ChunkedArray) else [rows]
    pieces = np.split(slots, np.cumsum(sizes)[:-1])
    if all((piece[1:] > piece[:-1]).all() for piece in pieces):
        return _mask_unseen_later(pieces, int(words[0].max()) + 1)
    return _mask_last_in_slot(slots)


def _mask_unseen_later(pieces: Sequence[Rows], slots: int) -> Mask:
    """Mark the last row of each slot, where a piece holds a key once: from the newest piece to the oldest."""
    unseen = np.ones(slots, dtype=np.bool_)
    masks: list[Mask] = []
    for piece in reversed(pieces):
        masks.append(unseen[piece])
        unseen[piece] = False
    return np.concatenate(masks[::-1])


def _mask_last_in_slot(slots: Rows) -> Mask:
    numbers = np.arange(len(slots), dtype=np.int32 if len(slots) < 1 << 31 else np.int64)
    last = np.empty(int(slots.max()) + 1, dtype=numbers.dtype)
    last[slots] = numbers  # of equal slots numpy keeps the last
    mask: Mask = last[slots] == numbers
    return mask


def _mask_last_in_order(words: Sequence[Words], rows: int) -> Mask:
    order = argsort_words(list(words), rows)
    change = np.zeros(rows, dtype=np.bool_)
    change[-1:] = True
    for word in words:
        ordered = word[order]
        change[:-1] |= ordered[1:] != ordered[:-1]
    mask = np.zeros(rows, dtype=np.bool_)
    mask[order] = change
    return mask
