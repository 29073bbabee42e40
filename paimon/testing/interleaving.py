"""Interleaving: several actors on one storage, one step at a time, in an order that the test chooses.

Invariant: only one actor runs at a time, and it pauses before each storage operation and each sleep. The same choices
therefore give the same history. Actors are threads only because Python cannot interrupt a function in another way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TypeVar

from attrs import field, frozen

from paimon.testing.faulty_files import ProcessDied

T = TypeVar("T")
Choose = Callable[[Sequence[str]], str]
"""Returns the name of the actor that runs next, out of the names of all that can run."""


def catch_outcome(act: Callable[[], T]) -> T | BaseException:
    """Return what an actor returns, or the exception that ends it: the one place where tests catch every error."""
    try:
        return act()
    except (Exception, ProcessDied) as error:
        return error


class Interleaving:
    """Runs actors to their end; an actor calls `pause` to let another one run."""

    def __init__(self) -> None:
        self._thread_local = threading.local()
        self._done = threading.Semaphore(0)
        self._semaphores: dict[str, threading.Semaphore] = {}
        self._running: set[str] = set()
        self._choose: Choose = min

    @property
    def current_actor(self) -> str | None:
        """The name of the actor of this thread; None outside of `run`."""
        return getattr(self._thread_local, "name", None)

    def pause(self) -> None:
        """Let the chosen actor run, and return when this one is chosen again.

        No thread is switched if this actor is chosen at once.
        """
        name = self.current_actor
        if name is None:
            return
        next_name = self._choose(sorted(self._running))
        if next_name != name:
            self._semaphores[next_name].release()
            self._semaphores[name].acquire()

    def run(self, actors: Mapping[str, Callable[[], object]], choose: Choose) -> dict[str, object]:
        """Run all actors to their end.

        Parameters
        ----------
        actors : mapping
            The function of each actor by its name.
        choose : callable
            Chooses the actor that runs next, at each pause.

        Returns
        -------
        dict
            By name, the value that the function returned or the exception that ended it, `ProcessDied` included.
        """
        outcomes: dict[str, object] = {}
        self._choose, self._running = choose, set(actors)
        self._semaphores = {name: threading.Semaphore(0) for name in actors}

        def run_actor(name: str) -> None:
            """Run one actor in its thread, from the moment when it is chosen."""
            self._thread_local.name = name
            self._semaphores[name].acquire()
            outcomes[name] = catch_outcome(actors[name])
            self._running.discard(name)
            self._resume_next()

        threads = [threading.Thread(target=run_actor, args=(name,), daemon=True) for name in actors]
        for thread in threads:
            thread.start()
        self._resume_next()
        self._done.acquire()
        for thread in threads:
            thread.join()
        return outcomes

    def _resume_next(self) -> None:
        """Resume the chosen actor, or `run` if all actors ended."""
        if self._running:
            self._semaphores[self._choose(sorted(self._running))].release()
        else:
            self._done.release()


class SimulatedClock:
    """A Clock of simulated time: a sleep lets other actors run and takes no real time.

    Parameters
    ----------
    interleaving : Interleaving
        The actors that share this time.
    start_millis : int
        The first time, in epoch milliseconds.
    """

    def __init__(self, interleaving: Interleaving, start_millis: int = 1_700_000_000_000) -> None:
        self._interleaving = interleaving
        self._now = start_millis

    def now_millis(self) -> int:
        """Return the simulated time in epoch milliseconds; each call takes one millisecond."""
        self._now += 1
        return self._now

    def local_offset_millis(self, at_millis: int) -> int:
        """Return 0: the simulated time zone is UTC."""
        return 0

    def advance_millis(self, millis: int) -> None:
        """Let time pass without running another actor."""
        self._now += millis

    def sleep_millis(self, millis: float) -> None:
        """Let time pass and let other actors run."""
        self._now += int(millis)
        self._interleaving.pause()


@frozen(eq=False)
class OffsetClock:
    """The clock of one process or one machine, which may differ from the simulated time.

    Parameters
    ----------
    true_clock : SimulatedClock
        The simulated time.
    owner : str
        The name of the process or machine.
    offsets_millis : mapping
        How many milliseconds the clock of each owner is ahead; it may change at any time.
    """

    true_clock: SimulatedClock
    owner: str
    offsets_millis: MutableMapping[str, int] = field(repr=False)

    def now_millis(self) -> int:
        """Return the time that this clock shows, in epoch milliseconds."""
        return self.true_clock.now_millis() + self.offsets_millis.get(self.owner, 0)

    def local_offset_millis(self, at_millis: int) -> int:
        """Return 0: the simulated time zone is UTC."""
        return self.true_clock.local_offset_millis(at_millis)

    def sleep_millis(self, millis: float) -> None:
        """Let time pass and let other actors run."""
        self.true_clock.sleep_millis(millis)


class SequentialIds:
    """Ids that count up, so that a history can be repeated."""

    def __init__(self) -> None:
        self._next = 0

    def uuid(self) -> str:
        """Return the next id."""
        self._next += 1
        return f"00000000-0000-4000-8000-{self._next:012d}"


class ConstantRandom:
    """A Random that always returns the same number."""

    def uniform(self) -> float:
        """Return 0."""
        return 0.0
