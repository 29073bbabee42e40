"""Records as Arrow columns that are created on demand.

Planning reads few columns of many entries, and all columns of the few entries that remain.

Invariant: Any column and any part equals that of all records in one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.types.arrow_arrays import from_numpy, make_array

Integers = npt.NDArray[np.int64]
_ARRAY_BYTES = 1_050
"""The memory of an array without its values, as measured: 40,200 bytes for 38 arrays."""


class RecordColumns(Protocol):
    """Records in order, of which columns or whole records are read."""

    @property
    def weight(self) -> int:
        """The approximate memory of the records in bytes."""

    def __len__(self) -> int: ...

    def column(self, *path: str) -> pa.Array:
        """Return one column of all records; `path` holds the names from the record to the column."""

    def select(self, rows: Integers, *path: str) -> pa.Array:
        """Return one column of the records at positions in ascending order; nothing is kept of the others."""

    def take(self, rows: Integers) -> pa.StructArray:
        """Return whole records at positions in ascending order."""

    def encoded(self, schema: Any) -> pa.LargeBinaryArray | None:
        """Return the stored bytes of each record; None if they are not those of this Avro schema."""


@frozen(eq=False)
class PickedRecords:
    """Records at any positions, as mappings; a codec that knows their stored bytes copies these."""

    records: RecordColumns
    rows: Integers

    def __iter__(self) -> Iterator[dict[str, Any]]:
        ascending = self.records.take(np.sort(self.rows))
        yield from ascending.take(from_numpy(np.argsort(np.argsort(self.rows)))).to_pylist()


@frozen(eq=False)
class ArrayColumns:
    """Records in one Arrow array."""

    records: pa.StructArray

    @property
    def weight(self) -> int:
        """The bytes of the array, and of the Python and Arrow objects around it, which are most of a small array."""
        return int(self.records.nbytes) + _ARRAY_BYTES * _count_arrays(self.records.type)

    def __len__(self) -> int:
        return len(self.records)

    def column(self, *path: str) -> pa.Array:
        """Return one column of all records."""
        found = self.records
        for name in path:
            found = found.field(name)
        return found

    def select(self, rows: Integers, *path: str) -> pa.Array:
        """Return one column of the records at ascending positions."""
        return self.column(*path).take(from_numpy(rows))

    def take(self, rows: Integers) -> pa.StructArray:
        """Return whole records at ascending positions; all of them without a copy of the many small arrays."""
        if len(rows) == len(self.records) and np.array_equal(rows, np.arange(len(rows))):
            return self.records
        return self.records.take(from_numpy(rows))

    def encoded(self, schema: Any) -> pa.LargeBinaryArray | None:
        """Return None: the stored bytes are not kept."""
        return None


@frozen(eq=False)
class SlicedColumns:
    """The records of `whole` from position `start` up to, but not including, `stop`."""

    whole: RecordColumns
    start: int
    stop: int

    @property
    def weight(self) -> int:
        """The part of the bytes of the whole, by the number of records."""
        return self.whole.weight * len(self) // max(len(self.whole), 1)

    def __len__(self) -> int:
        return self.stop - self.start

    def column(self, *path: str) -> pa.Array:
        """Return one column of all records."""
        return self.whole.column(*path).slice(self.start, len(self))

    def select(self, rows: Integers, *path: str) -> pa.Array:
        """Return one column of the records at ascending positions."""
        return self.whole.select(rows + self.start, *path)

    def take(self, rows: Integers) -> pa.StructArray:
        """Return whole records at ascending positions."""
        return self.whole.take(rows + self.start)

    def encoded(self, schema: Any) -> pa.LargeBinaryArray | None:
        """Return the stored bytes of each record; None if they are not those of this Avro schema."""
        found = self.whole.encoded(schema)
        return None if found is None else found.slice(self.start, len(self))


@frozen(eq=False)
class JoinedColumns:
    """The records of several parts, of which there is at least one."""

    parts: list[RecordColumns]

    @property
    def weight(self) -> int:
        """The bytes of all parts."""
        return sum(part.weight for part in self.parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def column(self, *path: str) -> pa.Array:
        """Return one column of all records."""
        return pa.concat_arrays([part.column(*path) for part in self.parts])

    def select(self, rows: Integers, *path: str) -> pa.Array:
        """Return one column of the records at ascending positions."""
        return pa.concat_arrays([part.select(taken, *path) for part, taken in self.divide(rows)])

    def take(self, rows: Integers) -> pa.StructArray:
        """Return whole records at ascending positions."""
        return pa.concat_arrays([part.take(taken) for part, taken in self.divide(rows)])

    def divide(self, rows: Integers) -> list[tuple[RecordColumns, Integers]]:
        """Return the parts that have records at ascending positions, at least one, with the positions in the part."""
        edges = np.cumsum([0, *map(len, self.parts)])
        cuts = np.searchsorted(rows, edges)
        pieces = list(zip(self.parts, edges.tolist(), cuts[:-1].tolist(), cuts[1:].tolist(), strict=False))
        filled = [piece for piece in pieces if piece[3] > piece[2]] or pieces[:1]
        return [(part, rows[low:high] - edge) for part, edge, low, high in filled]

    def encoded(self, schema: Any) -> pa.LargeBinaryArray | None:
        """Return None: of each part the bytes are stored, or not."""
        return None


def _count_arrays(kind: pa.DataType) -> int:
    return 1 + sum(_count_arrays(kind.field(i).type) for i in range(kind.num_fields))


def join_records(parts: Sequence[RecordColumns], kind: pa.StructType) -> RecordColumns:
    """Return the records of these parts as one, in order."""
    if len(parts) == 1:
        return parts[0]
    return JoinedColumns(list(parts)) if parts else ArrayColumns(make_array([], kind))
