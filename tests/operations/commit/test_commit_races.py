"""Races of threads in memory: each acknowledged row is read back once. `tests/stress` covers races of processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import cast

from attrs import evolve
from support.commit_tables import engine_on, live_names, memory_table, message

from paimon.domain.commit.message import CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.operations.commit.commit import commit
from paimon.operations.table_context import TableContext
from paimon.ports.snapshots import SnapshotCommit

PATIENT = {"commit.max-retries": "1000"}


def test_threads_in_memory_lose_no_commit() -> None:
    engine, table = memory_table(options={**PATIENT, "manifest.merge-min-count": "3"})

    def work(worker: int) -> list[str]:
        mine = engine_on(engine.files)
        names = [f"w{worker}-{n}" for n in range(10)]
        for name in names:
            commit(TableContext(mine, table), CommitRequest((message(table, [name]),), f"w{worker}"))
        return names

    with ThreadPoolExecutor(6) as pool:
        acknowledged = [name for names in pool.map(work, range(6)) for name in names]
    assert live_names(engine, table) == sorted(acknowledged)


def test_of_threads_that_compact_the_same_files_one_wins() -> None:
    engine, table = memory_table(keyed=True, options=PATIENT)
    patient = evolve(table, options=TableOptions.of(PATIENT))
    first = message(table, ["a", "b"])
    commit(TableContext(engine, table), CommitRequest((first,), "u"))

    def compact(worker: int) -> bool:
        after = tuple(evolve(f, file_name=f"x{worker}", level=5) for f in first.data.new_files[:1])
        request = CommitRequest((message(table, compact=CompactIncrement(first.data.new_files, after)),), f"c{worker}")
        try:
            return bool(commit(TableContext(engine_on(engine.files), patient), request).snapshot_ids)
        except CommitConflict as error:
            assert "no longer in the table" in str(error)
            return False

    with ThreadPoolExecutor(4) as pool:
        won = [f"x{i}@5" for i, ok in enumerate(pool.map(compact, range(4))) if ok]
    assert live_names(engine, table) == won
    assert len(won) == 1


def test_a_commit_that_another_process_publishes_after_the_check_is_found() -> None:
    engine, table = memory_table(options=PATIENT)
    request = CommitRequest((message(table, ["a"]),), "stream", 7)

    class SlowLock:
        """Publishes the same commit from another process while this one waits for the lock."""

        def __init__(self) -> None:
            self.waits = 0

        def __getattr__(self, name: str) -> object:
            return getattr(engine.snapshots, name)

        def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
            self.waits += 1
            other = CommitRequest((message(table, ["b"]),), "stream", 7)
            assert commit(TableContext(engine_on(engine.files), table), other).snapshot_ids == (1,)
            return engine.snapshots.lock(paths)

    slow = SlowLock()
    done = commit(TableContext(evolve(engine, snapshots=cast("SnapshotCommit", slow)), table), request)
    assert (slow.waits, done.snapshot_ids, live_names(engine, table)) == (1, (1,), ["b"])
