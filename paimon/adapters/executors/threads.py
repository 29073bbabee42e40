"""ThreadExecutor: tasks on threads of this process.

Law: answers come in the order of the tasks, and at most `threads` tasks run ahead of the consumer, so that memory
stays bounded. Each `map` has threads of its own: a task may call `map` again without waiting for itself. A task that
is alone runs in the caller's thread: a thread of its own, with fresh memory, costs more than small tasks do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class ThreadExecutor:
    """See `paimon.ports.executor.Executor`."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The answers in the order of the tasks; closing the iterator drops what has not begun."""
        left = iter(tasks)
        first = list(islice(left, 2))
        if len(first) < 2:
            yield from map(function, first)
            return
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="paimon")
        running: deque[Future[R]] = deque()
        try:
            for task in chain(first, left):
                running.append(pool.submit(function, task))
                if len(running) > self._threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
