"""Where Arrow takes its memory from.

Law: what the user chose stands: the environment variable ARROW_DEFAULT_MEMORY_POOL, or any pool that is not the one
that Arrow chooses by itself. Source: docs/decisions/arrow-memory.md.
"""

from __future__ import annotations

import os

import pyarrow as pa

_CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
_OWN_CHOICE = "mimalloc"
_PREFERRED = "jemalloc"


def prefer_lean_memory() -> None:
    """Let Arrow use the allocator that keeps least, unless somebody chose one: jemalloc, or the system's where Arrow
    was built without it.

    Arrow's own choice keeps what windows of a merge gave back, and numpy cannot use it: a scan took a third more memory
    and up to twice the time.
    """
    if _CHOICE in os.environ or pa.default_memory_pool().backend_name != _OWN_CHOICE:
        return
    built_in = _PREFERRED in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if built_in else pa.system_memory_pool())
