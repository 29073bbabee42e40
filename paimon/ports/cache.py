"""ObjectCache: keeps decoded immutable files (manifests, schemas) by path, bounded by bytes.

Contract: `get` answers what `put` kept, or None; values are immutable and shared; eviction is the adapter's business.
"""

from __future__ import annotations

from typing import Protocol


class ObjectCache(Protocol):
    """See the module's contract."""

    def get(self, key: str) -> object | None: ...
    def put(self, key: str, value: object, size_bytes: int) -> None: ...
