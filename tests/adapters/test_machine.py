"""Executors, spilling, the cache, catalog directories, clock and names."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.adapters.cache import LruCache
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.serial import SerialExecutor
from paimon.adapters.executors.threads import ThreadExecutor
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.observers import CountingObserver, LoggingObserver
from paimon.adapters.snapshots.queued import QueuedSnapshotCommit
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.ports.files import FileIO
from paimon.ports.snapshots import PublishOutcome
from paimon.testing.faulty_files import Fault, FaultyFiles, numbered
from paimon.testing.memory_files import MemoryFiles

EXECUTORS = [SerialExecutor(), ThreadExecutor(1), ThreadExecutor(3)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_answers_come_in_order_and_errors_in_their_place(executor) -> None:
    def slow_first(task: int) -> int:
        time.sleep(0.02 if task == 0 else 0)
        return 10 // (3 - task)

    assert list(executor.map(abs, [])) == []
    answers = executor.map(slow_first, range(6))
    assert [next(answers) for _ in range(3)] == [3, 5, 10]
    with pytest.raises(ZeroDivisionError):
        next(answers)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_no_task_runs_far_ahead(executor) -> None:
    begun = []
    answers = executor.map(begun.append, range(100))
    next(answers)
    answers.close()
    assert len(begun) <= 5


def test_tasks_run_side_by_side_and_may_map_again() -> None:
    executor = ThreadExecutor(2)
    meeting = threading.Barrier(2)

    def meet(task: int) -> int:
        meeting.wait(10)
        return sum(executor.map(abs, range(task, task + 5)))

    assert list(executor.map(meet, [0, 1])) == [10, 15]


def test_a_task_that_is_alone_stays_in_the_callers_thread() -> None:
    here = threading.get_ident()
    assert list(ThreadExecutor(2).map(lambda _: threading.get_ident(), [0])) == [here]
    assert here not in list(ThreadExecutor(2).map(lambda _: threading.get_ident(), [0, 1]))


def test_spilled_tables_come_back_in_batches(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    table = pa.table({"a": range(150_000), "s": ["x", None, "y"] * 50_000})
    first, second = store.spill(table), store.spill(table.slice(0, 0))
    batches = list(store.load(first, 40_000))
    assert pa.Table.from_batches(batches).equals(table)
    assert max(b.num_rows for b in batches) <= 40_000
    assert list(store.load(second, 10)) == []
    store.drop(first)
    store.drop(first)
    with pytest.raises(StorageError):
        list(store.load(first, 10))
    directory = Path(second).parent
    assert directory.stat().st_mode & 0o077 == 0
    del store
    gc.collect()
    assert not directory.exists()


def test_kept_batches_are_mapped_as_they_were(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    whole = pa.record_batch({"a": range(3_000), "s": ["x", None] * 1_500})
    batches = [whole.slice(0, 1_000), whole.slice(0, 0), whole.slice(1_000)]
    kept = store.keep(iter(batches), batches[0].schema, 1 << 20)
    assert kept is not None and kept.bytes == Path(kept.handle).stat().st_size
    before = pa.total_allocated_bytes()
    mapped = store.mapped(kept.handle)
    assert [b.num_rows for b in mapped] == [1_000, 0, 2_000]
    assert pa.total_allocated_bytes() - before < 1_000
    store.drop(kept.handle)
    assert list(mapped) == batches
    with pytest.raises(StorageError):
        store.mapped(kept.handle)


def test_what_is_larger_than_it_may_be_is_not_kept(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    batch = pa.record_batch({"a": range(1_000)})
    taken: list[int] = []

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            taken.append(1)
            yield batch

    def broken() -> Iterator[pa.RecordBatch]:
        yield batch
        raise InvalidRequest("no more")

    assert store.keep(endless(), batch.schema, 10_000) is None
    assert len(taken) == 2
    with pytest.raises(InvalidRequest):
        store.keep(broken(), batch.schema, 10_000)
    assert not list(tmp_path.rglob("*.arrow"))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=30))
def test_the_cache_keeps_within_its_bound(puts: list[tuple[str, int]]) -> None:
    cache = LruCache(100)
    sizes = {}
    for turn, (key, size) in enumerate(puts):
        cache.put(key, (key, turn), size)
        sizes[key] = size
        assert cache.get(key) == (key, turn)
        kept = [k for k in sizes if cache.get(k) is not None]
        assert sum(sizes[k] for k in kept) <= 100


def test_the_cache_gives_up_what_was_not_used() -> None:
    cache = LruCache(10)
    cache.put("a", 1, 5)
    cache.put("b", 2, 5)
    assert cache.get("a") == 1
    cache.put("c", 3, 5)
    assert [cache.get(k) for k in "abc"] == [1, None, 3]
    cache.put("huge", 4, 11)
    assert cache.get("huge") is None


def test_the_cache_drops_all_that_it_has_of_deleted_files() -> None:
    cache = LruCache(100)
    cache.put("a", 1, 5)
    cache.put("a", 2, 6, "columns")
    cache.put("b", 3, 7)
    cache.drop(["a", "missing"])
    assert (cache.get("a"), cache.get("a", "columns"), cache.get("b")) == (None, None, 3)
    assert (cache.paths(), cache.size_bytes) == (["b"], 7)


def test_the_cache_returns_memory_when_much_was_dropped_and_when_it_is_cleared() -> None:
    released: list[int] = []
    cache = LruCache(release=lambda: released.append(cache.size_bytes))
    for turn in range(40):
        cache.put(f"{turn}", turn, 1 << 20)
        cache.drop([f"{turn}"])
    assert released == [0]
    cache.put("a", 1, 5)
    cache.clear()
    assert (released, cache.paths(), cache.size_bytes) == ([0, 0], [], 0)


@pytest.fixture(params=["local", "memory", "url"])
def store(request, tmp_path) -> FileSystemCatalogStore:
    places: dict[str, tuple[FileIO, str]] = {
        "local": (LocalFiles(), f"{tmp_path}/lake"),
        "memory": (MemoryFiles(), "/lake"),
        "url": (FsspecFiles("memory://x"), f"memory://{RandomIds().uuid()}/lake"),
    }
    return FileSystemCatalogStore(*places[request.param])


def make_table(store: FileSystemCatalogStore, database: str, table: str) -> str:
    location = store.table_location(database, table)
    for name in ("schema/schema-0", "snapshot/snapshot-1", "bucket-0/data-1.parquet"):
        store.files.replace(f"{location}/{name}", name.encode())
    return location


def test_databases_and_tables(store: FileSystemCatalogStore) -> None:
    assert list(store.databases()) == []
    store.create_database("shop")
    with pytest.raises(AlreadyExists):
        store.create_database("shop")
    assert (list(store.databases()), list(store.tables("shop"))) == (["shop"], [])
    location = make_table(store, "shop", "orders")
    store.files.replace(store.table_location("shop", "not_a_table") + "/file", b"")
    assert list(store.tables("shop")) == ["orders"]
    store.create_database("old")
    store.rename_table("shop", "orders", "old", "orders_2025")
    assert (list(store.tables("shop")), list(store.tables("old"))) == ([], ["orders_2025"])
    moved = store.table_location("old", "orders_2025")
    assert store.files.read(f"{moved}/bucket-0/data-1.parquet") == b"bucket-0/data-1.parquet"
    assert store.files.status(f"{location}/schema/schema-0") is None
    store.drop_table("old", "orders_2025")
    assert list(store.tables("old")) == []
    make_table(store, "old", "last")
    store.drop_database("old")
    assert list(store.databases()) == ["shop"]


def test_what_is_missing_or_taken_is_said(store: FileSystemCatalogStore) -> None:
    store.create_database("d")
    make_table(store, "d", "a")
    make_table(store, "d", "b")
    with pytest.raises(AlreadyExists):
        store.rename_table("d", "a", "d", "b")
    for call in (
        lambda: store.drop_table("d", "nope"),
        lambda: store.drop_database("nope"),
        lambda: store.rename_table("d", "nope", "d", "x"),
        lambda: store.rename_table("d", "a", "nope", "x"),
    ):
        with pytest.raises(NotFound):
            call()
    assert list(store.tables("d")) == ["a", "b"]


def test_a_drop_that_was_interrupted_can_be_repeated() -> None:
    whole = FileSystemCatalogStore(MemoryFiles(), "/lake")
    whole.create_database("d")
    location = make_table(whole, "d", "t")
    files = whole.files
    failing = FileSystemCatalogStore(_DeletesOne(files), "/lake")
    with pytest.raises(StorageError):
        failing.drop_table("d", "t")
    assert files.status(f"{location}/schema/schema-0") is not None
    assert list(whole.tables("d")) == ["t"]
    whole.drop_table("d", "t")
    assert files.status(location) is None


class _DeletesOne(FaultyFiles):
    """Deletes the first path that it is given, then fails."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner, numbered({}))

    def delete(self, paths) -> None:
        super().delete(paths[:1])
        raise StorageError(paths[1], "planned")


