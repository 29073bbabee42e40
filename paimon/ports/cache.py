"""ObjectCache: the port that keeps decoded immutable files (manifests, schemas) by path, within a bound in bytes.

Invariant: values are immutable and shared between callers; any value may be evicted at any time. Suite:
`paimon.testing.contracts.caches`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class ObjectCache(Protocol):
    """A cache of decoded files.

    All methods are atomic, are safe to call from several threads, and never raise. A caller works without any entry.
    """

    def get(self, path: str, view: str = "") -> object | None:
        """Return a cached value.

        Parameters
        ----------
        path : str
            The file that the value was decoded from.
        view : str
            The name of one of several values of this file.

        Returns
        -------
        object or None
            The value of the last `put` with this path and view, itself and no copy. None if there was none or it was
            evicted.
        """

    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        """Cache a value, and replace the one with the same path and view.

        The call may evict other values, but never a part of one.

        Parameters
        ----------
        path : str
            The file that the value was decoded from. Its content must never change.
        value : object
            Immutable, because all callers share it.
        size_bytes : int
            The memory of the value with its containers. The sum over all values never exceeds the bound of the cache.
            A value above the bound is not cached, and evicts the older one of its path and view.
        view : str
            The name of one of several values of this file.
        """

    def drop(self, paths: Iterable[str]) -> None:
        """Evict all values of deleted files. The call is idempotent.

        Parameters
        ----------
        paths : iterable of str
            The deleted files, read once. Paths without values are ignored.
        """

    def clear(self) -> None:
        """Evict all values, and return their memory to the operating system where that is possible. Idempotent."""
