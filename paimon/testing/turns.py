"""Turns: several processes on one storage, one step at a time, in an order that the test chooses.

Law: only one actor runs at a time, and it gives way before each storage operation and each sleep, so the same choices
give the same history. Actors are threads only because Python code cannot be stopped in another way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from paimon.testing.faulty_files import ProcessDied

Choose = Callable[[Sequence[str]], str]
"""Whose turn it is, of those that can run."""


class Turns:
    """Runs actors to their end; `pause` is what they call to give way."""

    def __init__(self) -> None:
        self._here = threading.local()
        self._done = threading.Semaphore(0)
        self._gates: dict[str, threading.Semaphore] = {}
        self._left: set[str] = set()
        self._choose: Choose = min

    @property
    def actor(self) -> str | None:
        """Who runs in this thread; None outside of `run`."""
        return getattr(self._here, "name", None)

    def pause(self) -> None:
        """Give way, and go on when chosen again; whoever is chosen at once goes on without another thread waking."""
        name = self.actor
        if name is None:
            return
        following = self._choose(sorted(self._left))
        if following != name:
            self._gates[following].release()
            self._gates[name].acquire()

    def run(self, actors: Mapping[str, Callable[[], object]], choose: Choose) -> dict[str, object]:
        """Run all actors; answers what each returned, or the exception that ended it.

        Actors whose process died answer `ProcessDied`.
        """
        outcomes: dict[str, object] = {}
        self._choose, self._left = choose, set(actors)
        self._gates = {name: threading.Semaphore(0) for name in actors}

        def live(name: str) -> None:
            self._here.name = name
            self._gates[name].acquire()
            try:
                outcomes[name] = actors[name]()
            except (Exception, ProcessDied) as error:
                outcomes[name] = error
            self._left.discard(name)
            self._go_on()

        threads = [threading.Thread(target=live, args=(name,), daemon=True) for name in actors]
        for thread in threads:
            thread.start()
        self._go_on()
        self._done.acquire()
        for thread in threads:
            thread.join()
        return outcomes

    def _go_on(self) -> None:
        """Wake who is next, or who waits for all."""
        if self._left:
            self._gates[self._choose(sorted(self._left))].release()
        else:
            self._done.release()


class TurnClock:
    """A Clock of simulated time: sleeping gives way and takes no time of ours."""

    def __init__(self, turns: Turns, start_millis: int = 1_700_000_000_000) -> None:
        self._turns = turns
        self._now = start_millis

    def now_millis(self) -> int:
        """Simulated epoch milliseconds; each look takes one."""
        self._now += 1
        return self._now

    def local_offset_millis(self, at_millis: int) -> int:
        """The simulation lives in UTC."""
        return 0

    def jump_millis(self, millis: int) -> None:
        """Somebody sets the clock; nobody gives way."""
        self._now += millis

    def sleep_millis(self, millis: float) -> None:
        """Let others run."""
        self._now += int(millis)
        self._turns.pause()


class CountedIds:
    """Ids that count, so that a history can be told again."""

    def __init__(self) -> None:
        self._next = 0

    def uuid(self) -> str:
        """The next id."""
        self._next += 1
        return f"00000000-0000-4000-8000-{self._next:012d}"


class NoChance:
    """A Random without chance."""

    def uniform(self) -> float:
        """Always the same."""
        return 0.0
