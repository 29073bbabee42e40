"""Changes as a binlog shows them, row by row.

Law: a -U and the +U of its key that follows it at once are one change with two values a column; any other row is a
change with one. A change has the kind of its last row. Source: `BinlogTable`, `PackChangelogReader` (which takes
whatever follows a -U for its other half).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.row.kinds import RowKind


def packed(kinds: Sequence[int], keys: Sequence[Any]) -> list[list[int]]:
    """The numbers of the rows of each change."""
    changes: list[list[int]] = []
    for row, kind in enumerate(kinds):
        last = changes[-1] if changes else []
        follows = len(last) == 1 and kinds[last[0]] == RowKind.UPDATE_BEFORE and keys[last[0]] == keys[row]
        if follows and kind == RowKind.UPDATE_AFTER:
            last.append(row)
        else:
            changes.append([row])
    return changes
