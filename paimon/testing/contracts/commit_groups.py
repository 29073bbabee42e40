"""The contract of CommitGroups as tests.

An adapter that keeps the contract of `paimon.ports.commit_groups` passes. Derive a class from `CommitGroupsContract`,
whose `make_groups` returns the adapter.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from paimon.ports.cancellation import Stopped, activate_token
from paimon.ports.commit_groups import CommitGroups, TakeMembers
from paimon.testing.contracts.files import expect_error

_TIMEOUT_SECONDS = 60


class CommitGroupsContract(ABC):
    """The tests of the port. A subclass implements `make_groups`."""

    @abstractmethod
    def make_groups(self) -> CommitGroups:
        """Return a new adapter."""

    def test_a_single_call_leads_at_once(self) -> None:
        """In its own thread, as often as it is made; each time it takes its own member once."""
        groups, taken = self.make_groups(), list[object]()
        for number in range(3):
            groups.run("k", number, lambda take: taken.append((threading.get_ident(), [*take(9)], [*take(9)])))
        assert taken == [(threading.get_ident(), [number], []) for number in range(3)]

    def test_a_leader_takes_the_calls_that_wait(self) -> None:
        """In the order of the calls, after its own. None of them leads, and all return after the leader."""
        groups, taken, ended = self.make_groups(), list[int](), list[int]()

        def follow(number: int) -> None:
            """Make a call that waits."""
            groups.run("k", number, _refuse)
            ended.append(number)

        with _Threads() as threads:

            def lead(take: TakeMembers[int]) -> None:
                """Take members until all have come, each after the one before."""
                taken.extend(take(1))
                for number in (1, 2, 3):
                    threads.start(partial(follow, number))
                    _take_until(take, taken, number)
                assert ended == []

            groups.run("k", 0, lead)
        assert (taken, sorted(ended)) == ([0, 1, 2, 3], [1, 2, 3])

    def test_a_call_that_is_not_taken_leads_later(self) -> None:
        """One at a time; each member is taken once."""
        groups, taken, leaders, begun = self.make_groups(), list[int](), list[int](), list[int]()

        def lead(take: TakeMembers[int]) -> None:
            """Take one member, while no other call leads, though all others have begun."""
            leaders.append(1)
            _wait_until(lambda: len(begun) == 6)
            time.sleep(0.02)
            assert sum(leaders) == 1
            taken.extend(take(1))
            leaders.append(-1)

        def call(number: int) -> None:
            """Record that the call begins, and make it."""
            begun.append(number)
            groups.run("k", number, lead)

        with _Threads() as threads:
            for number in range(6):
                threads.start(partial(call, number))
        assert sorted(taken) == list(range(6))

    def test_an_error_of_the_leader_is_its_own(self) -> None:
        """The calls that it took return, and later calls lead."""
        groups, taken = self.make_groups(), list[int]()
        with _Threads() as threads:

            def lead(take: TakeMembers[int]) -> None:
                """Take another member, and fail."""
                threads.start(partial(groups.run, "k", 1, _refuse))
                _take_until(take, taken, 1)
                _fail()

            expect_error(LookupError, lambda: groups.run("k", 0, lead))
        groups.run("k", 2, lambda take: taken.extend(take(9)))
        assert taken == [0, 1, 2]

    def test_keys_are_independent(self) -> None:
        """A call leads while a call with another key leads."""
        groups, taken = self.make_groups(), list[str]()
        with _Threads() as threads:

            def lead(take: TakeMembers[str]) -> None:
                """Wait until the call with the other key has ended."""
                threads.start(lambda: groups.run("b", "b", lambda take: taken.extend(take(9))))
                _wait_until(lambda: taken == ["b"])
                taken.extend(take(9))

            groups.run("a", "a", lead)
        assert taken == ["b", "a"]

    def test_a_call_within_a_leader_leads_at_once(self) -> None:
        """It takes its own member only."""
        groups, taken = self.make_groups(), list[list[int]]()

        def lead(take: TakeMembers[int]) -> None:
            """Make a call with the same key in the same thread."""
            groups.run("k", 1, lambda take: taken.append([*take(9)]))
            taken.append([*take(9)])

        groups.run("k", 0, lead)
        assert taken == [[1], [0]]

    def test_a_stopped_call_is_never_taken(self) -> None:
        """It raises while it waits."""
        groups, taken, stopped = self.make_groups(), list[int](), list[bool]()

        def call() -> None:
            """Wait with a token that is stopped."""
            activate_token(_StoppedToken())
            try:
                groups.run("k", 1, _refuse)
            except Stopped:
                stopped.append(True)

        def lead(take: TakeMembers[int]) -> None:
            """Take the members after the other call has ended."""
            thread = threading.Thread(target=call)
            thread.start()
            thread.join(_TIMEOUT_SECONDS)
            taken.extend(take(9))

        groups.run("k", 0, lead)
        assert (taken, stopped) == ([0], [True])


class _StoppedToken:
    def is_stopped(self) -> bool:
        return True


class _Threads:
    """Threads that have ended when the block ends; an error of one is raised."""

    def __enter__(self) -> _Threads:
        self._pool = ThreadPoolExecutor(8)
        self._running = [self._pool.submit(bool)]
        return self

    def start(self, call: Callable[[], object]) -> None:
        """Run a call in a thread."""
        self._running.append(self._pool.submit(lambda: bool(call())))

    def __exit__(self, *_: object) -> None:
        for running in self._running:
            running.result(_TIMEOUT_SECONDS)
        self._pool.shutdown()


def _fail() -> None:
    raise LookupError


def _refuse(take: TakeMembers[object]) -> None:
    raise AssertionError("a call leads that another one took")


def _take_until(take: TakeMembers[int], taken: list[int], member: int) -> None:
    """Take members until this one has come."""

    def is_taken() -> bool:
        """Take those that have come by now."""
        taken.extend(take(9))
        return member in taken

    _wait_until(is_taken)


def _wait_until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not is_done():
        assert time.monotonic() < end, "a call that waits is not taken"
        time.sleep(0.001)
