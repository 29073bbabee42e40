"""Which rows are the newest of their key, where rows stand in order of age.

Law: the rows kept are those that `merge` with the deduplicate engine keeps when row numbers are sequence numbers.
Nothing is sorted where keys are dense enough to be slots of an array, and no row is moved: a filter keeps each
file's own order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.merge.columnar.ordering.order import Mask, Rows, sorted_rows
from paimon.domain.merge.columnar.ordering.words import Words, packed, parts_of_chunks

SLOTS_PER_ROW = 8
"""How many slots a row may cost before sorting is cheaper."""


def newest(keys: Sequence[pa.ChunkedArray | pa.Array]) -> Mask:
    """True for the last row of each key; the columns are those of the key. Chunks that ascend strictly are faster."""
    words = packed(part for column in keys for part in parts_of_chunks(column))
    rows = len(keys[0])
    if not words:
        mask = np.zeros(rows, dtype=np.bool_)
        mask[-1:] = True
        return mask
    if len(words) > 1 or int(words[0].max()) >= SLOTS_PER_ROW * rows:
        return _last_in_order(words, rows)
    slots = words[0].view(np.int64)
    sizes = [len(chunk) for chunk in keys[0].chunks] if isinstance(keys[0], pa.ChunkedArray) else [rows]
    pieces = np.split(slots, np.cumsum(sizes)[:-1])
    if all((piece[1:] > piece[:-1]).all() for piece in pieces):
        return _unseen_later(pieces, int(words[0].max()) + 1)
    return _last_in_slot(slots)


def _unseen_later(pieces: Sequence[Rows], slots: int) -> Mask:
    """Youngest piece first, each of which holds a key once: a row is the newest of its key unless its slot was seen."""
    unseen = np.ones(slots, dtype=np.bool_)
    masks: list[Mask] = []
    for piece in reversed(pieces):
        masks.append(unseen[piece])
        unseen[piece] = False
    return np.concatenate(masks[::-1])


def _last_in_slot(slots: Rows) -> Mask:
    numbers = np.arange(len(slots), dtype=np.int32 if len(slots) < 1 << 31 else np.int64)
    last = np.empty(int(slots.max()) + 1, dtype=numbers.dtype)
    last[slots] = numbers  # of equal slots numpy keeps the last
    mask: Mask = last[slots] == numbers
    return mask


def _last_in_order(words: Sequence[Words], rows: int) -> Mask:
    order = sorted_rows(list(words), rows)
    change = np.zeros(rows, dtype=np.bool_)
    change[-1:] = True
    for word in words:
        ordered = word[order]
        change[:-1] |= ordered[1:] != ordered[:-1]
    mask = np.zeros(rows, dtype=np.bool_)
    mask[order] = change
    return mask
