"""LruCache: decoded files by path, the least recently used evicted first.

Invariant: the sizes of what is cached never exceed the bound; a value larger than the bound is not cached at all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from paimon.adapters.free_memory import release_free_memory

DEFAULT_BYTES = 256 * 1024 * 1024
_RELEASED_AT_ONCE_BYTES = 32 * 1024 * 1024
"""After so many dropped bytes free memory is returned: it costs milliseconds, and what stays serves the next values."""


class LruCache:
    """See `paimon.ports.cache.ObjectCache`.

    Parameters
    ----------
    max_bytes : int
        The bound of all sizes together.
    release : callable
        Returns free memory to the operating system.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES, release: Callable[[], None] = release_free_memory) -> None:
        self._max_bytes = max_bytes
        self._release = release
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[object, int]] = OrderedDict()
        self._views: dict[str, set[str]] = {}
        self._bytes = 0
        self._dropped_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The sizes of all values together."""
        return self._bytes

    def paths(self) -> list[str]:
        """Return the paths that have values."""
        with self._lock:
            return list(self._views)

    def get(self, path: str, view: str = "") -> object | None:
        """Return the value, now the most recently used; None where it is not cached."""
        with self._lock:
            found = self._kept.get((path, view))
            if found is None:
                return None
            self._kept.move_to_end((path, view))
            return found[0]

    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        """Cache the value, and evict the least recently used ones until all fit."""
        with self._lock:
            self._remove(path, view)
            if size_bytes > self._max_bytes:
                return
            self._kept[path, view] = (value, size_bytes)
            self._views.setdefault(path, set()).add(view)
            self._bytes += size_bytes
            while self._bytes > self._max_bytes:
                self._remove(*next(iter(self._kept)))

    def drop(self, paths: Iterable[str]) -> None:
        """Evict all values of these files; return the memory when much was dropped."""
        with self._lock:
            before = self._bytes
            for path in paths:
                for view in list(self._views.get(path, ())):
                    self._remove(path, view)
            self._dropped_bytes += before - self._bytes
            is_much = self._dropped_bytes >= _RELEASED_AT_ONCE_BYTES
            if is_much:
                self._dropped_bytes = 0
        if is_much:
            self._release()

    def clear(self) -> None:
        """Evict everything, and return the memory."""
        with self._lock:
            self._kept.clear()
            self._views.clear()
            self._bytes = self._dropped_bytes = 0
        self._release()

    def _remove(self, path: str, view: str) -> None:
        removed = self._kept.pop((path, view), None)
        if removed is None:
            return
        self._bytes -= removed[1]
        views = self._views[path]
        views.remove(view)
        if not views:
            del self._views[path]
