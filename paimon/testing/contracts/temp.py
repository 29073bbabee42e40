"""The contract of TempStore as tests.

An adapter that keeps the contract of `paimon.ports.temp` passes. Derive a class from `TempStoreContract`, whose
`make_store` returns the adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from paimon.domain.errors import StorageError
from paimon.ports.temp import TempStore
from paimon.testing.contracts.files import expect_error

_ROWS = 10_000
_LARGE_BYTES = 1 << 30
_THREADS = 4


class TempStoreContract(ABC):
    """The tests of the port. A subclass implements `make_store`."""

    @abstractmethod
    def make_store(self) -> TempStore:
        """Return a new adapter."""

    def test_spilled_rows_are_loaded_in_their_order(self) -> None:
        """In batches within the bound, as often as the caller wants."""
        store = self.make_store()
        table = _table(_ROWS)
        handle = store.spill(table)
        for batch_rows in (1_000, 333, 10 * _ROWS):
            batches = list(store.load(handle, batch_rows))
            assert all(0 < batch.num_rows <= batch_rows for batch in batches)
            assert pa.Table.from_batches(batches, table.schema).equals(table)
        store.drop(handle)

    def test_a_table_without_rows_can_be_spilled(self) -> None:
        """It has no rows when it is loaded."""
        store = self.make_store()
        assert sum(batch.num_rows for batch in store.load(store.spill(_table(0)), 10)) == 0

    def test_stored_batches_are_mapped_unchanged(self) -> None:
        """The batches, their order and their sizes are the same, before and after the file is dropped."""
        store = self.make_store()
        batches = _table(100).to_batches(max_chunksize=30)
        stored = store.store(batches, batches[0].schema, _LARGE_BYTES)
        assert stored is not None and stored.bytes > 0
        mapped = list(store.map_batches(stored.handle))
        assert len(mapped) == len(batches)
        store.drop(stored.handle)
        for batch, expected in zip(mapped, batches, strict=True):
            assert batch.equals(expected)

    def test_joined_batches_are_mapped_as_one(self) -> None:
        """All rows are the same, also those of slices, and after the file is dropped."""
        store = self.make_store()
        for table in (_table(100), _table(100).drop_null(), _table(100).drop_null().drop_columns(["list"]), _table(0)):
            for batches in (table.to_batches(max_chunksize=30), table.slice(7, 40).to_batches(max_chunksize=9)):
                stored = store.store_joined(batches or [_empty_batch(table.schema)])
                store.drop(stored.handle)
                assert stored.batch.schema.equals(table.schema)
                assert stored.batch.equals(pa.concat_batches(batches or [_empty_batch(table.schema)]))
                stored.batch.validate(full=True)

    def test_batches_above_the_limit_are_not_stored(self) -> None:
        """The adapter stops to read batches once they exceed the limit."""
        store = self.make_store()
        batch = _table(1_000).to_batches()[0]
        taken: list[int] = []

        def endless() -> Iterator[pa.RecordBatch]:
            """Note each batch that the adapter reads."""
            while True:
                taken.append(1)
                yield batch

        assert store.store(endless(), batch.schema, 5 * batch.nbytes) is None
        assert len(taken) <= 7

    def test_an_error_of_the_batches_is_passed_on(self) -> None:
        """Check that the store stays usable after an error of its input.

        Raises
        ------
        ZeroDivisionError
            By the batches of the test.
        """
        store = self.make_store()
        batch = _table(10).to_batches()[0]

        def fail_after_one() -> Iterator[pa.RecordBatch]:
            """Yield one batch.

            Raises
            ------
            ZeroDivisionError
                After the batch.
            """
            yield batch
            raise ZeroDivisionError

        expect_error(ZeroDivisionError, lambda: store.store(fail_after_one(), batch.schema, _LARGE_BYTES))
        assert store.store([batch], batch.schema, _LARGE_BYTES) is not None

    def test_a_dropped_handle_cannot_be_read(self) -> None:
        """A second drop is not an error, and other handles stay."""
        store = self.make_store()
        table = _table(10)
        dropped, other = store.spill(table), store.spill(table)
        assert dropped != other
        for _ in range(2):
            store.drop(dropped)
        expect_error(StorageError, lambda: list(store.load(dropped, 10)))
        assert pa.Table.from_batches(store.load(other, 10), table.schema).equals(table)

    def test_threads_share_the_store(self) -> None:
        """Each thread loads what it spilled."""
        store = self.make_store()

        def spill_and_load(rows: int) -> bool:
            """Return whether the loaded rows equal the spilled ones."""
            table = _table(rows)
            handle = store.spill(table)
            loaded = pa.Table.from_batches(store.load(handle, 7), table.schema)
            store.drop(handle)
            return bool(loaded.equals(table))

        with ThreadPoolExecutor(_THREADS) as pool:
            assert all(list(pool.map(spill_and_load, range(1, 40))))


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _table(rows: int) -> pa.Table:
    """Return a table of numbers, texts and lists, each third value of which is null."""
    numbers = [None if n % 3 == 0 else n for n in range(rows)]
    texts = pa.array([None if n is None else f"text {n}" for n in numbers], pa.string())
    lists = pa.array([None if n is None else [n, n + 1] for n in numbers], pa.list_(pa.int64()))
    return pa.table({"number": pa.array(numbers, pa.int64()), "text": texts, "list": lists})
