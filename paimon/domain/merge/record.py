"""One record of a row-wise merge.

Invariant: +I and +U add, -U and -D retract.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

ADDS = (0, 2)
"""The row kinds +I and +U; the others, -U and -D, retract."""
DELETE = 3
"""The row kind -D."""


@frozen(hash=False)
class Record:
    """One row, with the values of all columns by name.

    Parameters
    ----------
    values : mapping of str to value
        Internal values.
    sequence : int
        The sequence number.
    kind : int
        The row kind: 0 is +I, 1 is -U, 2 is +U, 3 is -D.
    level : int
        The level of its file.
    run : int
        The node of its sorted run, as the column `paimon.domain.columns.java_float_order.RUN` holds it; 0 for no run.
    """

    values: Mapping[str, Any]
    sequence: int
    kind: int = 0
    level: int = 0
    run: int = 0

    @property
    def is_add(self) -> bool:
        """Whether the record is +I or +U."""
        return self.kind in ADDS
