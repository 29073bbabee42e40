"""Clock, Ids and Random of the running system.

Law: chance and names are the system's own, so that processes that fork do not share a sequence.
"""

from __future__ import annotations

import random
import time
import uuid


class SystemClock:
    """The machine's wall clock and time zone."""

    def now_millis(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def local_offset_millis(self, at_millis: int) -> int:
        """What the local clock is ahead of UTC at that moment, in milliseconds."""
        return time.localtime(at_millis // 1000).tm_gmtoff * 1000

    def sleep_millis(self, millis: float) -> None:
        """Wait."""
        time.sleep(max(0.0, millis) / 1000)


class RandomIds:
    """Random (version 4) UUIDs."""

    def uuid(self) -> str:
        """A fresh UUID as text."""
        return str(uuid.uuid4())


class SystemRandom:
    """Chance from the system, so that forked processes do not share a sequence."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._source.random()
