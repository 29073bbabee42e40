"""ObjectCache: keeps decoded immutable files (manifests, schemas) by path, bounded by bytes.

Invariant: values are immutable and shared between callers; any value may be evicted at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class ObjectCache(Protocol):
    """A cache of what was decoded of files. All methods are safe to call from several threads."""

    def get(self, path: str, view: str = "") -> object | None:
        """Return a cached value.

        Parameters
        ----------
        path : str
            The file that the value was decoded from.
        view : str
            Which of several values of this file.

        Returns
        -------
        object or None
            None where nothing is cached.
        """

    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        """Cache a value, in the place of the one with the same path and view.

        Parameters
        ----------
        path, view : str
            As in `get`.
        value : object
            Immutable.
        size_bytes : int
            What the value takes in memory, its containers included. A value above the bound is not cached.
        """

    def drop(self, paths: Iterable[str]) -> None:
        """Evict all values of these files, because they are deleted; paths without values are ignored."""

    def clear(self) -> None:
        """Evict everything, and return the memory to the operating system where it can be returned."""
