"""Divide the rows of both sides of a MERGE by the hash of the columns that must be equal.

Invariant: rows with equal keys have equal hashes. So a row of the target matches only rows of the source in its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.java_float_order import unify_nans
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.types.data_types import DataType

Hashes: TypeAlias = npt.NDArray[np.int32]
_LOWEST, _END = -(1 << 31), 1 << 31


@frozen
class HashRange:
    """The hashes from `low` to before `high`."""

    low: int
    high: int

    def select(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows whose hash is in the range."""
        return np.flatnonzero((hashes >= self.low) & (hashes.astype(np.int64) < self.high))

    def find(self, hashes: Hashes) -> slice:
        """Return the part of ascending hashes that is in the range."""
        wide = hashes.astype(np.int64, copy=False)
        return slice(int(np.searchsorted(wide, self.low)), int(np.searchsorted(wide, self.high)))


def divide_hashes(count: int) -> tuple[HashRange, ...]:
    """Return so many ranges of equal width, which together have all hashes."""
    bounds = [_LOWEST + (_END - _LOWEST) * number // count for number in range(count + 1)]
    return tuple(HashRange(low, high) for low, high in pairwise(bounds))


def hash_keys(keys: Sequence[pa.Array], types: Sequence[DataType]) -> Hashes:
    """Return the hash of each row, from at least one key column in the canonical types of the target."""
    found: Hashes = hash_rows([unify_nans(key) for key in keys], types)
    return found
