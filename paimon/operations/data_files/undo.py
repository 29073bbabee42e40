"""Undo the effects of a failed block.

Invariant: the undo function runs once, and only if the block fails for any reason, an interrupt included. The exception
of the block is raised unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def undo_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo`, which removes what the block created, if the block raises."""
    try:
        yield
    except BaseException:
        undo()
        raise
