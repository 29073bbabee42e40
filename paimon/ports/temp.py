"""TempStore: local disk for spilled data, gone when the process that asked for it is.

Contract: `spill` writes an Arrow table as one temporary file and answers its handle; `load` yields it back in
batches of at most `batch_rows` rows; `drop` is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa


class TempStore(Protocol):
    """See the module's contract."""

    def spill(self, table: pa.Table) -> str: ...
    def load(self, handle: str, batch_rows: int) -> Iterator[pa.RecordBatch]: ...
    def drop(self, handle: str) -> None: ...
