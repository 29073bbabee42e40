"""Warm up: bring the memory into the same state for all libraries before a measurement begins.

A virtual machine may return memory that is idle for some seconds to its host. To fetch it again can take most of a
short scan. Without a warm-up, a library that imports quickly would reuse the memory of the previous process.
"""

from __future__ import annotations

import mmap
import os
import time

import numpy as np

WARM = "BENCHMARK_WARM"
_PAUSE = 3.0
_PROCESS_START = time.monotonic()


def prepare_memory() -> None:
    """Wait until the process is three seconds old, or allocate and release BENCHMARK_WARM MiB instead."""
    warm = int(os.environ.get(WARM, "0"))
    if warm:
        _touch(warm << 20)
    else:
        time.sleep(max(0.0, _PAUSE - (time.monotonic() - _PROCESS_START)))


def _touch(size: int) -> None:
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)
        pages[:: mmap.PAGESIZE] = 1
        del pages  # a map with an exported buffer cannot be closed
