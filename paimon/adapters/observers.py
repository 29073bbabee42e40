"""Observers: one that is silent, one that adds up, one that logs.

Law: none of them raises or changes a result.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter


class SilentObserver:
    """Hears nothing."""

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Ignored."""

    def count(self, metric: str, value: int) -> None:
        """Ignored."""


class CountingObserver:
    """Adds metrics up and keeps the last progress of each activity; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.metrics: Counter[str] = Counter()
        self.activities: dict[str, tuple[int, int | None]] = {}

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Keep the latest state of the activity."""
        with self._lock:
            self.activities[activity] = (done, total)

    def count(self, metric: str, value: int) -> None:
        """Add to the metric."""
        with self._lock:
            self.metrics[metric] += value


class LoggingObserver:
    """Writes progress and metrics to the logger ``paimon`` at level DEBUG."""

    def __init__(self) -> None:
        self._log = logging.getLogger("paimon")

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """One line a call."""
        self._log.debug("%s: %d of %s", activity, done, "?" if total is None else total)

    def count(self, metric: str, value: int) -> None:
        """One line a call."""
        self._log.debug("%s +%d", metric, value)
