"""Statistics of columns: as stored (`SimpleStats`, binary rows) and of one column (`ColumnStats`, plain values).

Law: None says unknown, never empty; bounds need not be values that occur. Source: `SimpleStats`, `SimpleColStats`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen

EMPTY_ROW = bytes(12)
"""A serialised BinaryRow of no fields: arity 0 and eight zero bytes."""


@frozen
class ColumnStats:
    """Bounds and null count of one column in one file; None where unknown.

    `minimum` and `maximum` are internal values (see `paimon.domain.row.values`) and bounds, not necessarily
    present values.
    """

    minimum: Any = None
    maximum: Any = None
    null_count: int | None = None


def _counts(values: Iterable[int | None]) -> tuple[int | None, ...]:
    return tuple(values)


@frozen
class SimpleStats:
    """Statistics as manifests hold them: two serialised BinaryRows and the null counts."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] = field(converter=_counts, default=())


EMPTY_STATS = SimpleStats()
