"""Which rows are the newest of their key, where rows stand in order of age.

Law: the rows kept are those that `merge` with the deduplicate engine keeps when row numbers are sequence numbers.
Nothing is sorted where keys are dense enough to be slots of an array, and no row is moved: a filter keeps each
file's own order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.merge.columnar.order import Mask, sorted_rows
from paimon.domain.merge.columnar.words import Words, concatenated, packed, parts_of

SLOTS_PER_ROW = 8
"""How many slots a row may cost before sorting is cheaper."""


def newest(keys: Sequence[pa.ChunkedArray | pa.Array]) -> Mask:
    """True for the last row of each key; the columns are those of the key, in key order."""
    words = packed(part for column in concatenated(keys) for part in parts_of(column))
    rows = len(keys[0])
    if not words:
        mask = np.zeros(rows, dtype=np.bool_)
        mask[-1:] = True
        return mask
    if len(words) == 1 and int(words[0].max()) < SLOTS_PER_ROW * rows:
        return _last_in_slot(words[0])
    return _last_in_order(words, rows)


def _last_in_slot(word: Words) -> Mask:
    slots = word.view(np.int64)
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
