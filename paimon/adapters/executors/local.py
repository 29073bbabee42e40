"""Executors of this process: one runs tasks in the thread of the caller, the other runs them in threads of its own.

Invariant: results come in the order of the tasks. A serial executor runs a task when its result is requested. Of a
thread executor, at most `threads` tasks run ahead of the consumer, so memory is bounded. Each `map` has its own
threads, so a task may call `map` without a deadlock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from paimon.domain.errors import InvalidRequest
from paimon.ports.cancellation import check_stop, copy_task_context

T = TypeVar("T")
R = TypeVar("R")


class SerialExecutor:
    """See `paimon.ports.executor.Executor`. Tasks run one after the other, in the thread of the caller."""

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], discard: Callable[[R], object] | None = None
    ) -> Iterator[R]:
        """Yield the results in the order of the tasks."""
        for task in tasks:
            check_stop()
            yield function(task)


class ThreadExecutor:
    """See `paimon.ports.executor.Executor`. Each `map` has its own `threads` threads, at least 1."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], discard: Callable[[R], object] | None = None
    ) -> Iterator[R]:
        """Yield the results in the order of the tasks; a single task runs in the caller's thread. Closing ends it."""
        remaining = iter(tasks)
        first = list(islice(remaining, 2))
        if len(first) < 2:
            yield from map(function, first)
            return
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="paimon")
        running: deque[Future[R]] = deque()
        process = os.getpid()
        try:
            for task in chain(first, remaining):
                check_stop()
                running.append(pool.submit(copy_task_context().run, function, task))
                if len(running) > self._threads:
                    yield _take_first(running, process)
            while running:
                yield _take_first(running, process)
        finally:
            is_own = process == os.getpid()
            pool.shutdown(wait=is_own, cancel_futures=True)
            if is_own and discard is not None:
                for task_done in running:
                    if not task_done.cancelled() and task_done.exception() is None:
                        discard(task_done.result())


def _take_first(running: deque[Future[R]], process: int) -> R:
    """Remove the first task, and return its result; a forked child has no thread that would finish it."""
    if process != os.getpid():
        raise InvalidRequest(
            "The read was begun by the parent process, and a forked child cannot continue it.",
            hint="begin the read in this process, or start processes with 'spawn'",
        )
    result = running[0].result()  # if this wait is interrupted, the task stays
    running.popleft()
    return result
