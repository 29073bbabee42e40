"""Contract tests of the port ObjectCache.

An adapter that keeps the contract of `paimon.ports.cache` passes. Derive a class from `ObjectCacheContract`, whose
`make_cache` returns a new adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from paimon.ports.cache import ObjectCache
from paimon.testing.contracts.races import run_watched

_BOUND_BYTES = 1_000
_ROUNDS = 30


class ObjectCacheContract(ABC):
    """The tests of the port. A subclass implements `make_cache`."""

    @abstractmethod
    def make_cache(self, max_bytes: int) -> ObjectCache:
        """Return a new cache with this bound in bytes. One that holds less, or nothing, passes, too."""

    def test_a_value_is_that_of_its_path_and_view(self) -> None:
        """The same object, or None after an eviction; None under another path or view."""
        cache = self.make_cache(_BOUND_BYTES)
        values = {(path, view): object() for path in ("/t/a", "/t/ab", "/t/a/b") for view in ("", "keys")}
        for (path, view), value in values.items():
            cache.put(path, value, 10, view)
        for (path, view), value in values.items():
            assert cache.get(path, view) in (value, None)
        assert cache.get("/t/a", "other") is None
        assert cache.get("/t") is None

    def test_a_value_is_replaced(self) -> None:
        """The old one is never returned again, also if the new one is too large to be cached."""
        cache = self.make_cache(_BOUND_BYTES)
        old, new = object(), object()
        for size in (20, _BOUND_BYTES + 1):
            cache.put("/t/a", old, 10)
            cache.put("/t/a", new, size)
            assert cache.get("/t/a") in (new, None)
        assert cache.get("/t/a") is None

    def test_the_bound_holds(self) -> None:
        """The sizes of all values that are found are at most the bound."""
        cache = self.make_cache(_BOUND_BYTES)
        sizes = {f"/t/{number}": 50 + number for number in range(100)}
        for path, size in sizes.items():
            cache.put(path, path, size)
        for path in sizes:
            cache.put(path, path, 1, "a view")
            cache.put(path, path, sizes[path])
        assert sum(size for path, size in sizes.items() if cache.get(path) is not None) <= _BOUND_BYTES

    def test_dropped_files_have_no_values(self) -> None:
        """In no view. The paths are read once, and unknown ones are ignored."""
        cache = self.make_cache(_BOUND_BYTES)
        for path in ("/t/a", "/t/ab", "/t/c"):
            for view in ("", "keys"):
                cache.put(path, path, 10, view)
        for _ in range(2):
            cache.drop(path for path in ("/t/a", "/t/none", "/t/c"))
        assert [cache.get(path, view) for path in ("/t/a", "/t/c") for view in ("", "keys")] == [None] * 4
        assert cache.get("/t/ab", "keys") in ("/t/ab", None)

    def test_a_cleared_cache_is_empty(self) -> None:
        """And takes new values."""
        cache = self.make_cache(_BOUND_BYTES)
        cache.put("/t/a", 1, 10)
        cache.put("/t/b", 1, 10, "keys")
        for _ in range(2):
            cache.clear()
        assert cache.get("/t/a") is None and cache.get("/t/b", "keys") is None
        cache.put("/t/a", 2, 10)
        assert cache.get("/t/a") in (2, None)

    def test_threads_share_the_cache(self) -> None:
        """A value that another thread replaces, evicts or drops meanwhile is found as a whole or not at all."""
        cache = self.make_cache(_BOUND_BYTES)

        def get_often() -> None:
            """Look for a value that comes and goes."""
            for _ in range(_ROUNDS):
                assert cache.get("/t/a") in ("value", None)

        def put_often() -> None:
            """Replace a value that another thread drops."""
            for _ in range(_ROUNDS):
                cache.put("/t/a", "value", _BOUND_BYTES)

        def change() -> bool:
            """Put, evict and drop the value."""
            cache.put("/t/a", "value", _BOUND_BYTES)
            cache.put("/t/b", "other", _BOUND_BYTES)
            cache.put("/t/a", "value", 10)
            cache.drop(["/t/a"])
            return cache.get("/t/b") in ("other", None)

        assert run_watched(get_often, change)
        assert run_watched(put_often, change)
