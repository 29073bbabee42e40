"""Writing append tables: rows go to their bucket's files as they come.

Law: the order of rows within a bucket is the order in which they were written. Source: `AppendOnlyWriter`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.operations.write.buckets import Buckets
from paimon.operations.write.buffer import WriteBuffer


def write_appended(buffer: WriteBuffer, buckets: Buckets) -> None:
    """Moves all buffered rows to the open files of their buckets."""
    drained = buffer.drain()
    if drained is None:
        return
    table, codes = drained
    if (codes == codes[0]).all():
        buckets.files_of(buckets.states[int(codes[0])]).write(table)
        return
    order = buckets.order_of(codes)
    ordered = table.take(pa.array(order))
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(codes)], strict=True):
        state = buckets.states[int(codes[order[start]])]
        buckets.files_of(state).write(ordered.slice(start, end - start))
