"""Processes that live long: what they keep in memory does not grow with what they committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paimon
from paimon.adapters.cache import LruCache

RETAINED = {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "5"}


def committed(folder: Path, commits: int, **options: str) -> paimon.Table:
    catalog = paimon.connect(folder)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT NOT NULL, v INT", primary_keys=["k"], options={"bucket": "1", **options})
    for number in range(commits):
        table.write({"k": [number % 10], "v": [number]})
    return table


@pytest.mark.parametrize("vectors", [False, True], ids=["plain", "vectors"])
def test_a_writer_caches_no_file_that_expired(tmp_path: Path, vectors: bool) -> None:
    table = committed(tmp_path, 60, **RETAINED, **{"deletion-vectors.enabled": str(vectors).lower()})
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
from test_long_lives import committed

def resident():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

table = committed(Path(sys.argv[1]), 100)
assert table.scan().count() == 10
table.write({"k": [0], "v": [0]})  # what is loaded on first use is loaded before the measurement
cache = table.engine.cache
cache.clear()
gc.collect()
start = resident()
for number in range(400):
    table.write({"k": [number % 10], "v": [number]})
counted, grown = cache.size_bytes, resident() - start
cache.clear()
print(counted, grown, resident() - start)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux' proc")
def test_the_cache_counts_what_it_takes_and_returns_it_when_cleared(tmp_path: Path) -> None:
    """Without expiry 400 commits cache 1,500 values: they took three times what was counted, and stayed for ever."""
    here = str(Path(__file__).parent)
    called = [sys.executable, "-c", MEASURE, str(tmp_path), here]
    counted, grown, left = map(int, subprocess.check_output(called, env=dict(os.environ)).split())
    assert grown > 10 << 20
    assert 0.6 * grown < counted < 1.6 * grown
    assert left < 0.5 * grown  # the rest is free memory between used memory
