"""A forked child works on its own, or is refused at once. It neither hangs nor crashes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.case_lists import mark_nightly
from support.s3_server import BUCKET, s3_server, storage_of

import paimon
from paimon.adapters.cache import LruCache

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PATIENCE_SECONDS = 120
QUERY = "SELECT sum(id) AS n, count(DISTINCT md5(i::VARCHAR)) AS m FROM d.t, range(100000) r(i)"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """A catalog whose process has used all that has threads."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT NOT NULL, v BIGINT", primary_keys=["id"], options={"bucket": "2"})
    table.write([{"id": n, "v": n} for n in range(8)])
    table.update({"v": "abs(v)"}, where="abs(id) = 1")
    catalog.sql(QUERY).to_arrow()
    return catalog


def run_in_child(work: Callable[[], object], *, ends_normally: bool = False) -> str:
    """Fork, and return what the child reports; `ends_normally`: the interpreter of the child is finalized."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            text = repr(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode()[:60_000])
        os.close(writer)
        if ends_normally:
            gc.collect()
        os._exit(0)
    os.close(writer)
    killer = threading.Timer(PATIENCE_SECONDS, os.kill, (child, 9))
    killer.start()
    try:
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read().decode()
        _, status = os.waitpid(child, 0)
    finally:
        killer.cancel()
    assert status == 0, f"the child ended with status {status} after {text!r}"
    return text


WORK: dict[str, Callable[[paimon.Catalog], object]] = {
    "scan": lambda c: c.table("d.t").scan().count(),
    "parallel scan": lambda c: c.table("d.t").scan(where="id >= 0").to_arrow().num_rows,
    "update": lambda c: c.table("d.t").update({"v": "abs(v)"}, where="abs(id) = 1").rows,
    "query": lambda c: c.sql(QUERY).to_arrow().num_rows,
    "insert and query": lambda c: (c.sql("INSERT INTO d.t VALUES (1, 1)"), c.sql(QUERY).to_arrow().num_rows)[1],
    "new catalog": lambda c: paimon.connect(c.warehouse).sql(QUERY).to_arrow().num_rows,
    "compact": lambda c: c.table("d.t").compact(full=True).buckets >= 0,
    "spill": lambda c: bool(c.engine.temp.spill(pa.table({"a": [1]}))),
    "query after close": lambda c: (gc.collect(), c.sql(QUERY).to_arrow().num_rows)[1],
}
EXPECTED = {"scan": "8", "parallel scan": "8", "compact": "True", "spill": "True"}


@pytest.mark.parametrize("name", mark_nightly(WORK, always=["parallel scan", "update", "insert and query", "compact"]))
def test_a_forked_child_works(catalog: paimon.Catalog, name: str) -> None:
    assert run_in_child(lambda: WORK[name](catalog), ends_normally=True) == EXPECTED.get(name, "1")
    assert catalog.sql(QUERY).to_arrow().num_rows == 1, "the parent is not disturbed"


def test_a_child_forked_while_a_query_runs_works(catalog: paimon.Catalog) -> None:
    running, stop = threading.Event(), threading.Event()

    def query() -> None:
        while not stop.is_set():
            running.set()
            catalog.sql(QUERY).to_arrow()

    thread = threading.Thread(target=query)
    thread.start()
    running.wait()
    try:
        for _ in range(3):
            assert run_in_child(lambda: catalog.sql(QUERY).to_arrow().num_rows) == "1"
    finally:
        stop.set()
        thread.join()


def test_a_result_of_the_parent_is_refused_in_the_child(catalog: paimon.Catalog) -> None:
    rows = iter(catalog.sql("SELECT i FROM range(1000000) r(i)").to_batches())
    next(rows)
    assert "InvalidRequest: The query was begun by the parent process" in run_in_child(lambda: list(rows))
    assert sum(len(batch) for batch in rows) > 0


def test_a_parallel_read_of_the_parent_is_refused_in_the_child() -> None:
    from paimon.adapters.executors.local import ThreadExecutor

    results = ThreadExecutor(2).map(_wait_and_return, range(8))
    next(results)
    assert "InvalidRequest: The read was begun by the parent process" in run_in_child(lambda: list(results))
    assert len(list(results)) == 7


def _wait_and_return(number: int) -> int:
    time.sleep(0.05)
    return number


def test_a_child_has_a_temporary_directory_of_its_own(catalog: paimon.Catalog) -> None:
    store = catalog.engine.temp
    inherited = store.spill(pa.table({"a": [1]}))
    own = run_in_child(lambda: os.path.dirname(store.spill(pa.table({"a": [2]}))))
    assert "paimon-temp-" in own and os.path.dirname(inherited) not in own
    assert next(iter(store.load(inherited, 10))).num_rows == 1


def test_a_lock_that_another_thread_holds_does_not_stop_the_child(catalog: paimon.Catalog) -> None:
    cache = catalog.engine.cache
    assert isinstance(cache, LruCache)
    cache.put("a", 1, 1)
    with cache._lock:
        assert run_in_child(lambda: cache.get("a")) == "1"


def test_children_of_multiprocessing_query(catalog: paimon.Catalog) -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        counted = pool.map_async(_count_rows, [catalog.warehouse] * 4).get(PATIENCE_SECONDS)
    assert counted == [8] * 4


def _count_rows(warehouse: str) -> int:
    return int(paimon.connect(warehouse).sql("SELECT count(*) AS n FROM d.t").to_arrow()["n"][0].as_py())


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as url:
        yield url


def test_a_store_is_refused_in_a_child_whose_parent_used_it(endpoint: str) -> None:
    pytest.importorskip("obstore")
    catalog = paimon.connect(f"s3://{BUCKET}/{uuid.uuid4()}", storage=storage_of(endpoint))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT")
    table.write([{"id": 1}])
    for work in (lambda: table.scan().count(), lambda: table.write([{"id": 2}]), lambda: catalog.tables("d")):
        found = run_in_child(work)
        assert found.startswith("Unsupported: ") and "'spawn'" in found
    assert table.scan().count() == 1


def test_a_file_system_of_fsspec_connects_again_in_the_child(tmp_path: Path) -> None:
    catalog = paimon.connect(f"local://{tmp_path}", storage={"single-writer": True})
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT")
    table.write([{"id": 1}])
    assert run_in_child(lambda: (table.write([{"id": 2}]), table.scan().count())[1]) == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")
def test_forked_workers_of_a_torch_loader_read(catalog: paimon.Catalog) -> None:
    torch = pytest.importorskip("torch")
    builder = catalog.table("d.t").new_read_builder()
    dataset = builder.new_read().to_torch(builder.new_scan().plan().splits(), streaming=True)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert sum(1 for _ in loader) > 0
