"""Buffer the rows of all buckets until they are written.

Invariant: rows leave the buffer in the order in which they were added, and the buffer counts their size in bytes.
`drain` copies columns one by one and frees each after its copy, so that all rows are never in memory twice. Long chunks
of one bucket are not copied if the caller accepts chunks. A state machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.operations.write.route import Codes

_LONG_CHUNK_ROWS = 16_384
"""The least average length of chunks that are written as they are; a file of shorter ones takes longer to write."""


class WriteBuffer:
    """A queue of tables with the bucket number of each row; it is full from `limit_bytes` on."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: deque[tuple[pa.Table, Codes]] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the buffer holds at least `limit_bytes`."""
        return self._bytes >= self._limit

    @property
    def held_bytes(self) -> int:
        """The size of all buffered rows in bytes."""
        return self._bytes

    def add(self, table: pa.Table, codes: Codes) -> None:
        """Append rows with their bucket numbers; a table without rows is not held."""
        if not table.num_rows:
            return
        self._held.append((table, codes))
        self._bytes += table.nbytes + codes.nbytes

    def clear(self) -> None:
        """Drop all rows."""
        self._held.clear()
        self._bytes = 0

    def drain(self, limit_bytes: int = LARGEST_LONG, accepts_chunks: bool = False) -> tuple[pa.Table, Codes] | None:
        """Remove and return the oldest rows with their bucket numbers; None if the buffer is empty.

        About `limit_bytes` are returned, by default all. The table has no chunks unless `accepts_chunks`, which saves
        the copy of rows of one bucket.
        """
        if not self._held:
            return None
        tables, codes = self._pop_oldest(limit_bytes)
        numbers = codes[0] if len(codes) == 1 else np.concatenate(codes)
        keeps_chunks = accepts_chunks and _has_long_chunks(tables) and bool((numbers == numbers[:1]).all())
        schema = tables[0].schema
        columns = [[t.column(i) for t in tables] for i in range(len(schema))]
        tables.clear()
        join = _join_chunks if keeps_chunks else _combine_chunks
        return pa.Table.from_arrays([join(columns.pop(0)) for _ in schema], schema=schema), numbers

    def _pop_oldest(self, limit_bytes: int) -> tuple[list[pa.Table], list[Codes]]:
        """Remove whole tables until their size reaches the limit; a table that is larger is cut."""
        tables: list[pa.Table] = []
        codes: list[Codes] = []
        left = limit_bytes
        while self._held and left > 0:
            table, numbers = self._held.popleft()
            size = table.nbytes + numbers.nbytes
            rows = max(1, table.num_rows * limit_bytes // max(1, size))
            if rows < table.num_rows:
                self._held.appendleft((table.slice(rows), numbers[rows:]))
                table, numbers = table.slice(0, rows), numbers[:rows]
                size = table.nbytes + numbers.nbytes
            tables.append(table)
            codes.append(numbers)
            left -= size
            self._bytes -= size
        self._bytes = self._bytes if self._held else 0
        return tables, codes


def take_rows(columns: list[pa.ChunkedArray], rows: Codes) -> list[pa.ChunkedArray]:
    """Return the rows at these positions of each column, and empty the list of columns.

    A column is removed from the list before it is copied, so that its memory is freed if there is no other reference.
    """
    positions = from_numpy(rows)
    return [columns.pop(0).take(positions) for _ in range(len(columns))]


def _has_long_chunks(tables: list[pa.Table]) -> bool:
    chunks = max((sum(t.column(i).num_chunks for t in tables) for i in range(tables[0].num_columns)), default=0)
    rows: int = sum(t.num_rows for t in tables)
    return rows >= chunks * _LONG_CHUNK_ROWS


def _join_chunks(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _combine_chunks(parts: list[pa.ChunkedArray]) -> pa.Array:
    return combine_column(_join_chunks(parts))


def cut_into_slices(table: pa.Table, limit_bytes: int) -> Iterator[pa.Table]:
    """Yield the table in slices of about this size, so that one call cannot exceed the limit of a buffer by much."""
    step = max(1, table.num_rows * limit_bytes // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)
