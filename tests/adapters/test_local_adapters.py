"""Executors, spilling, the cache, catalog directories, clock and names."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import create_table

from paimon.adapters.cache import LruCache
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.http_reports import HttpReports
from paimon.adapters.logs import LoggingObserver
from paimon.adapters.observers import CountingObserver, SilentObserver
from paimon.adapters.process_effects import SystemProcessEffects
from paimon.adapters.snapshots.commits import LockedSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.paths import TablePaths
from paimon.ports.cache import ObjectCache
from paimon.ports.callbacks import CommitEvent
from paimon.ports.effects import Clock, Ids, NoProcessEffects, ProcessEffects, Random
from paimon.ports.files import FileIO
from paimon.ports.observer import Observer
from paimon.ports.reports import ReportSender
from paimon.testing.contracts import (
    ClockContract,
    CommitCallbackContract,
    IdsContract,
    ObjectCacheContract,
    ObserverContract,
    PartitionDoneCallbackContract,
    ProcessEffectsContract,
    RandomContract,
    ReportSenderContract,
)
from paimon.testing.faulty_files import FaultyFiles, plan_numbered_faults
from paimon.testing.memory_files import MemoryFiles


class TestLruCache(ObjectCacheContract):
    def make_cache(self, max_bytes: int) -> ObjectCache:
        return LruCache(max_bytes)


class TestSystemClock(ClockContract):
    def make_clock(self) -> Clock:
        return SystemClock()


class TestRandomIds(IdsContract):
    def make_ids(self) -> Ids:
        return RandomIds()


class TestSystemRandom(RandomContract):
    def make_random(self) -> Random:
        return SystemRandom()


class TestSilentObserver(ObserverContract):
    def make_observer(self) -> Observer:
        return SilentObserver()


class TestLoggingObserver(ObserverContract):
    def make_observer(self) -> LoggingObserver:
        return LoggingObserver()


class TestCountingObserver(ObserverContract):
    def make_observer(self) -> Observer:
        return CountingObserver()


class TestSystemProcessEffects(ProcessEffectsContract):
    def make_effects(self) -> ProcessEffects:
        return SystemProcessEffects()


class TestNoProcessEffects(ProcessEffectsContract):
    def make_effects(self) -> ProcessEffects:
        return NoProcessEffects()


class TestHttpReports(ReportSenderContract):
    def make_sender(self) -> ReportSender:
        return HttpReports()


class TestPartitionsOfCommits(CommitCallbackContract):
    """A callback as a metastore has it: the partitions of each table, and its newest snapshot."""

    def make_callback(self) -> Any:
        known: dict[str, Any] = {}

        def note(event: CommitEvent) -> None:
            newest = event.snapshot.id if event.snapshot else 0
            known[event.table.table_name] = max(newest, known.get(event.table.table_name, 0))
            known.update({f"{event.table.table_name} {partition}": True for partition in event.partitions})

        return note, lambda: dict(known)


class TestMarkedPartitions(PartitionDoneCallbackContract):
    def make_callback(self) -> Any:
        known: set[str] = set()

        def note(event: Any) -> None:
            if not isinstance(event, CommitEvent):
                known.add(event.directory)

        return note, known.copy


EXECUTORS = [SerialExecutor(), ThreadExecutor(1), ThreadExecutor(3)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_are_in_order_and_errors_at_their_position(executor) -> None:
    def slow_first(task: int) -> int:
        time.sleep(0.02 if task == 0 else 0)
        return 10 // (3 - task)

    assert list(executor.map(abs, [])) == []
    results = executor.map(slow_first, range(6))
    assert [next(results) for _ in range(3)] == [3, 5, 10]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_no_task_runs_far_ahead(executor) -> None:
    started = []
    results = executor.map(started.append, range(100))
    next(results)
    results.close()
    assert len(started) <= 5


def test_tasks_run_in_parallel_and_may_map_again() -> None:
    executor = ThreadExecutor(2)
    meeting = threading.Barrier(2)

    def meet(task: int) -> int:
        meeting.wait(10)
        return sum(executor.map(abs, range(task, task + 5)))

    assert list(executor.map(meet, [0, 1])) == [10, 15]


def test_a_single_task_runs_in_the_thread_of_the_caller() -> None:
    here = threading.get_ident()
    assert list(ThreadExecutor(2).map(lambda _: threading.get_ident(), [0])) == [here]
    assert here not in list(ThreadExecutor(2).map(lambda _: threading.get_ident(), [0, 1]))


def test_spilled_tables_are_read_in_batches(tmp_path) -> None:
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


def test_spilled_batches_are_mapped_unchanged(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    whole = pa.record_batch({"a": range(3_000), "s": ["x", None] * 1_500})
    batches = [whole.slice(0, 1_000), whole.slice(0, 0), whole.slice(1_000)]
    found = store.store(iter(batches), batches[0].schema, 1 << 20)
    assert found is not None and found.bytes == Path(found.handle).stat().st_size
    before = pa.total_allocated_bytes()
    mapped = store.map_batches(found.handle)
    assert [b.num_rows for b in mapped] == [1_000, 0, 2_000]
    assert pa.total_allocated_bytes() - before < 1_000
    store.drop(found.handle)
    assert list(mapped) == batches
    with pytest.raises(StorageError):
        store.map_batches(found.handle)


def test_a_value_above_the_limit_is_not_cached(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    batch = pa.record_batch({"a": range(1_000)})
    produced: list[int] = []

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            produced.append(1)
            yield batch

    def fail_after_one_batch() -> Iterator[pa.RecordBatch]:
        yield batch
        raise InvalidRequest("no more")

    assert store.store(endless(), batch.schema, 10_000) is None
    assert len(produced) == 2
    with pytest.raises(InvalidRequest):
        store.store(fail_after_one_batch(), batch.schema, 10_000)
    assert not list(tmp_path.rglob("*.arrow"))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=30))
def test_the_cache_stays_within_its_limit(puts: list[tuple[str, int]]) -> None:
    cache = LruCache(100)
    sizes = {}
    for step, (key, size) in enumerate(puts):
        cache.put(key, (key, step), size)
        sizes[key] = size
        assert cache.get(key) == (key, step)
        found = [k for k in sizes if cache.get(k) is not None]
        assert sum(sizes[k] for k in found) <= 100


def test_the_cache_evicts_unused_values() -> None:
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
    for step in range(40):
        cache.put(f"{step}", step, 1 << 20)
        cache.drop([f"{step}"])
    assert released == [0]
    cache.put("a", 1, 5)
    cache.clear()
    assert (released, cache.paths(), cache.size_bytes) == ([0, 0], [], 0)


def make_table(store: FileSystemCatalogStore, database: str, table: str) -> str:
    location = store.table_location(database, table)
    for name in ("schema/schema-0", "snapshot/snapshot-1", "bucket-0/data-1.parquet"):
        store.files.replace(f"{location}/{name}", name.encode())
    return location


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
        super().__init__(inner, plan_numbered_faults({}))

    def delete(self, paths) -> None:
        super().delete(paths[:1])
        raise StorageError(paths[1], "planned")


def test_writers_of_a_machine_are_serialized_with_a_time_limit(tmp_path: Path) -> None:
    paths = TablePaths(str(tmp_path))
    patient, hasty = LockedSnapshotCommit(LocalFiles()), LockedSnapshotCommit(LocalFiles(), max_wait_seconds=0.05)
    with patient.lock(paths):
        pass  # nothing is published yet, so there is no directory for the lock
    (tmp_path / "snapshot").mkdir()
    inside = []

    def take(_: int) -> None:
        with patient.lock(paths):
            inside.append(1)
            time.sleep(0.002)
            assert sum(inside) == 1
            inside.append(-1)

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(take, range(20)))) == 20
    with patient.lock(paths):
        started = time.monotonic()
        with hasty.lock(paths):
            assert 0.05 <= time.monotonic() - started < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_that_is_forked_during_a_commit_does_not_keep_the_lock(tmp_path: Path) -> None:
    """The child has a copy of the handle."""
    paths, commit = TablePaths(str(tmp_path)), LockedSnapshotCommit(LocalFiles(), max_wait_seconds=60)
    (tmp_path / "snapshot").mkdir()
    with commit.lock(paths):
        child = os.fork()
        if child == 0:
            while True:
                signal.pause()
    try:
        started = time.monotonic()
        with commit.lock(paths):
            assert time.monotonic() - started < 30
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


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


def test_a_counting_observer_sums_metrics_and_keeps_the_last_progress() -> None:
    observer = CountingObserver()
    observer.count("files", 2)
    observer.count("files", 3)
    observer.progress("reading", 1, 4)
    assert observer.metrics == {"files": 5}
    assert observer.activities == {"reading": (1, 4)}


def test_files_of_a_killed_process_are_removed_by_the_next_one(tmp_path) -> None:
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


def test_a_forked_child_does_not_delete_the_spill(tmp_path) -> None:
    store = LocalTempStore(str(tmp_path))
    handle = store.spill(pa.table({"a": [1]}))
    child = os.fork()
    if child == 0:
        del store
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(handle).exists()


def test_what_leaves_a_cache_leaves_the_others() -> None:
    footers = LruCache()
    cache = LruCache(others=[footers])
    for path in ("a", "b"):
        footers.put(path, path, 10)
        cache.put(path, path, 10)
    cache.drop(iter(["a"]))
    assert (cache.paths(), footers.paths()) == (["b"], ["b"])
    cache.clear()
    assert (cache.size_bytes, footers.size_bytes) == (0, 0)


def test_footers_of_deleted_files_are_not_kept(tmp_path: Path) -> None:
    options = {"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    table = create_table(tmp_path, "k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    for number in range(12):
        table.write([{"k": number % 3, "v": number}])
    table.scan().to_arrow()
    (footers,) = table.engine.cache._others
    assert footers.paths() and all(Path(path).exists() for path in footers.paths())
