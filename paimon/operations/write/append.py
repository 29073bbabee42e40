"""Writing append tables: rows go to their bucket's files as they come.

Law: the order of rows within a bucket is the order in which they were written. Source: `AppendOnlyWriter`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.operations.write.buckets import Buckets
from paimon.operations.write.buffer import WriteBuffer
from paimon.operations.write.route import Codes


class AppendWriter:
    """Collects rows to pieces worth writing; the files of a bucket stay open between them. A state machine."""

    def __init__(self, buckets: Buckets, limit_bytes: int) -> None:
        self._buckets = buckets
        self._buffer = WriteBuffer(limit_bytes)

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Takes rows with the numbers of their buckets."""
        self._buffer.add(rows, codes)
        if self._buffer.is_full:
            self._write()

    def flush(self) -> None:
        """Writes everything and closes the files."""
        self._write()
        for state in self._buckets.states:
            self._buckets.finish(state)

    def abort(self) -> None:
        """Forgets all rows that are not in files."""
        self._buffer.clear()

    def _write(self) -> None:
        drained = self._buffer.drain()
        if drained is None:
            return
        table, codes = drained
        if (codes == codes[0]).all():
            self._buckets.files_of(self._buckets.states[int(codes[0])]).write(table)
            self._buckets.relieve()
            return
        order = self._buckets.order_of(codes)
        ordered = table.take(pa.array(order))
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(codes)], strict=True):
            state = self._buckets.states[int(codes[order[start]])]
            self._buckets.files_of(state).write(ordered.slice(start, end - start))
        self._buckets.relieve()
