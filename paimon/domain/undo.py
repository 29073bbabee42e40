"""Undo what a block began if it fails: the one place where an operation or an adapter catches every error.

Invariant: the error of the block is raised, whatever it is: also an interrupt, or the end of a generator. That of the
clean-up is a note of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paimon.domain.errors import PaimonError


@contextmanager
def undo_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo`, which removes what the block created, if the block raises. See `undo_after` for its own error."""
    try:
        yield
    except BaseException as error:
        undo_after(error, undo)
        raise


def undo_after(error: BaseException, undo: Callable[[], object]) -> None:
    """Call `undo` for an error that the caller raises again. If `undo` fails, the error gets a note about that."""
    try:
        undo()
    except (PaimonError, OSError, RuntimeError, ValueError) as failure:
        error.add_note(f"The clean-up failed, too, and may leave files behind: {type(failure).__name__}: {failure}")
