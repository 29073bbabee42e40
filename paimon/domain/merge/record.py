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
    """One row, with the values of all columns by name."""

    # internal values
    values: Mapping[str, Any]
    # the sequence number
    sequence: int
    # the row kind: 0 is +I, 1 is -U, 2 is +U, 3 is -D
    kind: int = 0
    level: int = 0
    # the node of its sorted run, as in column `paimon.domain.columns.java_float_order.RUN`; 0 for no run
    run: int = 0

    @property
    def is_add(self) -> bool:
        """Whether the record is +I or +U."""
        return self.kind in ADDS
