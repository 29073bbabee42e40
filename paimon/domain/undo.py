"""Undo what a block began if it fails: the one place where an operation or an adapter catches every error.

Invariant: the error of the block is raised, whatever it is: also an interrupt, or the end of a generator.
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
