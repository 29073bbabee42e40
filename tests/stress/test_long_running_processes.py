"""Long-running processes: their memory does not grow with the number of commits."""

from __future__ import annotations

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


@pytest.mark.parametrize("vectors", [False, True], ids=["plain", "vectors"])
def test_a_writer_caches_no_file_that_expired(tmp_path: Path, vectors: bool) -> None:
    table = create_table_with_commits(tmp_path, 60, **RETAINED, **{"deletion-vectors.enabled": str(vectors).lower()})
    cache = table.engine.cache
    assert isinstance(cache, LruCache)
    manifests = [path for path in cache.paths() if "/manifest/" in path]
    assert manifests
    assert [path for path in cache.paths() if not Path(path).exists()] == []
    assert len(manifests) <= len(list(Path(table.location, "manifest").iterdir()))


MEASURE = """
import gc, sys
import paimon
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_long_running_processes import create_table_with_commits

def resident():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

table = create_table_with_commits(Path(sys.argv[1]), 100)
assert table.scan().count() == 10
table.write({"k": [0], "v": [0]})  # what is loaded on first use is loaded before the measurement
cache = table.engine.cache
cache.clear()
gc.collect()
start = resident()
left = []
for _ in range(2):
    for number in range(400):
        table.write({"k": [number % 10], "v": [number]})
    counted, grown = cache.size_bytes, resident() - start
    cache.clear()
    gc.collect()
    cache.clear()  # returns what the collector freed
    left.append(resident() - start)
print(counted, grown, left[0], left[1] - left[0])
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux' proc")
def test_the_cache_measures_its_memory_and_frees_it_when_cleared(tmp_path: Path) -> None:
    """Without expiry, 400 commits cache 1,500 values. Clearing the cache frees them all.

    Free memory between used memory stays with the process: about a third of the growth, once. A leak would grow with
    each round, so the bound is on the growth of the second round.
    """
    here = str(Path(__file__).parent)
    called = [sys.executable, "-c", MEASURE, str(tmp_path), here]
    counted, grown, left, added = map(int, subprocess.check_output(called, env=dict(os.environ)).split())
    assert grown > 10 << 20
    assert 0.6 * grown < counted < 1.6 * grown
    assert left < 0.5 * grown
    assert added < 0.1 * grown
