"""Memory in huge pages for what tables read and write.

Law: only what Arrow has not read yet can be set, and what the user set stands. Source: docs/decisions/arrow-memory.md.
"""

from __future__ import annotations

import os
import sys

_SETTINGS = "JE_ARROW_MALLOC_CONF"
"""Read by Arrow's jemalloc, which tables use (`arrow_memory`), when Arrow is loaded, and never again."""


def ask_for_huge_pages() -> None:
    """Let Arrow's jemalloc ask for huge pages, if Arrow is not loaded yet: far fewer page faults, a fifth of a scan.

    Where Arrow is there already, where its pool is another one, or where the system has no huge pages, nothing changes.
    """
    if "pyarrow" not in sys.modules:
        os.environ.setdefault(_SETTINGS, "thp:always")
