"""Races of threads in memory: each acknowledged row is read back once. `tests/stress` covers races of processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from attrs import evolve
from support.commit_tables import engine_on, live_names, memory_table, message

from paimon.domain.commit.message import CompactIncrement
from paimon.domain.errors import CommitConflict
from paimon.domain.options.table_options import TableOptions
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.table_context import TableContext

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
