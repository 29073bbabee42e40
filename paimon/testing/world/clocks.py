"""The clocks of the simulated world: one true time, and what each process takes it for.

Law: a step changes how far a clock is off; waiting takes true time and gives way to others.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from attrs import field, frozen

from paimon.testing.turns import TurnClock

LOCAL = "the machine"
"""Whose clock all processes on one machine have."""


@frozen(eq=False)
class OwnClock:
    """The clock of one process, or of one machine; `offsets` holds by how many milliseconds each is off."""

    truth: TurnClock
    owner: str
    offsets: MutableMapping[str, int] = field(repr=False)

    def now_millis(self) -> int:
        """What it shows."""
        return self.truth.now_millis() + self.offsets.get(self.owner, 0)

    def local_offset_millis(self, at_millis: int) -> int:
        """The simulation lives in UTC."""
        return self.truth.local_offset_millis(at_millis)

    def sleep_millis(self, millis: float) -> None:
        """Let others run."""
        self.truth.sleep_millis(millis)
