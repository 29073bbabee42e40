"""DuckDB as a query engine keeps the contract of the port."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from paimon.adapters.queries.duckdb_queries import DuckDBQueries
from paimon.adapters.queries.on_demand import QueriesOnDemand
from paimon.domain.errors import InvalidRequest
from paimon.ports.queries import QueryEngine
from paimon.testing.contracts.queries import QueryEngineContract

MEMORY = 256 * 1024 * 1024


class TestDuckDB(QueryEngineContract):
    def make_engine(self) -> QueryEngine:
        return DuckDBQueries(MEMORY, 2)


class TestOnDemand(QueryEngineContract):
    def make_engine(self) -> QueryEngine:
        return QueriesOnDemand(MEMORY, 2)


def test_a_query_cannot_change_its_limits() -> None:
    with pytest.raises(InvalidRequest):
        DuckDBQueries(MEMORY, 1).run("SET enable_external_access = true", {}).read_all()


def test_times_are_in_utc() -> None:
    found = DuckDBQueries(MEMORY, 1).run("SELECT TIMESTAMPTZ '2026-01-01 10:00:00+02:00' AS t", {}).read_all()
    assert str(found.schema.field("t").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("step", ["_open_database", "_find_arrow_field"])
def test_ctrl_c_while_a_query_is_described(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB raises a RuntimeError where it notices the signal, which can be in each of its calls."""

    def notice(*_: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(DuckDBQueries, step, notice)
    with pytest.raises(KeyboardInterrupt):
        DuckDBQueries(MEMORY, 1).describe("SELECT 1 AS a", {})


def test_a_large_sort_spills_and_leaves_no_file() -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    engine = DuckDBQueries(64 * 1024 * 1024, 1)
    sql = (
        "SELECT * FROM (SELECT range AS a, repeat('x', 60) || hash(range)::VARCHAR AS b FROM range(800000)) ORDER BY b"
    )
    assert sum(batch.num_rows for batch in engine.run(sql, {})) == 800_000
    engine.close()
    left = {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("paimon-query")}
    assert not left


def test_a_sort_that_needs_the_memory_of_all_threads_runs_in_one() -> None:
    engine = DuckDBQueries(48 * 1024 * 1024, 8)
    sql = "SELECT * FROM (SELECT repeat('x', 500) || hash(range)::VARCHAR AS b FROM range(200000)) ORDER BY b"
    batches = list(engine.run(sql, {}))
    engine.close()
    assert sum(batch.num_rows for batch in batches) == 200_000
    assert max(batch.nbytes for batch in batches) < 48 * 1024 * 1024 // 4, "a batch is a part of the memory"


def test_a_running_query_can_be_stopped() -> None:
    engine = QueriesOnDemand(MEMORY, 2)
    engine.interrupt()  # nothing runs
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(engine.run, "SELECT count(*) FROM range(1000000000000) AS a, range(1000) AS b", {})
        while not found.done():
            engine.interrupt()
            time.sleep(0.01)
    with pytest.raises(InvalidRequest, match="nterrupt"):
        found.result().read_all()
    assert engine.run("SELECT 1 AS a", {}).read_all()["a"].to_pylist() == [1]


def test_a_query_that_ended_does_not_keep_others_from_being_stopped() -> None:
    queries = DuckDBQueries(MEMORY, 1)
    ended = queries._open_session()
    ended.close()
    running = queries._open_session()
    queries.interrupt()  # an interrupt before a query has no effect
    assert running.connection.execute("SELECT 1").fetchall() == [(1,)]
