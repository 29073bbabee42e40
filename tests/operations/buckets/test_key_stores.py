"""The contract of KeyStores on the store that the library brings, and on the dictionary that is its reference."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import StorageError
from paimon.domain.types.data_types import BigIntType, DataField, VarCharType
from paimon.operations.buckets.block_key_store import BlockKeyStore, BlockKeyStores
from paimon.ports.key_stores import KeyStores
from paimon.testing.contracts import KeyStoresContract
from paimon.testing.memory_key_store import MemoryKeyStores

KEY = DataField(0, "k", BigIntType())


class TestBlockKeyStores(KeyStoresContract):
    def make_stores(self) -> KeyStores:
        return BlockKeyStores(LocalTempStore())


class TestMemoryKeyStores(KeyStoresContract):
    def make_stores(self) -> KeyStores:
        return MemoryKeyStores()


def numbers(first: int, last: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(np.arange(first, last))})


def stored_files(parent: str) -> list[Path]:
    return list(Path(parent).rglob("*.arrow"))


def test_large_blocks_are_files_until_they_are_merged_or_closed() -> None:
    parent = tempfile.mkdtemp()
    store = BlockKeyStore(LocalTempStore(parent), (KEY,), 1 << 20, None)
    store.load([(numbers(n, n + 1_000), np.arange(1_000)) for n in range(0, 50_000, 1_000)], 0)
    bytes_of_rows = 50_000 * 24
    assert len(stored_files(parent)) >= bytes_of_rows // ((1 << 20) // 4)
    assert max(path.stat().st_size for path in stored_files(parent)) < (1 << 20) // 3
    for n in range(100):
        store.put(numbers(n * 500, n * 500 + 500), np.full(500, n), 0)
    assert sum(path.stat().st_size for path in stored_files(parent)) < 4 * bytes_of_rows
    assert store.find(numbers(0, 50_000)).tolist() == np.repeat(np.arange(100), 500).tolist()
    store.close()
    assert not stored_files(parent)


def test_a_full_disk_is_a_storage_error_that_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tempfile.mkdtemp()
    store = BlockKeyStore(LocalTempStore(parent), (KEY,), 1 << 20, None)

    def fail(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put(numbers(0, 10), np.arange(10), 0)
    monkeypatch.setattr(pa, "OSFile", fail)
    with pytest.raises(StorageError, match=r"joined-.*the disk of temporary files is full"):
        store.put(numbers(0, 100_000), np.arange(100_000), 0)
    monkeypatch.undo()
    store.close()
    assert not stored_files(parent)


def test_sorted_runs_ordered_puts_and_unordered_puts_are_found() -> None:
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as parent:
        store = BlockKeyStore(LocalTempStore(parent), (KEY,), 1 << 20, None)
        runs = [np.arange(start, 60_000, 3) for start in range(3)]
        parts = [(run[at : at + 4_000], place) for place, run in enumerate(runs) for at in range(0, len(run), 4_000)]
        store.load(((pa.record_batch({"k": keys}), np.full(len(keys), place)) for keys, place in parts), 0)
        expected = np.arange(60_000) % 3
        for number, size in enumerate([10, 1_000, 5, 4_000, 900] * 3, 10):
            changed = random.choice(60_000, size, replace=False)
            changed = np.sort(changed) if number % 2 else changed
            store.put(pa.record_batch({"k": changed}), np.full(size, number), 0)
            expected[changed] = number
        keys = random.permutation(60_000)
        assert store.find(pa.record_batch({"k": keys})).tolist() == expected[keys].tolist()
        assert store.find(pa.record_batch({"k": [-1, 60_000]})).tolist() == [-1, -1]
        store.close()


def texts(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array([f"text {number:07}" for number in numbers.tolist()])})


@pytest.mark.parametrize("kind", ["number", "text"])
def test_sorted_runs_receive_an_index_after_many_searches(kind: str) -> None:
    """Before and after, on disk and in memory, each key has the place of its run, and other keys have none."""
    field = KEY if kind == "number" else DataField(0, "k", VarCharType(2147483647))
    to_keys = texts if kind == "text" else lambda values: pa.record_batch({"k": values})
    runs = [np.arange(start, 12_000, 6) for start in range(6)]
    for memory_bytes in (1 << 18, 1 << 24):
        with tempfile.TemporaryDirectory() as parent:
            store = BlockKeyStore(LocalTempStore(parent), (field,), memory_bytes, None)
            assert store.load(((to_keys(run), np.full(len(run), place)) for place, run in enumerate(runs)), 0) == 12_000
            files = len(stored_files(parent))
            assert (files > 0) is (memory_bytes == 1 << 18)
            random = np.random.default_rng(5)
            for size in (1, 7, 500, 6_000):
                wanted = random.integers(-100, 12_100, size)
                expected = np.where((wanted >= 0) & (wanted < 12_000), wanted % 6, -1)
                assert store.find(to_keys(wanted)).tolist() == expected.tolist()
            is_indexed = kind == "text" or memory_bytes == 1 << 24  # a search of few runs of numbers needs no index
            assert {stored.block.hashes is not None for stored in store._blocks} == {is_indexed}
            assert len(stored_files(parent)) == files * (1 + is_indexed)
            store.close()
            assert not stored_files(parent)


def test_one_key_is_found_in_sorted_runs_without_an_index() -> None:
    store = BlockKeyStore(LocalTempStore(), (DataField(0, "k", VarCharType(2147483647)),), 1 << 24, None)
    parts = [texts(np.arange(start, start + 1_000)) for start in range(0, 10_000, 1_000)]
    store.load(((part, np.full(1_000, number // 5)) for number, part in enumerate(parts)), 0)
    assert store.find(texts(np.array([4_999, 5_000, 10_000]))).tolist() == [0, 1, -1]
    (stored,) = store._blocks
    assert stored.block.hashes is None
    assert stored.block.places.values.tolist() == [0] * 5 + [1] * 5
