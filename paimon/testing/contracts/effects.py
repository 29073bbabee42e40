"""Contract tests of the ports Clock, Ids, Random, ProcessEffects and Observer.

An adapter that keeps the contracts of `paimon.ports.effects` or `paimon.ports.observer` passes. Derive a class from the
contract of the port, whose `make_…` method returns the adapter.
"""

from __future__ import annotations

import gc
import os
import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from paimon.ports.effects import Clock, Ids, ProcessEffects, Random
from paimon.ports.observer import EVENTS, Event, EventObserver, Observer
from paimon.testing.contracts.races import run_together

_YEAR_2001_MILLIS = 10**12
_MINUTE_MILLIS = 60_000
_DAY_MILLIS = 24 * 60 * _MINUTE_MILLIS
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_THREADS = 4


class ClockContract(ABC):
    """The tests of the port. A subclass implements `make_clock`."""

    @abstractmethod
    def make_clock(self) -> Clock:
        """Return the adapter."""

    def test_now_is_epoch_milliseconds(self) -> None:
        """A whole number of this century, neither seconds nor microseconds."""
        now = self.make_clock().now_millis()
        assert type(now) is int
        assert _YEAR_2001_MILLIS < now < 10 * _YEAR_2001_MILLIS

    def test_the_offset_is_in_milliseconds(self) -> None:
        """It has whole minutes, is less than two days, and does not depend on when it is asked."""
        clock = self.make_clock()
        for month in range(12):
            at = 1_700_000_000_000 + month * 30 * _DAY_MILLIS
            offset = clock.local_offset_millis(at)
            assert type(offset) is int
            assert offset % _MINUTE_MILLIS == 0 and abs(offset) < 2 * _DAY_MILLIS
            assert clock.local_offset_millis(at) == offset

    def test_a_sleep_takes_its_time(self) -> None:
        """By this clock. A time that is zero or negative returns at once, and fractions are no error."""
        clock = self.make_clock()
        before = clock.now_millis()
        clock.sleep_millis(30.5)
        assert clock.now_millis() - before >= 30
        for millis in (0, -5, -0.5, 0.25):
            clock.sleep_millis(millis)


class IdsContract(ABC):
    """The tests of the port. A subclass implements `make_ids`."""

    @abstractmethod
    def make_ids(self) -> Ids:
        """Return the adapter."""

    def test_names_are_random_uuids(self) -> None:
        """36 characters in lower case, version 4."""
        ids = self.make_ids()
        assert all(_UUID.fullmatch(ids.uuid()) for _ in range(100))

    def test_no_name_comes_twice(self) -> None:
        """From one adapter, from two, and from threads."""
        ids, other = self.make_ids(), self.make_ids()
        drawn = run_together([partial(_draw, source.uuid, 250) for source in [ids] * _THREADS + [other]], pauses=2_000)
        found = [name for names in drawn for name in names]
        assert len(set(found)) == len(found)

    def test_forked_processes_share_no_names(self) -> None:
        """A child process does not repeat what its parent draws."""
        ids = self.make_ids()
        ids.uuid()
        assert run_forked(ids.uuid) != ids.uuid()


class RandomContract(ABC):
    """The tests of the port. A subclass implements `make_random`."""

    @abstractmethod
    def make_random(self) -> Random:
        """Return the adapter."""

    def test_numbers_are_at_least_0_and_less_than_1(self) -> None:
        """They differ, and reach both halves."""
        source = self.make_random()
        found = [source.uniform() for _ in range(200)]
        assert all(0 <= number < 1 for number in found)
        assert min(found) < 0.5 < max(found)
        assert len(set(found)) > 100

    def test_forked_processes_share_no_sequence(self) -> None:
        """Writers that wait after a lost race would otherwise meet again."""
        source = self.make_random()
        source.uniform()
        assert run_forked(lambda: repr(source.uniform())) != repr(source.uniform())


