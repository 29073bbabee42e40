"""Clock, Ids, Random and ProcessEffects: the ports for time, unique names, random numbers and process settings.

Invariant: the domain and the operations have no clock, no randomness and no process-wide state of their own. Suite:
`paimon.testing.contracts.effects`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from attrs import frozen


class Clock(Protocol):
    """Wall-clock time. All methods are safe to call from several threads."""

    def now_millis(self) -> int:
        """Return the current time.

        Returns
        -------
        int
            Epoch milliseconds, a whole number. The clock may go backwards, so order never depends on it.
        """

    def local_offset_millis(self, at_millis: int) -> int:
        """Return the offset of the local time zone from UTC at a moment.

        Parameters
        ----------
        at_millis : int
            Epoch milliseconds.

        Returns
        -------
        int
            Local time minus UTC in milliseconds, whole minutes. The same moment gives the same offset.
        """

    def sleep_millis(self, millis: float) -> None:
        """Wait at least the given time.

        Parameters
        ----------
        millis : float
            Milliseconds. The call returns at once if it is zero or negative.
        """


class Ids(Protocol):
    """Unique names. The method is safe to call from several threads and after a fork."""

    def uuid(self) -> str:
        """Return a new random UUID.

        Returns
        -------
        str
            36 characters in lower case, version 4, never returned before by any process.
        """


class Random(Protocol):
    """Random numbers for the jitter of waits. They are not secure and never name a file."""

    def uniform(self) -> float:
        """Return a random number.

        Returns
        -------
        float
            At least 0 and less than 1. Forked processes do not share a sequence.
        """


class ProcessEffects(Protocol):
    """Settings of the whole process that an operation changes for a short time."""

    def pause_gc(self) -> AbstractContextManager[None]:
        """Pause Python's cycle collector while a block creates many objects.

        The block creates no reference cycles, and the memory of its result is bounded. Blocks may be nested and may run
        in several threads at the same time: the collector runs again after the last block ends, if it ran before the
        first one began. The pause is an optimization, so an adapter may do nothing.

        Returns
        -------
        context manager
            Usable once. It never raises and does not suppress errors of the block.
        """

    def release_thread_memory(self) -> None:
        """Return free memory that the allocator of file formats keeps for the calling thread.

        A thread calls it after it read or wrote a large file. It is an optimization that never raises, so an adapter
        may do nothing.
        """


@frozen
class NoProcessEffects:
    """A `ProcessEffects` that changes nothing: the default of an `Engine`."""

    def pause_gc(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing.

        Returns
        -------
        context manager
            Usable once.
        """
        return nullcontext()

    def release_thread_memory(self) -> None:
        """Do nothing."""