def test_a_snapshot_is_published_once() -> None:
    files, paths = MemoryFiles(), TablePaths("/t")
    commit = FileSnapshotCommit(files)
    one = Snapshot(1, 0, "base", "delta-1", "me", 1, CommitKind.APPEND, 0)
    other = Snapshot(1, 0, "base", "delta-2", "you", 1, CommitKind.APPEND, 0)
    assert commit.publish(paths, one, None) is PublishOutcome.PUBLISHED
    assert commit.publish(paths, other, None) is PublishOutcome.LOST
    assert b"delta-1" in files.read("/t/snapshot/snapshot-1")
    silent = FileSnapshotCommit(FaultyFiles(files, numbered({0: Fault.TELLS_NOTHING})))
    two = Snapshot(2, 0, "base", "delta-3", "me", 2, CommitKind.APPEND, 0)
    assert silent.publish(paths, two, one) is PublishOutcome.UNKNOWN


def test_writers_of_a_machine_take_turns_and_wait_for_nobody_for_ever(tmp_path: Path) -> None:
    paths = TablePaths(str(tmp_path))
    patient, hasty = QueuedSnapshotCommit(LocalFiles()), QueuedSnapshotCommit(LocalFiles(), patience_seconds=0.05)
    with patient.turn(paths):
        pass  # nothing was published yet: there is no directory to queue at
    (tmp_path / "snapshot").mkdir()
    inside = []

    def take(_: int) -> None:
        with patient.turn(paths):
            inside.append(1)
            time.sleep(0.002)
            assert sum(inside) == 1
            inside.append(-1)

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(take, range(20)))) == 20
    with patient.turn(paths):
        begun = time.monotonic()
        with hasty.turn(paths):
            assert 0.05 <= time.monotonic() - begun < 5


