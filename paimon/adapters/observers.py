"""Observers that ignore or add up what they receive.

Invariant: they neither raise nor change a result.
"""

from __future__ import annotations

import threading
from collections import Counter


class SilentObserver:
    """Ignores all calls."""

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Ignore the progress."""

    def count(self, metric: str, value: int) -> None:
        """Ignore the increment."""


class CountingObserver:
    """Adds metrics up, from several threads; `activities` has the last (done, total) of each activity."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.metrics: Counter[str] = Counter()
        self.activities: dict[str, tuple[int, int | None]] = {}

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Replace the progress of the activity."""
        with self._lock:
            self.activities[activity] = (done, total)

    def count(self, metric: str, value: int) -> None:
        """Add to the metric."""
        with self._lock:
            self.metrics[metric] += value
