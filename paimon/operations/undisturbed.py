"""Making many objects at once without Python's collector looking through all of them again and again.

Law: only around work that makes no cycles and is bounded by what it answers; what was the collector's state before is
its state after. A plan of 20,000 files costs a third less so.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Python's collector of cycles waits meanwhile, in all threads."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
