"""What a call of a simulated thread waits for, as `threading.Event` for a real one."""

from __future__ import annotations

from attrs import define

from paimon.testing.interleaving import Interleaving


@define(eq=False)
class PausedSignal:
    """A signal whose wait lets other actors run."""

    interleaving: Interleaving
    is_on: bool = False

    def set(self) -> None:
        self.is_on = True

    def is_set(self) -> bool:
        return self.is_on

    def wait(self, timeout: float | None = None) -> None:
        self.interleaving.pause()
