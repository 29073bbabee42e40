"""One record of a merge, row-wise.

Law: +I and +U add, -U and -D retract.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

ADDS = (0, 2)
"""Row kinds +I and +U; the others, -U and -D, retract."""
DELETE = 3
"""Row kind -D."""


@frozen(hash=False)
class Record:
    """All columns of a row by name as internal values, with its sequence number, row kind and the level of its file.

    `run` is the place of its sorted run in the tree that merges them (see `_played`); 0: it came by no run.
    """

    values: Mapping[str, Any]
    sequence: int
    kind: int = 0
    level: int = 0
    run: int = 0

    @property
    def is_add(self) -> bool:
        """True for +I and +U."""
        return self.kind in ADDS
