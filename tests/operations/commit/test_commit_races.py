"""Real races: threads in memory, processes on local disk. All acknowledged, all read back, once.

`FULL_RACES=1` runs as many processes and commits as the peers' losses were measured with.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from attrs import evolve
from commit_world import create, engine_on, live_names, memory_table, message, table_at

from paimon.adapters.files.local import LocalFiles
from paimon.domain.commit.message import CompactIncrement
from paimon.domain.errors import CommitConflict
from paimon.domain.options.table_options import TableOptions
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.read.snapshots import snapshot_ids

PROCESSES, COMMITS = (6, 10) if os.environ.get("FULL_RACES") else (3, 5)
PATIENT = {"commit.max-retries": "1000"}


def append_some(root: str, worker: int, commits: int) -> list[str]:
    """One process: so many commits of one file each; answers what was acknowledged."""
    engine, table = engine_on(LocalFiles()), table_at(root, options=PATIENT)
    acknowledged = []
    for number in range(commits):
        name = f"w{worker}-{number}"
        result = commit(engine, table, CommitRequest((message(table, [name]),), f"w{worker}", number))
        assert len(result.snapshot_ids) == 1
        acknowledged.append(name)
    return acknowledged


def test_processes_on_local_disk_lose_nothing(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    engine, table = engine_on(LocalFiles()), table_at(root, options=PATIENT)
    create(engine, table)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
        told = pool.map(append_some, [root] * PROCESSES, range(PROCESSES), [COMMITS] * PROCESSES)
        acknowledged = [name for names in told for name in names]
    assert len(acknowledged) == PROCESSES * COMMITS
    assert live_names(engine, table) == sorted(acknowledged)
    assert snapshot_ids(engine, table.paths) == tuple(range(1, PROCESSES * COMMITS + 1))


def test_threads_in_memory_lose_nothing() -> None:
    engine, table = memory_table(options={**PATIENT, "manifest.merge-min-count": "3"})

    def work(worker: int) -> list[str]:
        mine = engine_on(engine.files)
        names = [f"w{worker}-{n}" for n in range(10)]
        for name in names:
            commit(mine, table, CommitRequest((message(table, [name]),), f"w{worker}"))
        return names

    with ThreadPoolExecutor(6) as pool:
        acknowledged = [name for names in pool.map(work, range(6)) for name in names]
    assert live_names(engine, table) == sorted(acknowledged)


def test_of_threads_that_compact_the_same_files_one_wins() -> None:
    engine, table = memory_table(keyed=True, options=PATIENT)
    patient = evolve(table, options=TableOptions.of(PATIENT))
    first = message(table, ["a", "b"])
    commit(engine, table, CommitRequest((first,), "u"))

    def compact(worker: int) -> bool:
        after = tuple(evolve(f, file_name=f"x{worker}", level=5) for f in first.data.new_files[:1])
        request = CommitRequest((message(table, compact=CompactIncrement(first.data.new_files, after)),), f"c{worker}")
        try:
            return bool(commit(engine_on(engine.files), patient, request).snapshot_ids)
        except CommitConflict as error:
            assert "no longer in the table" in str(error)
            return False

    with ThreadPoolExecutor(4) as pool:
        won = [f"x{i}@5" for i, ok in enumerate(pool.map(compact, range(4))) if ok]
    assert live_names(engine, table) == won
    assert len(won) == 1
