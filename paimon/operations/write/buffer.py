"""Rows that wait to be written, of all buckets together.

Law: rows leave in the order in which they came; what is held is counted in bytes. Where all of it is copied, columns
are freed one by one, so that it is never held twice. A state machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from paimon.operations.write.route import Codes


class WriteBuffer:
    """Tables with, for each row, the number of its bucket (and whatever columns the writer added)."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._tables: list[pa.Table] = []
        self._codes: list[Codes] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as it may."""
        return self._bytes >= self._limit

    def add(self, table: pa.Table, codes: Codes) -> None:
        """Keeps some rows."""
        self._tables.append(table)
        self._codes.append(codes)
        self._bytes += table.nbytes + codes.nbytes

    def drain(self) -> tuple[pa.Table, Codes] | None:
        """All rows as one table without chunks, with their codes; None where there are none."""
        if not self._tables:
            return None
        tables, codes = self._tables, self._codes
        self._tables, self._codes, self._bytes = [], [], 0
        schema, columns = tables[0].schema, [[t.column(i) for t in tables] for i in range(tables[0].num_columns)]
        tables.clear()
        whole = [_whole(columns.pop(0)) for _ in schema]
        return pa.Table.from_arrays(whole, schema=schema), codes[0] if len(codes) == 1 else np.concatenate(codes)


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
