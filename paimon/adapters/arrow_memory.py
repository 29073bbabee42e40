"""Where Arrow takes its memory from.

Law: what the user chose stands: the environment variable ARROW_DEFAULT_MEMORY_POOL, or any pool that is not the one
that Arrow chooses by itself. Source: docs/decisions/arrow-memory.md.
"""

from __future__ import annotations

import os

import pyarrow as pa

_CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
_OWN_CHOICE = "mimalloc"


def prefer_system_memory() -> None:
    """Let Arrow allocate as the rest of the process does, unless somebody chose otherwise.

    Arrow's own choice keeps what windows of a merge gave back, and numpy cannot use it: a scan took a third more memory
    and up to a third more time.
    """
    if _CHOICE not in os.environ and pa.default_memory_pool().backend_name == _OWN_CHOICE:
        pa.set_memory_pool(pa.system_memory_pool())