def test_clock_names_and_chance(monkeypatch) -> None:
    clock = SystemClock()
    before = clock.now_millis()
    clock.sleep_millis(2)
    assert before < clock.now_millis() < before + 60_000
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert clock.local_offset_millis(before) == 19_800_000
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert len({RandomIds().uuid() for _ in range(100)}) == 100
    assert all(0 <= SystemRandom().uniform() < 1 for _ in range(100))


def test_observers(caplog) -> None:
    counting = CountingObserver()
    for observer in (counting, LoggingObserver()):
        with caplog.at_level(logging.DEBUG, "paimon"):
            observer.count("files", 2)
            observer.count("files", 3)
            observer.progress("reading", 1, 4)
    assert counting.metrics == {"files": 5}
    assert counting.activities == {"reading": (1, 4)}
    assert "reading: 1 of 4" in caplog.text


def test_what_a_killed_process_leaves_goes_with_the_next_one(tmp_path) -> None:
    script = f"""
import os, sys, pyarrow as pa
from paimon.adapters.temp.local import LocalTempStore
store = LocalTempStore({str(tmp_path)!r})
print(store.spill(pa.table({{"a": [1]}})), flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    living = LocalTempStore(str(tmp_path))
    own = Path(living.spill(pa.table({"a": [1]})))

    def next_one() -> list[bool]:
        for directory in tmp_path.iterdir():
            os.utime(directory, (0, 0))
        another = LocalTempStore(str(tmp_path))
        another.spill(pa.table({"a": [1]}))
        return [left.exists(), own.exists()]

    assert next_one() == [True, True]
    process.kill()
    process.wait()
    assert next_one() == [False, True]


def test_a_forked_child_leaves_the_spill_alone(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    handle = store.spill(pa.table({"a": [1]}))
    child = os.fork()
    if child == 0:
        del store
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(handle).exists()
