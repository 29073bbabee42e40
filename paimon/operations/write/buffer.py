"""Rows that wait to be written, of all buckets together.

Law: rows leave in the order in which they came; what is held is counted in bytes. A state machine.
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
        return pa.concat_tables(tables).combine_chunks(), codes[0] if len(codes) == 1 else np.concatenate(codes)


def pieces(table: pa.Table, limit_bytes: int) -> Iterator[pa.Table]:
    """The table in slices of about this size, so that no call fills a buffer beyond measure."""
    step = max(1, table.num_rows * limit_bytes // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)
