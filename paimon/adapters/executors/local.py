"""Executors of this process: one runs tasks in the thread of the caller, the other runs them in threads of its own.

Invariant: results come in the order of the tasks. A serial executor runs a task when its result is requested. Of a
thread executor, at most `threads` tasks run ahead of the consumer, so memory is bounded. Each `map` has its own
threads, so a task may call `map` without a deadlock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class SerialExecutor:
    """See `paimon.ports.executor.Executor`. Tasks run one after the other, in the thread of the caller."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in the order of the tasks."""
        return (function(task) for task in tasks)


class ThreadExecutor:
    """See `paimon.ports.executor.Executor`.

    Parameters
    ----------
    threads : int
        The number of threads of one `map`, at least 1.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in the order of the tasks.

        A single task runs in the thread of the caller, because a new thread costs more than a small task. When the
        iterator is closed, running tasks end, and the others do not run.
        """
        remaining = iter(tasks)
        first = list(islice(remaining, 2))
        if len(first) < 2:
            yield from map(function, first)
            return
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="paimon")
        running: deque[Future[R]] = deque()
        try:
            for task in chain(first, remaining):
                running.append(pool.submit(function, task))
                if len(running) > self._threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
