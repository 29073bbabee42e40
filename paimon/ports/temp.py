"""TempStore: local disk for data that only this process needs, gone when the process that asked for it is.

Contract: `spill` writes an Arrow table as one temporary file and answers its handle; `load` yields it back in
batches of at most `batch_rows` rows. `keep` writes batches of one schema as they are, as they come, and answers their
handle and size; it gives up, and leaves nothing, where they would take more than `max_bytes`. `mapped` answers the
batches of `keep` without reading them: whoever touches some of their rows reads these alone. `drop` is idempotent, and
batches that were mapped before stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa


class Kept(NamedTuple):
    """What `keep` wrote: how it is asked for, and the bytes that it takes on disk."""

    handle: str
    bytes: int


class TempStore(Protocol):
    """See the module's contract."""

    def spill(self, table: pa.Table) -> str: ...
    def load(self, handle: str, batch_rows: int) -> Iterator[pa.RecordBatch]: ...
    def keep(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, max_bytes: int) -> Kept | None: ...
    def mapped(self, handle: str) -> Sequence[pa.RecordBatch]: ...
    def drop(self, handle: str) -> None: ...
