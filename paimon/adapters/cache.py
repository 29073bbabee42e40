"""LruCache: an ObjectCache in memory that evicts the least recently used values first.

Invariant: the sizes of what is cached never exceed the bound; a value larger than the bound is not cached at all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

DEFAULT_BYTES = 256 * 1024 * 1024
_RELEASED_AT_ONCE_BYTES = 32 * 1024 * 1024
"""Free memory is returned after this many dropped bytes: a return costs milliseconds, and new values reuse the rest."""


class LruCache:
    """See `paimon.ports.cache.ObjectCache`.

    `max_bytes` bounds the sum of all sizes. `release` returns free memory to the operating system. What is dropped
    here is also dropped from `others`.
    """

    def __init__(
        self,
        max_bytes: int = DEFAULT_BYTES,
        release: Callable[[], None] = lambda: None,
        others: Sequence[LruCache] = (),
    ) -> None:
        self._max_bytes = max_bytes
        self._release = release
        self._others = tuple(others)
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[str, str], tuple[object, int]] = OrderedDict()
        self._views: dict[str, set[str]] = {}
        self._bytes = 0
        self._dropped_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The sum of the sizes of all values."""
        return self._bytes

    def paths(self) -> list[str]:
        """Return the paths that have values."""
        with self._lock:
            return list(self._views)

    def abandon(self, _: Callable[[object], None]) -> None:
        """Replace the lock: a thread of the parent process may hold it. Called in a forked child."""
        self._lock = threading.Lock()

    def get(self, path: str, view: str = "") -> object | None:
        """Return a value and mark it as the most recently used; None if it is not cached."""
        with self._lock:
            found = self._values.get((path, view))
            if found is None:
                return None
            self._values.move_to_end((path, view))
            return found[0]

    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        """Cache an immutable value, and evict the least recently used ones until all fit.

        A value larger than the bound is not cached. `view` names one of several values of the same file.
        """
        with self._lock:
            self._remove(path, view)
            if size_bytes > self._max_bytes:
                return
            self._values[path, view] = (value, size_bytes)
            self._views.setdefault(path, set()).add(view)
            self._bytes += size_bytes
            while self._bytes > self._max_bytes:
                self._remove(*next(iter(self._values)))

    def drop(self, paths: Iterable[str]) -> None:
        """Evict all values of these files, and return the memory after many dropped bytes."""
        dropped = list(paths)
        for other in self._others:
            other.drop(dropped)
        with self._lock:
            before = self._bytes
            for path in dropped:
                for view in list(self._views.get(path, ())):
                    self._remove(path, view)
            self._dropped_bytes += before - self._bytes
            is_much = self._dropped_bytes >= _RELEASED_AT_ONCE_BYTES
            if is_much:
                self._dropped_bytes = 0
        if is_much:
            self._release()

    def clear(self) -> None:
        """Evict all values, and return the memory."""
        for other in self._others:
            other.clear()
        with self._lock:
            self._values.clear()
            self._views.clear()
            self._bytes = self._dropped_bytes = 0
        self._release()

    def _remove(self, path: str, view: str) -> None:
        removed = self._values.pop((path, view), None)
        if removed is None:
            return
        self._bytes -= removed[1]
        views = self._views[path]
        views.remove(view)
        if not views:
            del self._views[path]
