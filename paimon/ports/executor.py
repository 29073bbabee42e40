"""Executor: runs picklable tasks, here or elsewhere.

Contract: `map` calls `function` once for each task that is consumed, and yields the answers in the order of `tasks`
(lazily; a task's exception is raised where its answer would come). A remote executor may call a function again
after a failure, so functions are idempotent or leave only orphan files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """See the module's contract."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]: ...
