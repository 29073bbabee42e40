"""What two states of the same keys differ in, row by row: the specification of `columnar`.

Law: a key that is new or changed shows its later row, a key that is gone its earlier row as -D; a retract is no row.
Values are equal as Java finds them: null is null, NaN is NaN, -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import copysign, isnan
from typing import Any

from attrs import frozen

from paimon.domain.row.kinds import RowKind

_RETRACTS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@frozen
class KeyedRow:
    """One key's row in one state, in internal values."""

    key: tuple[Any, ...]
    kind: RowKind
    values: tuple[Any, ...]


def difference(before: Iterable[KeyedRow], after: Iterable[KeyedRow]) -> list[KeyedRow]:
    """The differing rows, in no order."""
    old = {row.key: row for row in before if row.kind not in _RETRACTS}
    new = {row.key: row for row in after}
    changed = [row for key, row in new.items() if key not in old or not _unchanged(old[key], row)]
    return changed + [KeyedRow(key, RowKind.DELETE, row.values) for key, row in old.items() if key not in new]


def _unchanged(old: KeyedRow, new: KeyedRow) -> bool:
    return new.kind not in _RETRACTS and same_value(old.values, new.values)


def same_value(one: Any, other: Any) -> bool:
    """Whether two internal values of one type are equal."""
    if isinstance(one, float) and isinstance(other, float):
        return (isnan(one) and isnan(other)) or (one == other and copysign(1, one) == copysign(1, other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same_value(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
