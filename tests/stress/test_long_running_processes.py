"""Long-running processes: their memory does not grow with the number of commits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

import paimon
from paimon.adapters.cache import LruCache

RETAINED = {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "5"}


def create_table_with_commits(folder: Path, commits: int, **options: str) -> paimon.Table:
    catalog = paimon.connect(folder)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT NOT NULL, v INT", primary_keys=["k"], options={"bucket": "1", **options})
    for number in range(commits):
        table.write({"k": [number % 10], "v": [number]})
    return table


# The processes of `measure_cache` import this module, and have no `support`.
@pytest.mark.parametrize("vectors", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_a_writer_caches_no_file_that_expired(tmp_path: Path, vectors: bool) -> None:
    table = create_table_with_commits(tmp_path, 60, **RETAINED, **{"deletion-vectors.enabled": str(vectors).lower()})
    cache = table.engine.cache
    assert isinstance(cache, LruCache)
    manifests = [path for path in cache.paths() if "/manifest/" in path]
    assert manifests
    assert [path for path in cache.paths() if not Path(path).exists()] == []
    assert len(manifests) <= len(list(Path(table.location, "manifest").iterdir()))


MEASURE = """
import ctypes, gc, sys
import paimon
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_long_running_processes import create_table_with_commits

class MallocStatistics(ctypes.Structure):  # mallinfo2 of glibc
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

def allocated():
    gc.collect()
    read = ctypes.CDLL(None).mallinfo2
    read.restype = MallocStatistics
    found = read()
    return found.uordblks + found.hblkhd

def resident():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

measure = {"allocated": allocated, "resident": resident}[sys.argv[3]]
commits = int(sys.argv[4])
table = create_table_with_commits(Path(sys.argv[1]), 10)
assert table.scan().count() == 10
caches = (table.engine.cache, table.engine.formats.footers)  # metadata, and footers of data files

def clear():
    for cache in caches:
        cache.clear()

clear()
table.write({"k": [0], "v": [0]})  # what is loaded on first use is loaded before the measurement
clear()
gc.collect()
start = measure()
left = []
for _ in range(int(sys.argv[5])):
    for number in range(commits):
        table.write({"k": [number % 10], "v": [number]})
    counted, grown = sum(cache.size_bytes for cache in caches), measure() - start
    clear()
    gc.collect()
    clear()  # returns what the collector freed
    left.append(measure() - start)
print(counted, grown, *left)
"""


def measure_cache(folder: Path, what: str, commits: int, rounds: int) -> list[int]:
    """Return the bytes that the caches count, the growth of memory, and what each round left."""
    command = [sys.executable, "-c", MEASURE, str(folder), str(Path(__file__).parent), what, str(commits), str(rounds)]
    by_malloc = {"PYTHONMALLOC": "malloc", "ARROW_DEFAULT_MEMORY_POOL": "system"} if what == "allocated" else {}
    return [int(word) for word in subprocess.check_output(command, env=os.environ | by_malloc).split()]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="memory is counted by the GNU C library")
def test_the_cache_measures_its_values_and_frees_them_when_cleared(tmp_path: Path) -> None:
    """Without expiry, each commit caches several values. A leak would grow with each round."""
    counted, grown, left, left_again = measure_cache(tmp_path, "allocated", 80, rounds=2)
    assert grown > 1 << 20
    assert 0.8 * grown < counted < 1.6 * grown
    assert left < 0.2 * grown
    assert left_again - left < 0.1 * grown


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux' proc")
@pytest.mark.nightly
def test_a_cleared_cache_returns_its_memory(tmp_path: Path) -> None:
    """400 commits cache 1,500 values. Free memory between used memory stays: about a third of the growth."""
    counted, grown, left = measure_cache(tmp_path, "resident", 400, rounds=1)
    assert grown > 10 << 20
    assert 0.6 * grown < counted < 1.6 * grown
    assert left < 0.5 * grown
