"""SerialExecutor: tasks one after the other, in the thread that consumes the answers.

Law: a task runs when its answer is asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class SerialExecutor:
    """See `paimon.ports.executor.Executor`; a task runs when its answer is asked for."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The answers in the order of the tasks."""
        return (function(task) for task in tasks)
