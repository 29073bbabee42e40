"""Clock, Ids and Random of the operating system.

Invariant: random numbers and names come from the system, so forked processes do not share a sequence.
"""

from __future__ import annotations

import random
import time
import uuid

from paimon.adapters.cancellation import sleep


class SystemClock:
    """The machine's wall clock and time zone."""

    def now_millis(self) -> int:
        """Return epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def local_offset_millis(self, at_millis: int) -> int:
        """Return local time minus UTC at that moment, in milliseconds."""
        return time.localtime(at_millis // 1000).tm_gmtoff * 1000

    def sleep_millis(self, millis: float) -> None:
        """Wait, or return at once if the time is not positive; a token of the caller ends the wait."""
        sleep(millis / 1000)


class RandomIds:
    """Random (version 4) UUIDs."""

    def uuid(self) -> str:
        """Return a new UUID as text."""
        return str(uuid.uuid4())


class SystemRandom:
    """Random numbers of the system, which forked processes do not share."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        return self._source.random()
