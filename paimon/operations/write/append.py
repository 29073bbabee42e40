"""Write the rows of append tables to the files of their buckets.

Invariant: the order of rows within a bucket is the order in which they were written. Source: `AppendOnlyWriter`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.types.arrow_arrays import from_numpy
from paimon.operations.write.buckets import Buckets
from paimon.operations.write.buffer import WriteBuffer
from paimon.operations.write.route import Codes


class AppendWriter:
    """Buffer rows and write them in large batches; the files of a bucket stay open in between. A state machine."""

    def __init__(self, buckets: Buckets, limit_bytes: int) -> None:
        self._buckets = buckets
        self._buffer = WriteBuffer(limit_bytes)

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows together with the bucket number of each row, and write when the buffer is full."""
        self._buffer.add(rows, codes)
        if self._buffer.is_full:
            self._write()

    def flush(self) -> None:
        """Write all buffered rows and close the files of all buckets."""
        self._write()
        for state in self._buckets.states:
            self._buckets.finish(state)

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""
        self._buffer.clear()

    def _write(self) -> None:
        drained = self._buffer.drain(accepts_chunks=True)
        if drained is None:
            return
        table, codes = drained
        if (codes == codes[0]).all():
            self._buckets.get_open_files(self._buckets.states[int(codes[0])]).write(table)
            self._buckets.release_memory()
            return
        order = self._buckets.sort_by_bucket(codes)
        ordered = table.take(from_numpy(order))
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(codes)], strict=True):
            state = self._buckets.states[int(codes[order[start]])]
            self._buckets.get_open_files(state).write(ordered.slice(start, end - start))
        self._buckets.release_memory()
