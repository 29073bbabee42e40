"""Rows that wait to be written, of all buckets together.

Law: rows leave in the order in which they came; what is held is counted in bytes. Where all of it is copied, it leaves
in parts, whose columns are freed one by one, so that it is never held twice. A state machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from paimon.domain.options.parse import LARGEST_LONG
from paimon.operations.write.route import Codes


class WriteBuffer:
    """Tables with, for each row, the number of its bucket (and whatever columns the writer added)."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: deque[tuple[pa.Table, Codes]] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as it may."""
        return self._bytes >= self._limit

    @property
    def held_bytes(self) -> int:
        """What it holds."""
        return self._bytes

    def add(self, table: pa.Table, codes: Codes) -> None:
        """Keeps some rows."""
        self._held.append((table, codes))
        self._bytes += table.nbytes + codes.nbytes

    def clear(self) -> None:
        """Forgets all rows."""
        self._held.clear()
        self._bytes = 0

    def drain(self, limit_bytes: int = LARGEST_LONG) -> tuple[pa.Table, Codes] | None:
        """The oldest rows, about so many bytes of them, as one table without chunks, with their codes; None where there
        are none."""
        if not self._held:
            return None
        tables, codes = self._oldest(limit_bytes)
        schema, columns = tables[0].schema, [[t.column(i) for t in tables] for i in range(tables[0].num_columns)]
        tables.clear()
        whole = [_whole(columns.pop(0)) for _ in schema]
        return pa.Table.from_arrays(whole, schema=schema), codes[0] if len(codes) == 1 else np.concatenate(codes)

    def _oldest(self, limit_bytes: int) -> tuple[list[pa.Table], list[Codes]]:
        """Whole tables until they are as large as that; of a larger one its first rows."""
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


def taken(columns: list[pa.ChunkedArray], rows: Codes) -> list[pa.ChunkedArray]:
    """These rows of the columns, which leave their list one by one: who holds them nowhere else, frees them so."""
    places = pa.array(rows)
    return [columns.pop(0).take(places) for _ in range(len(columns))]


def _whole(parts: list[pa.ChunkedArray]) -> pa.Array:
    chunks = [chunk for part in parts for chunk in part.chunks]
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, parts[0].type).combine_chunks()


def pieces(table: pa.Table, limit_bytes: int) -> Iterator[pa.Table]:
    """The table in slices of about this size, so that no call fills a buffer beyond measure."""
    step = max(1, table.num_rows * limit_bytes // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)
