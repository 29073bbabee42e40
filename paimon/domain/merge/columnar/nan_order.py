"""The order of keys that have a NaN in their user sequence: it equals everything, so that no sort finds it.

Law: a record goes behind all with a smaller sequence number, but in front of those whose user sequence is larger. Such
keys are few, so they are ordered one by one. Twin: `paimon.domain.merge.reference.merge`. Source:
`UserDefinedSeqComparator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]


def with_nans(order: Rows, starts: Rows, nans: npt.NDArray[np.bool_], table: pa.Table, spec: MergeSpec) -> Rows:
    """The order, with the groups that hold one of `nans` ordered anew."""
    ordered = order.copy()
    ends = np.append(starts, len(order))[1:]
    for group in np.flatnonzero(np.logical_or.reduceat(nans[order], starts)).tolist():
        own = slice(int(starts[group]), int(ends[group]))
        ordered[own] = _inserted(np.sort(order[own]), table, spec)
    return ordered


def _inserted(rows: Rows, table: pa.Table, spec: MergeSpec) -> list[int]:
    few = table.take(pa.array(rows))
    sequences = list(zip(*(few[name].to_pylist() for name in spec.sequence_fields), strict=True))
    names = few.column_names
    numbers = few[SEQUENCE_NUMBER.name].to_pylist() if SEQUENCE_NUMBER.name in names else [0] * len(rows)
    kinds = few[VALUE_KIND.name].to_pylist() if VALUE_KIND.name in names else [0] * len(rows)
    ordered: list[int] = []
    for row in sorted(range(len(rows)), key=lambda r: _age(numbers[r], kinds[r] in (0, 2), spec)):
        place = len(ordered)
        while place and _is_larger(sequences[ordered[place - 1]], sequences[row], spec.sequence_descending):
            place -= 1
        ordered.insert(place, row)
    return [int(rows[row]) for row in ordered]


def _age(number: int, is_add: bool, spec: MergeSpec) -> tuple[int, int]:
    return (is_add, number) if spec.retracts_first else (number, is_add)


def _is_larger(a: Sequence[Any], b: Sequence[Any], descending: bool) -> bool:
    for left, right in zip(a, b, strict=True):
        if left is None or right is None:
            if left is not right:
                return left is not None
        elif left < right or left > right:
            return bool(left < right if descending else left > right)
    return False