class ProcessEffectsContract(ABC):
    """The tests of the port. A subclass implements `make_effects`."""

    @abstractmethod
    def make_effects(self) -> ProcessEffects:
        """Return the adapter."""

    def test_the_collector_is_left_as_it_was(self) -> None:
        """Enabled or disabled, after nested blocks, one of which ends with an error that is passed on.

        Raises
        ------
        AssertionError
            The collector is in another state, or the error is lost.
        """
        effects, was_enabled = self.make_effects(), gc.isenabled()
        try:
            for switch, enabled in ((gc.enable, True), (gc.disable, False)):
                switch()
                with effects.pause_gc():
                    paused = gc.isenabled()
                    with effects.pause_gc():
                        pass
                    assert gc.isenabled() == paused
                    try:
                        with effects.pause_gc():
                            raise KeyError
                    except KeyError:
                        assert gc.isenabled() == paused
                    else:
                        raise AssertionError("the error of a block was lost")
                assert gc.isenabled() == enabled
        finally:
            (gc.enable if was_enabled else gc.disable)()

    def test_blocks_of_threads_overlap(self) -> None:
        """The block that begins first ends first. The collector runs again after the last one."""
        effects, was_enabled = self.make_effects(), gc.isenabled()
        other = self.make_effects()
        may_end = threading.Event()
        has_begun = threading.Event()

        def pause() -> None:
            """Pause until the main thread is done."""
            with other.pause_gc():
                has_begun.set()
                may_end.wait(60)

        gc.enable()
        thread = threading.Thread(target=pause)
        try:
            with effects.pause_gc():
                paused = gc.isenabled()
                thread.start()
                assert has_begun.wait(60)
            assert gc.isenabled() == paused
            may_end.set()
            thread.join(60)
            assert gc.isenabled()
        finally:
            may_end.set()
            (gc.enable if was_enabled else gc.disable)()

    def test_memory_is_returned_without_errors(self) -> None:
        """By several threads, before and after they used any."""
        effects = self.make_effects()
        for _ in range(2):
            assert run_together([effects.release_thread_memory] * _THREADS) == [None] * _THREADS


class ObserverContract(ABC):
    """The tests of the port. A subclass implements `make_observer`."""

    @abstractmethod
    def make_observer(self) -> Observer:
        """Return the adapter."""

    def test_any_progress_is_accepted(self) -> None:
        """Of activities without a total, without a unit or an end; and of one that begins again."""
        observer = self.make_observer()
        for activity in ("read splits", "größe 100 %", "read splits", ""):
            for done, total in ((0, None), (0, 0), (0, 3), (2, 3), (5, None)):
                observer.progress(activity, done, total)
        observer.progress("read splits", 1)

    def test_any_count_is_accepted(self) -> None:
        """Of a metric that the observer does not know, and of nothing."""
        observer = self.make_observer()
        for metric in ("commit.hint_failed", "a metric of tomorrow", ""):
            for value in (0, 1, 2**70):
                observer.count(metric, value)

    def test_any_event_is_accepted(self) -> None:
        """If the observer receives events: known ones, and those with a name or values of tomorrow."""
        observer = self.make_observer()
        if isinstance(observer, EventObserver):
            for name in (*EVENTS, "an event of tomorrow"):
                observer.event(Event(name, "lake/shop.db/größe 100 %", {"rows": 2**70, "a value of tomorrow": ""}))
                observer.event(Event(name, ""))

    def test_threads_may_call(self) -> None:
        """Concurrently, with activities and metrics that no thread used before."""
        observer = self.make_observer()

        def call(thread: int) -> bool:
            """Report both kinds, under names of this thread and of all."""
            for number in range(50):
                for name in ("shared", f"own {thread} {number}"):
                    observer.progress(name, number, 50)
                    observer.count(name, 1)
            return True

        assert run_together([partial(call, n) for n in range(_THREADS)], pauses=500) == [True] * _THREADS


def _draw(draw: Callable[[], str], count: int) -> list[str]:
    return [draw() for _ in range(count)]


def run_forked(call: Callable[[], str]) -> str:
    """Call a function in a fork of this process.

    Parameters
    ----------
    call : callable
        Returns a short text.

    Returns
    -------
    str
        The text; empty on a system without fork.
    """
    if not hasattr(os, "fork"):
        return ""
    reader, writer = os.pipe()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child = os.fork()  # it only draws, and takes no lock of a thread
    if child == 0:
        try:
            os.write(writer, call().encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode()
