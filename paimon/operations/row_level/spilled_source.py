"""The source of a MERGE: in memory if it is small, otherwise spilled, and read in parts that fit the memory budget.

Invariant: a spilled source is stored in pieces, each ordered by the hash of its key. A part has all rows of a range of
hashes, so parts can be merged one after another. Memory holds one piece or one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from paimon.domain.assignment.hash_ranges import HashRange, divide_hashes, hash_keys
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataType
from paimon.ports.engine import Engine
from paimon.ports.temp import TempStore

_INDEX_BYTES = 64
"""What the index of a source needs for a row, in addition to its columns."""
_MOST_BYTES = 1 << 30
"""Arrow cannot hold more than twice as many bytes of text in one array."""
_HASH, _NUMBER = "\0hash", "\0number"
"""Stored next to the columns; no column of a table contains a NUL."""


@frozen(eq=False)
class SourcePart:
    """Rows of a source that are merged together."""

    # In canonical Arrow types
    rows: pa.RecordBatch
    # The position of each row in the source; None if they are all rows in their order
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
    # Only rows of the target whose key has such a hash can match; None for all
    hashes: HashRange | None = None


ReadPart: TypeAlias = Callable[[], SourcePart]


def _to_pieces(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen(eq=False)
class SourceRows:
    """The rows of a source, in memory or spilled."""

    # All rows; None if they are spilled
    rows: pa.RecordBatch | None
    # Its temporary store has the pieces; its memory budget limits a part
    engine: Engine
    # Handles in the temporary store
    pieces: tuple[str, ...] = field(default=(), converter=_to_pieces)
    # What all spilled rows need in memory
    bytes: int = 0

    def parts(self) -> list[ReadPart]:
        """Return a function for each part, which reads it, so that the caller decides how long it is in memory."""
        if self.rows is not None:
            return [partial(SourcePart, self.rows)]
        count = -(-self.bytes // part_bytes(self.engine))
        return [partial(self._read_part, hashes) for hashes in divide_hashes(count)]

    def _read_part(self, hashes: HashRange) -> SourcePart:
        """Return the rows in a range of hashes.

        Raise InvalidRequest if the rows of one key need more than the memory budget.
        """
        slices = []
        for handle in self.pieces:
            (piece,) = self.engine.temp.map_batches(handle)
            found = hashes.find(piece[_HASH].to_numpy())
            slices.append(piece.slice(found.start, found.stop - found.start))
        if sum(map(count_bytes, slices)) > min(self.engine.memory.bytes, 2 * _MOST_BYTES):
            raise budget_error(self.engine, "Many rows of the source have the same key, so they are merged together")
        part = pa.concat_batches(slices)
        numbers = part[_NUMBER].to_numpy()
        return SourcePart(part.select(part.schema.names[:-2]), numbers, hashes)

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.pieces:
            self.engine.temp.drop(handle)


def count_bytes(rows: pa.RecordBatch | pa.Table) -> int:
    """Return what rows and their index need in memory."""
    size: int = rows.nbytes + rows.num_rows * _INDEX_BYTES
    return size


def must_spill(engine: Engine, size: int) -> bool:
    """Return whether rows of this size, together with their index, are too large to stay in memory."""
    return size > min(engine.memory.bytes // 2, _MOST_BYTES)


def part_bytes(engine: Engine) -> int:
    """Return how large a part of a spilled source is at most."""
    return max(1, min(engine.memory.bytes // 4, _MOST_BYTES // 2))


def divide_tables(engine: Engine, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables in pieces of the size of a part, so that large tables are not copied as a whole."""
    for table in tables:
        rows = max(1, table.num_rows * part_bytes(engine) // max(1, count_bytes(table)))
        yield from (table.slice(start, rows) for start in range(0, max(1, table.num_rows), rows))


def budget_error(engine: Engine, reason: str) -> InvalidRequest:
    """Return the error for a source that does not fit the memory budget."""
    return InvalidRequest(
        f"The source of the merge needs more than the memory budget of {engine.memory.bytes} bytes. {reason}",
        subject="memory-budget",
        hint="merge the source in parts, or raise 'memory-budget'",
    )


def store_piece(temp: TempStore, batches: Sequence[pa.RecordBatch]) -> str:
    """Store batches of one schema, of which there is at least one; return the handle."""
    # Buffers of a file are padded; the limit only stops a store that never ends.
    stored = temp.store(batches, batches[0].schema, 2 * sum(batch.nbytes for batch in batches) + (1 << 20))
    assert stored is not None
    return stored.handle


@define(eq=False)
class SourceSpill:
    """A state machine: it stores the rows of a source in pieces."""

    temp: TempStore
    # The columns that must be equal to columns of the target
    keys: tuple[str, ...]
    # The types of those columns of the target
    types: tuple[DataType, ...]
    pieces: list[str] = field(factory=list)
    bytes: int = 0
    rows: int = 0

    def add(self, rows: pa.RecordBatch, keys: Sequence[pa.Array]) -> None:
        """Store rows, in canonical Arrow types, as one piece; `keys` are the key columns in the types of the target."""
        hashes = hash_keys(keys, self.types)
        order = np.argsort(hashes, kind="stable")
        columns = [column.take(pa.array(order)) for column in rows.columns]
        extra = [pa.array(hashes[order]), pa.array(order + self.rows)]
        piece = pa.RecordBatch.from_arrays([*columns, *extra], [*rows.schema.names, _HASH, _NUMBER])
        self.pieces.append(store_piece(self.temp, [piece]))
        self.rows += rows.num_rows
        self.bytes += count_bytes(piece)

    def drop(self) -> None:
        """Delete the pieces."""
        for handle in self.pieces:
            self.temp.drop(handle)
