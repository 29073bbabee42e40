"""Compactors and writers in separate processes: no row is lost or counted twice, and conflicts have a typed error.

In an aggregation table, every row counts one for a shared key and one for the writer's own key. A lost row, or a row
that is merged twice, changes a sum.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import paimon
from paimon.domain.snapshot.snapshot import CommitKind

WRITERS, COMMITS = 3, 4

WRITER = """
import sys, paimon
table, own = paimon.open_table(sys.argv[1]), int(sys.argv[2])
for step in range(int(sys.argv[3])):
    table.write([{"k": own, "n": 1, "last": step}, {"k": -1, "n": 1, "last": own}, {"k": 100 + step, "n": 1}])
"""

COMPACTOR = """
import json, pathlib, sys, time, paimon
from collections import Counter
table, stop, outcomes = paimon.open_table(sys.argv[1]), pathlib.Path(sys.argv[2]), Counter()
while not stop.exists():
    try:
        done = table.compact(full=outcomes.total() % 2 == 0)
        outcomes["compacted" if done.snapshot_ids else "nothing to do"] += 1
    except paimon.CommitConflict as conflict:
        assert conflict.files and conflict.hint, conflict
        outcomes["conflict"] += 1
    time.sleep(0.01)
print(json.dumps(outcomes))
"""


def start_process(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_process(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error[-2_000:]
    return out


@pytest.mark.slow("starts five processes that commit at the same time")
def test_two_compactors_and_three_writers(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "k INT NOT NULL, n BIGINT, last INT", primary_keys=["k"],
        options={
            "bucket": "2", "write-only": "true", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
            "num-sorted-run.compaction-trigger": "2", "commit.max-retries": "100",
        },
    )  # fmt: skip
    stop = tmp_path / "stop"
    compactors = [start_process(COMPACTOR, table.location, stop) for _ in range(2)]
    writers = [start_process(WRITER, table.location, own, COMMITS) for own in range(WRITERS)]
    try:
        for writer in writers:
            wait_for_process(writer)
        stop.touch()
        outcomes = [Counter(json.loads(wait_for_process(compactor))) for compactor in compactors]
    finally:
        for process in (*writers, *compactors):
            process.kill()
    made = sum(counted["compacted"] for counted in outcomes)
    assert made, outcomes
    expected = dict.fromkeys(range(WRITERS), COMMITS) | {-1: WRITERS * COMMITS}
    expected |= {100 + step: WRITERS for step in range(COMMITS)}
    counts = {row["k"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert counts == expected
    table.compact(full=True)
    assert {row["k"]: row["n"] for row in table.scan().to_arrow().to_pylist()} == expected
    kinds = Counter(s.commit_kind for s in table.snapshots())
    assert kinds[CommitKind.APPEND] == WRITERS * COMMITS and made <= kinds[CommitKind.COMPACT] <= made + 1
    live = {f["file_path"].rpartition("/")[2] for f in table.system_table("files").scan().to_arrow().to_pylist()}
    assert live <= {path.name for path in Path(table.location).rglob("data-*")}
