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
    """Bounds and null count of one column in one file; None where unknown.

    Parameters
    ----------
    minimum, maximum : object
        Internal values (see `paimon.domain.row.values`): bounds, which need not occur in the file.
    null_count : int or None
        The number of nulls.
    """

    minimum: Any = None
    maximum: Any = None
    null_count: int | None = None


def _counts(values: Iterable[int | None]) -> tuple[int | None, ...]:
    return tuple(values)


@frozen
class SimpleStats:
    """Statistics as manifests store them.

    Parameters
    ----------
    min_values, max_values : bytes
        Serialized BinaryRows.
    null_counts : tuple of (int or None)
        One for each field of the rows.
    """

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] = field(converter=_counts, default=())


EMPTY_STATS = SimpleStats()
