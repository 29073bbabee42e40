"""In which state memory is when a measured part begins: the same for all sides.

A virtual machine may hand memory that lies idle for some seconds back to its host, and to fetch it again can be the
larger half of a short scan. Who imports quickly would find what the last process left; who imports longer would not.
"""

from __future__ import annotations

import mmap
import os
import time

import numpy as np

WARM = "BENCHMARK_WARM"
_PAUSE = 3.0
_BEGAN = time.monotonic()


def settle() -> None:
    """Wait until the process is three seconds old, as long as any side imports; or, if BENCHMARK_WARM says how many
    MiB, take so much memory and give it back, so that nobody has to wait for the host."""
    warm = int(os.environ.get(WARM, "0"))
    if warm:
        _touch(warm << 20)
    else:
        time.sleep(max(0.0, _PAUSE - (time.monotonic() - _BEGAN)))


def _touch(size: int) -> None:
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)
        pages[:: mmap.PAGESIZE] = 1
        del pages  # a map that is looked at cannot be closed
