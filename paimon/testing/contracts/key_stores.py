"""The contract of KeyStores as tests.

An adapter that keeps the contract of `paimon.ports.key_stores` passes. Derive a class from `KeyStoresContract`, whose
`make_stores` returns the adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from paimon.domain.types.data_types import BigIntType, DataField, DoubleType, VarCharType
from paimon.ports.key_stores import KeyStore, KeyStores, Places
from paimon.testing.contracts.files import expect_error

_NUMBER = DataField(0, "number", BigIntType())
_TEXT = DataField(1, "text", VarCharType(2147483647))
_DOUBLE = DataField(2, "double", DoubleType())
_MEMORY_BYTES = 1 << 20
_ROUNDS = 60
_NOW_MILLIS = 1_000_000
_TIME_TO_LIVE_MILLIS = 80_000


class KeyStoresContract(ABC):
    """The tests of the port. A subclass implements `make_stores`."""

    @abstractmethod
    def make_stores(self) -> KeyStores:
        """Return a new adapter."""

    def test_a_new_store_has_no_key(self) -> None:
        """Each row of a request gets -1, and a request without rows gets nothing."""
        store = self._open()
        assert store.find(_keys(range(5))).tolist() == [-1] * 5
        assert store.find(_keys(())).tolist() == []

    def test_loaded_keys_are_found(self) -> None:
        """Whatever their order is, and as often as they are requested; also beyond the memory of the store."""
        store, batches = self._open(), list(_batches(50, 2_000))
        assert store.load(batches, _NOW_MILLIS) == 100_000
        for keys, places in batches[::-7]:
            assert store.find(keys).tolist() == places.tolist()
        asked = [99_999, 100_000, 5, 5, -1]
        assert store.find(_keys(asked)).tolist() == [_place(n) if 0 <= n < 100_000 else -1 for n in asked]

    def test_a_put_replaces_places(self) -> None:
        """Many puts, of keys that the store has and of new ones, leave what a dictionary would have."""
        store, expected = self._open(), dict[int, int]()
        random = np.random.default_rng(7)
        store.load(list(_batches(3, 500)), _NOW_MILLIS)
        expected |= {n: _place(n) for n in range(1_500)}
        for round_number in range(_ROUNDS):
            numbers = random.permutation(3_000)[: random.integers(1, 700)]
            places = random.integers(0, 1 << 60, len(numbers))
            store.put(_keys(numbers.tolist()), places, _NOW_MILLIS + round_number)
            expected |= dict(zip(numbers.tolist(), places.tolist(), strict=True))
        asked = random.permutation(4_000).tolist()
        assert store.find(_keys(asked)).tolist() == [expected.get(n, -1) for n in asked]

    def test_keys_are_equal_as_primary_keys_are(self) -> None:
        """Null equals null, NaN equals NaN, and the zeros differ."""
        store = self.make_stores().open((_DOUBLE, _TEXT), _MEMORY_BYTES, None)
        values = [None, float("nan"), 0.0, -0.0, 1.0]
        texts = ["a", None, "a", "a", ""]
        keys = pa.record_batch({"double": pa.array(values, pa.float64()), "text": pa.array(texts)})
        store.put(keys, np.arange(5), _NOW_MILLIS)
        assert store.find(keys).tolist() == [0, 1, 2, 3, 4]
        others = pa.record_batch({"double": pa.array([None, None, 1.0]), "text": pa.array(["", None, None])})
        assert store.find(others).tolist() == [-1, -1, -1]

    def test_keys_expire_after_their_last_put(self) -> None:
        """A later put lets a key live longer."""
        store = self.make_stores().open((_NUMBER,), _MEMORY_BYTES, _TIME_TO_LIVE_MILLIS)
        store.load([(_numbers((1, 2)), np.array([1, 2]))], _NOW_MILLIS)
        store.put(_numbers((2,)), np.array([20]), _NOW_MILLIS + _TIME_TO_LIVE_MILLIS)
        assert store.find(_numbers((1, 2))).tolist() == [1, 20]
        store.put(_numbers((3,)), np.array([3]), _NOW_MILLIS + _TIME_TO_LIVE_MILLIS * 5 // 4)
        assert store.find(_numbers((1, 2, 3))).tolist() == [-1, 20, 3]

    def test_an_error_of_the_batches_is_passed_on(self) -> None:
        """A store whose load failed can be closed.

        Raises
        ------
        ZeroDivisionError
            By the batches of the test.
        """
        store = self._open()

        def fail_after_one() -> Iterator[tuple[pa.RecordBatch, Places]]:
            """Yield one batch.

            Raises
            ------
            ZeroDivisionError
                After the batch.
            """
            yield _keys((1,)), np.array([1])
            raise ZeroDivisionError

        expect_error(ZeroDivisionError, lambda: store.load(fail_after_one(), _NOW_MILLIS))
        store.close()

    def test_stores_are_independent(self) -> None:
        """A closed store has no keys, another keeps its own, and a second close is not an error."""
        stores = self.make_stores()
        one, other = (stores.open((_NUMBER,), _MEMORY_BYTES, None) for _ in range(2))
        for number, store in enumerate((one, other)):
            store.put(_numbers((7,)), np.array([number]), _NOW_MILLIS)
        for _ in range(2):
            one.close()
        assert other.find(_numbers((7,))).tolist() == [1]

    def _open(self) -> KeyStore:
        return self.make_stores().open((_NUMBER, _TEXT), _MEMORY_BYTES, None)


def _place(number: int) -> int:
    return number * 3 << 20


def _keys(numbers: range | list[int] | tuple[int, ...]) -> pa.RecordBatch:
    texts = [f"text of {number}" for number in numbers]
    return pa.record_batch({"number": pa.array(numbers, pa.int64()), "text": pa.array(texts, pa.string())})


def _numbers(numbers: tuple[int, ...]) -> pa.RecordBatch:
    return pa.record_batch({"number": pa.array(numbers, pa.int64())})


def _batches(count: int, rows: int) -> Iterator[tuple[pa.RecordBatch, Places]]:
    """Yield distinct keys, which do not ascend."""
    numbers = np.random.default_rng(3).permutation(count * rows)
    for part in np.split(numbers, count):
        yield _keys(part.tolist()), np.array([_place(int(n)) for n in part])
