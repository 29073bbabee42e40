"""Number the distinct keys of a batch of rows, for the key index of cross-partition tables.

Invariant: rows have the same number if and only if all their key columns are equal: null equals null, all NaN are
equal, and -0.0 does not equal 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.columns.java_float_order import unify_nans
from paimon.domain.merge.ordering.merge_order import Rows, argsort_words
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts


class KeyNumbers(NamedTuple):
    """The number of the key of each row, from 0 on without gaps, and the first row of each key."""

    numbers: Rows
    first_rows: Rows


def number_keys(columns: Sequence[pa.Array]) -> KeyNumbers:
    """Assign numbers to the distinct keys in ascending key order; the key columns have no chunks."""
    rows = len(columns[0])
    words = pack_keys([part for column in columns for part in to_key_parts(unify_nans(column))])
    order = argsort_words(words, rows)
    is_new = np.zeros(rows, np.bool_)
    is_new[:1] = True
    for word in words:
        ordered = word[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(rows, np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return KeyNumbers(numbers, order[is_new])
