"""Wrong clocks, names, random numbers, observers, caches, executors and temporary stores."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from paimon.adapters.cache import LruCache
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.local import SerialExecutor
from paimon.adapters.observers import CountingObserver
from paimon.adapters.temp.local import LocalTempStore
from paimon.ports.observer import EVENTS, Event
from paimon.testing import contracts
from support.contract_mistakes.planting import plant


@plant(contracts.ClockContract, "test_now_is_epoch_milliseconds", "Epoch milliseconds, a whole number.")
class ClockOfSeconds(SystemClock):
    def now_millis(self) -> int:
        return super().now_millis() // 1_000


@plant(contracts.ClockContract, "test_now_is_epoch_milliseconds", "Epoch milliseconds, a whole number.")
class ClockOfFractions(SystemClock):
    def now_millis(self) -> Any:
        return super().now_millis() + 0.5


@plant(
    contracts.ClockContract,
    "test_the_offset_is_in_milliseconds",
    "Local time minus UTC in milliseconds, whole minutes.",
)
class OffsetInSeconds(SystemClock):
    def local_offset_millis(self, at_millis: int) -> int:
        return 3_600


@plant(contracts.ClockContract, "test_a_sleep_takes_its_time", "Wait at least the given time.")
class SleepInMicroseconds(SystemClock):
    def sleep_millis(self, millis: float) -> None:
        super().sleep_millis(millis / 1_000)


@plant(contracts.ClockContract, "test_a_sleep_takes_its_time", "The call returns at once if it is zero or negative.")
class SleepOfPositives(SystemClock):
    def sleep_millis(self, millis: float) -> None:
        assert millis > 0
        super().sleep_millis(millis)


@plant(contracts.IdsContract, "test_names_are_random_uuids", "36 characters in lower case, version 4")
class IdsOfTime(RandomIds):
    def uuid(self) -> str:
        return str(uuid.uuid1())


@plant(contracts.IdsContract, "test_no_name_comes_twice", "never returned before by any process")
class IdsOfASeed(RandomIds):
    def __init__(self, seed: int | None = 7) -> None:
        self._source = random.Random(seed)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._source.getrandbits(128), version=4))


@plant(
    contracts.IdsContract, "test_forked_processes_share_no_names", "safe to call from several threads and after a fork"
)
class IdsOfAForkedSource(IdsOfASeed):
    def __init__(self) -> None:
        super().__init__(None)


@plant(contracts.RandomContract, "test_numbers_are_at_least_0_and_less_than_1", "At least 0 and less than 1.")
class RandomPercents(SystemRandom):
    def uniform(self) -> float:
        return super().uniform() * 100


@plant(contracts.RandomContract, "test_forked_processes_share_no_sequence", "Forked processes do not share a sequence.")
class RandomOfAForkedSource(SystemRandom):
    def __init__(self) -> None:
        self._source = random.Random()


@plant(
    contracts.ObserverContract, "test_any_progress_is_accepted", "Both methods must return quickly and must not raise."
)
class ObserverOfShares(CountingObserver):
    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        super().progress(f"{activity} {done / total:.0%}" if total is not None else activity, done, total)


@plant(contracts.ObserverContract, "test_any_count_is_accepted", "An observer accepts names that it does not know.")
class ObserverOfKnownMetrics(CountingObserver):
    def __init__(self) -> None:
        super().__init__()
        self.metrics = {"commit.hint_failed": 0}  # type: ignore[assignment]


@plant(
    contracts.ObserverContract,
    "test_any_event_is_accepted",
    "An observer accepts names and values that it does not know.",
)
class ObserverOfKnownEvents(CountingObserver):
    def event(self, event: Event) -> None:
        self.count(event.name, len([event.values[name] for name in EVENTS[event.name]]))


@plant(contracts.ObserverContract, "test_threads_may_call", "They may be called from several threads.")
class ObserverOfOneThread(CountingObserver):
    def count(self, metric: str, value: int) -> None:
        self.metrics[metric] += value
        for _ in self.metrics:
            self.metrics["calls"] += 0


CACHES = contracts.ObjectCacheContract


@plant(CACHES, "test_a_value_is_that_of_its_path_and_view", "The value of the last `put` with this path and view")
class CacheWithoutViews(LruCache):
    def get(self, path: str, view: str = "") -> object | None:
        return super().get(path, view) or super().get(path)


@plant(CACHES, "test_a_value_is_replaced", "and evicts the older one of its path and view")
class CacheThatKeepsTheOld(LruCache):
    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        if size_bytes <= self._max_bytes:
            super().put(path, value, size_bytes, view)


@plant(CACHES, "test_the_bound_holds", "The sum over all values never exceeds the bound of the cache.")
class UnboundedCache(LruCache):
    def put(self, path: str, value: object, size_bytes: int, view: str = "") -> None:
        super().put(path, value, size_bytes // 10, view)


@plant(CACHES, "test_dropped_files_have_no_values", "Evict all values of deleted files.")
class DropOfOneView(LruCache):
    def drop(self, paths: Iterable[str]) -> None:
        with self._lock:
            for path in paths:
                self._remove(path, "")


@plant(CACHES, "test_dropped_files_have_no_values", "The deleted files, read once.")
class DropThatCountsFirst(LruCache):
    def drop(self, paths: Iterable[str]) -> None:
        if sum(1 for _ in paths):
            super().drop(paths)


@plant(CACHES, "test_a_cleared_cache_is_empty", "Evict all values, and return their memory")
class ClearOfOneView(LruCache):
    def clear(self) -> None:
        self.drop([path for path, view in list(self._values) if not view])


@plant(CACHES, "test_threads_share_the_cache", "are safe to call from several threads, and never raise")
class CacheOfOneThread(LruCache):
    def get(self, path: str, view: str = "") -> object | None:
        if (path, view) not in self._values:
            return None
        return self._values[path, view][0]


EXECUTORS = contracts.ExecutorContract


@plant(EXECUTORS, "test_results_are_in_the_order_of_tasks", "in the order of the tasks")
class UnorderedExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        yield from [function(task) for task in list(tasks)[::-1]]


@plant(EXECUTORS, "test_no_task_is_read_before_the_first_result", "no task runs before the first result is requested")
class EagerExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        return iter([function(task) for task in tasks])


@plant(EXECUTORS, "test_an_error_ends_the_iteration", "and ends the iteration")
class ForgivingExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        for task in tasks:
            try:
                yield function(task)
            except ZeroDivisionError:
                continue


@plant(EXECUTORS, "test_each_task_runs_once", "Call a function once for each task")
class RepeatingExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        for task in tasks:
            function(task)
            yield function(task)


@plant(EXECUTORS, "test_results_without_a_caller_are_discarded", "either yielded or given to `discard`")
class LosingExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        yield from [function(task) for task in tasks]


@plant(EXECUTORS, "test_tasks_have_the_tokens_of_the_caller", "has the tokens of the caller")
class UnstoppableExecutor(SerialExecutor):
    def map(self, function: Any, tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        with ThreadPoolExecutor(1) as pool:
            yield from pool.map(function, tasks)


TEMP = contracts.TempStoreContract


@plant(TEMP, "test_spilled_rows_are_loaded_in_their_order", "The largest number of rows of a batch.")
class LoadOfLargeBatches(LocalTempStore):
    def load(self, handle: str, batch_rows: int) -> Iterator[Any]:
        return super().load(handle, batch_rows * 2)


@plant(TEMP, "test_a_dropped_handle_cannot_be_read", "Delete the file of a handle. The call is idempotent.")
class DropOnce(LocalTempStore):
    def drop(self, handle: str) -> None:
        os.unlink(handle)


@plant(TEMP, "test_a_dropped_handle_cannot_be_read", "A new handle for `load`.")
class OneHandle(LocalTempStore):
    def _new_handle(self, kind: str) -> str:
        return os.path.join(self._find_directory(), kind)


@plant(TEMP, "test_batches_above_the_limit_are_not_stored", "Not all of them are read if they exceed `max_bytes`.")
class StoreOfAll(LocalTempStore):
    def store(self, batches: Iterable[Any], schema: Any, max_bytes: int) -> Any:
        return super().store([batch for batch, _ in zip(batches, range(100), strict=False)], schema, max_bytes)


@plant(TEMP, "test_an_error_of_the_batches_is_passed_on", "An error of `batches` is passed on. No file remains.")
class StoreOfSome(LocalTempStore):
    def store(self, batches: Iterable[Any], schema: Any, max_bytes: int) -> Any:
        try:
            return super().store(batches, schema, max_bytes)
        except ZeroDivisionError:
            return None


@plant(TEMP, "test_stored_batches_are_mapped_unchanged", "The batches as they were stored.")
class MapOfOneBatch(LocalTempStore):
    def map_batches(self, handle: str) -> Any:
        return super().map_batches(handle)[:1]
