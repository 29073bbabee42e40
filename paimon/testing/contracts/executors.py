"""The contract of Executor as tests, for executors in this process and in others.

An adapter that keeps the contract of `paimon.ports.executor` passes. Derive a class from `ExecutorContract`, whose
`make_executor` returns the adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice

from paimon.domain.errors import StorageError
from paimon.ports.cancellation import activate_token, deactivate_token, has_token
from paimon.ports.executor import Executor

_TASKS = 20


class ExecutorContract(ABC):
    """The tests of the port. A subclass implements `make_executor`."""

    runs_in_this_process = True
    """False for a remote executor, which reports errors of tasks as StorageError and runs no nested tasks."""

    @abstractmethod
    def make_executor(self) -> Executor:
        """Return the adapter."""

    def test_results_are_in_the_order_of_tasks(self) -> None:
        """Several calls of one executor are independent."""
        executor = self.make_executor()
        for count in (0, 1, 2, _TASKS):
            assert list(executor.map(_square, range(count))) == [n * n for n in range(count)]

    def test_no_task_is_read_before_the_first_result(self) -> None:
        """The caller may build the iterator early."""
        taken: list[int] = []

        def tasks() -> Iterator[int]:
            """Note each task that the executor reads."""
            for task in range(3):
                taken.append(task)
                yield task

        results = self.make_executor().map(_square, tasks())
        assert taken == []
        assert list(results) == [0, 1, 4]
        assert taken == [0, 1, 2]

    def test_each_task_runs_once(self) -> None:
        """And none before the first result is requested."""
        if not self.runs_in_this_process:
            return
        ran: list[int] = []
        results = self.make_executor().map(ran.append, range(_TASKS))
        assert ran == []
        assert list(results) == [None] * _TASKS
        assert sorted(ran) == list(range(_TASKS))

    def test_an_error_ends_the_iteration(self) -> None:
        """Check that results before an error are right, and that none comes after it.

        Raises
        ------
        AssertionError
            The executor lost the error.
        """
        executor = self.make_executor()
        results = executor.map(_divide, [2, 1, 0, 4])
        found: list[float] = []
        try:
            found.extend(results)
        except (ZeroDivisionError, StorageError) as error:
            assert isinstance(error, ZeroDivisionError) or not self.runs_in_this_process
        else:
            raise AssertionError("the error of a task was lost")
        assert list(results) == []
        if self.runs_in_this_process:
            assert found in ([], [0.5], [0.5, 1.0])
        assert list(executor.map(_divide, [1, 2])) == [1.0, 0.5]

    def test_the_caller_may_stop_early(self) -> None:
        """Closing the iterator returns, and the executor stays usable."""
        executor = self.make_executor()
        results = executor.map(_square, range(_TASKS))
        assert next(results) == 0
        if hasattr(results, "close"):
            results.close()
        assert list(executor.map(_square, [3])) == [9]

    def test_results_without_a_caller_are_discarded(self) -> None:
        """Each result of a task is yielded or discarded, after an error and after the caller stops."""
        if not self.runs_in_this_process:
            return
        for failing in (3, _TASKS):
            ended: list[int] = []
            discarded: list[int] = []
            run = partial(_note_number, failing, ended)
            results = self.make_executor().map(run, range(_TASKS), discarded.append)
            taken: list[int] = []
            with suppress(ZeroDivisionError):
                taken.extend(islice(results, None if failing < _TASKS else 1))
            if hasattr(results, "close"):
                results.close()
            assert sorted(taken + discarded) == sorted(ended)

    def test_a_task_may_run_tasks(self) -> None:
        """The executor does not wait for itself, however deep the calls are."""
        if not self.runs_in_this_process:
            return
        executor = self.make_executor()

        def run(depth: int) -> int:
            """Return the number of leaves below a task."""
            return 1 if depth == 0 else sum(executor.map(run, [depth - 1] * 3))

        assert list(executor.map(run, [2, 3])) == [9, 27]

    def test_tasks_have_the_tokens_of_the_caller(self) -> None:
        """A deadline of the caller stops the tasks in threads, too."""
        if not self.runs_in_this_process:
            return
        token = _Token()
        activate_token(token)
        try:
            assert all(self.make_executor().map(lambda _: has_token(), range(_TASKS)))
        finally:
            deactivate_token(token)


class _Token:
    def is_stopped(self) -> bool:
        return False


def _square(number: int) -> int:
    return number * number


def _divide(number: int) -> float:
    return 1 / number


def _note_number(failing: int, ended: list[int], number: int) -> int:
    """Fail at one task, and note the others."""
    assert 1 / (number - failing)
    ended.append(number)
    return number
