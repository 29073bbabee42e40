"""Observer: told of progress and of what was counted; it never changes a result.

Contract: calls are cheap, may come from several threads, and must not raise.
"""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """`progress`: `done` of `total` (None: unknown) units of `activity` are finished; `count` adds to a metric."""

    def progress(self, activity: str, done: int, total: int | None = None) -> None: ...
    def count(self, metric: str, value: int) -> None: ...
