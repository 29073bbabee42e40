"""Threads that start together and stop between their lines, so that a check and a later act never look like one step.

Invariant: the outcome does not depend on the speed of the machine: a thread that checked waits while others check, too.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_PAUSES = 80
_MANY_PAUSES = 2_000
_PAUSE_SECONDS = 1e-5


def run_together(calls: Sequence[Callable[[], T]], pauses: int = _PAUSES) -> list[T]:
    """Run calls in threads that start together, and pause each thread before its first lines of Python.

    Equal calls then check at the same time, before one of them acts.

    Parameters
    ----------
    calls : sequence of callable
        One call for each thread.
    pauses : int
        How many lines of a thread wait.

    Returns
    -------
    list
        The results in the order of the calls. The error of a call is raised.
    """
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        """Run one call with pauses; a tracer of this thread, such as that of a debugger, comes back after it."""
        earlier = sys.gettrace()
        barrier.wait()
        sys.settrace(_Pauses(pauses))
        try:
            return call()
        finally:
            sys.settrace(earlier)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def run_watched(call: Callable[[], object], watch: Callable[[], bool]) -> bool:
    """Run a call with a pause before each line, and look at its effects from another thread until it ends.

    Parameters
    ----------
    call : callable
        What is watched. Its error is raised.
    watch : callable
        Returns whether all is right. It runs again and again, without pauses, and once after the end.

    Returns
    -------
    bool
        Whether each `watch` returned True.
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_together, [call], _MANY_PAUSES)
        seen = [watch()]
        while not running.done():
            seen.append(watch())
        running.result()
    return all([*seen, watch()])


class _Pauses:
    """A trace function that lets other threads run before each of the first lines."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Pauses | None:
        if self._left <= 0:
            return None
        if event == "line":
            self._left -= 1
            time.sleep(_PAUSE_SECONDS)
        return self
