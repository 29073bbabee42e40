"""Executor: the port that runs independent tasks, in this process or in others.

Invariant: results come in the order of the tasks. Suite: `paimon.testing.contracts.executors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function for each of several tasks."""

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], discard: Callable[[R], object] | None = None
    ) -> Iterator[R]:
        """Call a function once for each task, and yield the results.

        The iterator is lazy: no task runs before the first result is requested. An executor may run a bounded number
        of tasks ahead, or all of them at once. Tasks that have not started do not run after the caller closes the
        iterator. A task that runs in this process may call `map` of the same executor, and has the tokens of the
        caller: threads run it by `paimon.ports.cancellation.copy_task_context`. Each result is either yielded or given
        to `discard`, so that files which tasks wrote ahead can be deleted.

        Parameters
        ----------
        function : callable
            Takes one task. It must be picklable for an executor that runs in other processes. It must be idempotent or
            leave only orphan files behind, because a remote executor may call it again after a failure.
        tasks : iterable
            The tasks, which must be picklable for a remote executor. They are read lazily or all at the start.
        discard : callable, optional
            Takes a result that will not be yielded, because a task failed or the caller closed the iterator. It runs
            in this process, before the error is raised or `close` returns, and after the last task has ended.

        Yields
        ------
        object
            One result per task, in the order of the tasks.

        Raises
        ------
        Exception
            The exception of a task is raised in the place of its result, and ends the iteration.
        StorageError
            A remote executor failed, or reports the failure of a task that it cannot reproduce.
        """
