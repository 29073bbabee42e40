"""Read splits in several threads, and return their rows in the order of the splits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable

ReadSplits = Callable[[Sequence[Any]], Iterator[pa.RecordBatch]]


def choose_parallelism(table: FileStoreTable, given: int | None) -> int:
    """Return how many splits to read at the same time."""
    source = "parallelism" if given is not None else "Option 'read.parallelism'"
    value = int(table.inner.options.get("read.parallelism", 1) if given is None else given)
    if value < 1:
        raise ValueError(f"{source} must be >= 1, but is {value}")
    return value


def read_batches(
    read: ReadSplits, splits: Sequence[Any], parallelism: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits in their order."""
    if parallelism == 1 or len(splits) < 2:
        yield from read(splits)
        return
    left = limit
    for batch in _read_ahead(read, splits, parallelism):
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _read_ahead(read: ReadSplits, splits: Sequence[Any], parallelism: int) -> Iterator[pa.RecordBatch]:
    with ThreadPoolExecutor(min(parallelism, len(splits))) as pool:
        waiting: deque[Future[list[pa.RecordBatch]]] = deque()
        try:
            for split in splits:
                if len(waiting) == parallelism:
                    yield from waiting.popleft().result()
                waiting.append(pool.submit(lambda chosen: list(read([chosen])), split))
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
