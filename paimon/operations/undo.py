"""What a failed block leaves behind: nothing.

Law: what undoes a block runs once, only where the block failed, however it failed (an interrupt and a dying executor
count), and the failure goes on as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def undone_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` where the block inside ends by an exception."""
    try:
        yield
    except BaseException:
        undo()
        raise
