"""Time, names and chance: the effects that the domain never has.

Contract: `Clock.now_millis` is epoch milliseconds, `Clock.sleep_millis` waits; `Ids.uuid` answers a fresh random
UUID text; `Random.uniform` a float in [0, 1).
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall-clock time."""

    def now_millis(self) -> int: ...
    def local_offset_millis(self, at_millis: int) -> int: ...
    def sleep_millis(self, millis: float) -> None: ...


class Ids(Protocol):
    """Fresh names."""

    def uuid(self) -> str: ...


class Random(Protocol):
    """Chance, for jitter only."""

    def uniform(self) -> float: ...
