"""Statistics as stored (`SimpleStats`, binary rows), and of one column (`ColumnStats`, internal values).

Invariant: None means unknown, never empty. Bounds need not be values that occur.
Source: `SimpleStats`, `SimpleColStats`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen

EMPTY_ROW = bytes(12)
"""A serialized BinaryRow of no fields: arity 0 and eight zero bytes."""


@frozen
class ColumnStats:
    """Bounds and null count of one column in one file; None where unknown."""

    # an internal value, see `paimon.domain.row.values`; a bound that need not occur in the file
    minimum: Any = None
    # as `minimum`
    maximum: Any = None
    null_count: int | None = None


def _counts(values: Iterable[int | None]) -> tuple[int | None, ...]:
    return tuple(values)


@frozen
class SimpleStats:
    """Statistics as manifests store them."""

    # serialized BinaryRow
    min_values: bytes = EMPTY_ROW
    # serialized BinaryRow
    max_values: bytes = EMPTY_ROW
    # one for each field of the rows; None if unknown
    null_counts: tuple[int | None, ...] = field(converter=_counts, default=())


EMPTY_STATS = SimpleStats()
