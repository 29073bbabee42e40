"""Undo the effects of a failed block.

Invariant: the undo function runs once, and only if the block fails for any reason, an interrupt included. The exception
of the block is raised unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def undo_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the block raises.

    Parameters
    ----------
    undo : callable
        Removes what the block left behind.

    Yields
    ------
    None
        Control to the block.

    Raises
    ------
    BaseException
        The exception of the block, unchanged.
    """
    try:
        yield
    except BaseException:
        undo()
        raise
