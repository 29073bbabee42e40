"""Records as Arrow columns that are made when they are asked for.

Law: whatever is asked for, and in whatever pieces, it is what all records as one array would answer. Planning looks
at few columns of many entries, and at all columns of the few that survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.types.arrow_arrays import from_numpy, make_array

Integers = npt.NDArray[np.int64]
_ARRAY_BYTES = 1_050
"""What one array takes besides its values: measured, 40,200 bytes for the 38 arrays of a manifest's entries."""


class RecordColumns(Protocol):
    """Records, in order; `weight` is about how many bytes they hold.

    `column` is one column of all records, by the names on the way to it; `take` is whole records, at ascending
    positions.
    """

    @property
    def weight(self) -> int: ...
    def __len__(self) -> int: ...
    def column(self, *path: str) -> pa.Array: ...
    def take(self, rows: Integers) -> pa.StructArray: ...


@frozen(eq=False)
class HeldColumns:
    """Records that are one array already."""

    records: pa.StructArray

    @property
    def weight(self) -> int:
        """Bytes of the array, and of the objects that hold it and its fields: of few records these are most."""
        return int(self.records.nbytes) + _ARRAY_BYTES * _count_arrays(self.records.type)

    def __len__(self) -> int:
        return len(self.records)

    def column(self, *path: str) -> pa.Array:
        """One column of all records."""
        found = self.records
        for name in path:
            found = found.field(name)
        return found

    def take(self, rows: Integers) -> pa.StructArray:
        """Whole records."""
        return self.records.take(from_numpy(rows))


@frozen(eq=False)
class SlicedColumns:
    """The records of `whole` from position `start` up to, not including, `stop`."""

    whole: RecordColumns
    start: int
    stop: int

    @property
    def weight(self) -> int:
        """A fair share of the whole."""
        return self.whole.weight * len(self) // max(len(self.whole), 1)

    def __len__(self) -> int:
        return self.stop - self.start

    def column(self, *path: str) -> pa.Array:
        """One column of all records."""
        return self.whole.column(*path).slice(self.start, len(self))

    def take(self, rows: Integers) -> pa.StructArray:
        """Whole records."""
        return self.whole.take(rows + self.start)


@frozen(eq=False)
class JoinedColumns:
    """Records of several parts, of which there is at least one."""

    parts: Sequence[RecordColumns]

    @property
    def weight(self) -> int:
        """All parts'."""
        return sum(part.weight for part in self.parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def column(self, *path: str) -> pa.Array:
        """One column of all records."""
        return pa.concat_arrays([part.column(*path) for part in self.parts])

    def take(self, rows: Integers) -> pa.StructArray:
        """Whole records."""
        edges = np.cumsum([0, *map(len, self.parts)])
        cuts = np.searchsorted(rows, edges)
        pieces = zip(self.parts, edges.tolist(), cuts[:-1].tolist(), cuts[1:].tolist(), strict=False)
        return pa.concat_arrays([part.take(rows[low:high] - edge) for part, edge, low, high in pieces])


def _count_arrays(kind: pa.DataType) -> int:
    return 1 + sum(_count_arrays(kind.field(i).type) for i in range(kind.num_fields))


def joined(parts: Sequence[RecordColumns], kind: pa.StructType) -> RecordColumns:
    """The records of these parts, in order."""
    if len(parts) == 1:
        return parts[0]
    return JoinedColumns(parts) if parts else HeldColumns(make_array([], kind))
