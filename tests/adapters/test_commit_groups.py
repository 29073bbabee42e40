"""The contract of CommitGroups for threads, and what a forked child has of its parent's calls."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import FrameType
from typing import Any

import pytest

import paimon.adapters.commit_groups as commit_groups
from paimon.adapters.commit_groups import ThreadCommitGroups
from paimon.ports.commit_groups import CommitGroups, TakeMembers
from paimon.testing.contracts import CommitGroupsContract


class TestThreadCommitGroups(CommitGroupsContract):
    def make_groups(self) -> CommitGroups:
        return ThreadCommitGroups()


def test_a_child_forgets_the_calls_of_its_parent() -> None:
    """A fork during a call copies its queue, whose leader does not exist in the child."""
    groups, taken = ThreadCommitGroups(), list[int]()

    def lead(take: TakeMembers[int]) -> None:
        groups.abandon(lambda _: None)
        groups.run("k", 1, lambda take: taken.extend(take(9)))

    groups.run("k", 0, lead)
    assert taken == [1]


@pytest.mark.parametrize("victim", ["first", "second", "third"])
def test_an_interrupt_at_any_step_lets_the_other_calls_go_on(victim: str) -> None:
    """The first call leads, and takes the second one; the third one leads next."""
    assert any(not _run_with_interrupt(victim, step) for step in range(1, 100))


def _run_with_interrupt(victim: str, step: int) -> bool:
    """Interrupt one of three calls at a step, a line of the module; return False if it ended before."""
    groups, taken, interrupted = ThreadCommitGroups(), list[str](), list[bool]()
    steps = count(1)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != commit_groups.__file__:
            return None
        line = linecache.getline(commit_groups.__file__, frame.f_lineno)
        if event == "line" and "with self._lock" not in line and next(steps) == step:  # `with` takes none at its end
            interrupted.append(True)
            raise KeyboardInterrupt
        return trace

    def call(name: str, lead: Callable[[TakeMembers[str]], None]) -> None:
        sys.settrace(trace if name == victim else None)
        with suppress(KeyboardInterrupt):
            groups.run("k", name, lead)

    def lead(take: TakeMembers[str]) -> None:
        taken.extend(take(9))

    def lead_first(take: TakeMembers[str]) -> None:
        for name in ("second", "third"):
            threads.append(threading.Thread(target=call, args=(name, lead), daemon=True))
            threads[-1].start()
            while len(groups._queues["k"].waiting) < 1 + sum(thread.is_alive() for thread in threads[1:]):
                time.sleep(0)
        taken.extend(take(2))

    threads = [threading.Thread(target=call, args=("first", lead_first), daemon=True)]
    threads[0].start()
    for thread in threads:  # the list grows until the first one has ended
        thread.join(10)
    threads.append(threading.Thread(target=call, args=("last", lead), daemon=True))
    threads[-1].start()
    threads[-1].join(10)
    assert not any(thread.is_alive() for thread in threads), f"a call waits for ever after an interrupt at step {step}"
    assert max(Counter(taken).values()) == 1, taken
    return bool(interrupted)
