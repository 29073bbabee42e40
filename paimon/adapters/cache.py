"""LruCache: decoded files by path, the least recently used given up first.

Law: what is kept never exceeds the bound in bytes; a value larger than the bound is not kept at all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

DEFAULT_BYTES = 256 * 1024 * 1024


class LruCache:
    """See `paimon.ports.cache.ObjectCache`; safe to use from threads."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[object, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> object | None:
        """The value of this key, now the most recently used; None where it is not kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: str, value: object, size_bytes: int) -> None:
        """Keep the value, and give up the least recently used ones until all fit."""
        with self._lock:
            self._bytes -= self._kept.pop(key, (None, 0))[1]
            if size_bytes > self._max_bytes:
                return
            self._kept[key] = (value, size_bytes)
            self._bytes += size_bytes
            while self._bytes > self._max_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][1]
