"""Pack changes as the binlog table returns them, row by row.

Invariant: a -U and a +U of the same key that directly follows it are one change with two values a column. Every other
row is a change with one value. A change has the row kind of its last row.

Source: `BinlogTable`, `PackChangelogReader` (which pairs a -U with whatever row follows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.row.kinds import RowKind


def pack_changes(kinds: Sequence[int], keys: Sequence[Any]) -> list[list[int]]:
    """Return the row numbers of each change."""
    changes: list[list[int]] = []
    for row, kind in enumerate(kinds):
        last = changes[-1] if changes else []
        follows = len(last) == 1 and kinds[last[0]] == RowKind.UPDATE_BEFORE and keys[last[0]] == keys[row]
        if follows and kind == RowKind.UPDATE_AFTER:
            last.append(row)
        else:
            changes.append([row])
    return changes
