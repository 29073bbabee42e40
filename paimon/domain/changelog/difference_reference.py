"""Compute the difference of two snapshots of a table, row by row: the reference of `difference_columnar`.

Invariant: a key that is new or changed has its later row in the result. A key that no longer exists has its earlier
row, as -D. A -U or -D row of the earlier snapshot counts as no row. Null equals null, NaN equals NaN, -0.0 does not
equal 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.row.kinds import RowKind

_RETRACTS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@frozen
class KeyedRow:
    """The row of one key in one state, in internal values."""

    key: tuple[Any, ...]
    kind: RowKind
    values: tuple[Any, ...]


def compute_difference(before: Iterable[KeyedRow], after: Iterable[KeyedRow]) -> list[KeyedRow]:
    """Return the rows in which `after` differs from `before`, in any order."""
    old = {row.key: row for row in before if row.kind not in _RETRACTS}
    new = {row.key: row for row in after}
    changed = [row for key, row in new.items() if key not in old or not _is_unchanged(old[key], row)]
    return changed + [KeyedRow(key, RowKind.DELETE, row.values) for key, row in old.items() if key not in new]


def _is_unchanged(old: KeyedRow, new: KeyedRow) -> bool:
    return new.kind not in _RETRACTS and is_equal_value(old.values, new.values)


def is_equal_value(one: Any, other: Any) -> bool:
    """Return whether two internal values of one type are equal."""
    if isinstance(one, float) and isinstance(other, float):
        return compare_values(one, other) == 0
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(is_equal_value(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
