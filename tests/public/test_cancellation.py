"""Tokens and deadlines stop long calls, and leave the table whole: tested at each call of the storage."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

import paimon
from paimon.adapters.cancellation import stoppable_files
from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.embed import make_catalog, make_engine
from paimon.ports.cancellation import Stopped, check_stop, shielded
from paimon.ports.files import PutOutcome
from paimon.table import Table
from paimon.testing.contracts import FileIOContract
from paimon.testing.faulty_files import FaultyFiles
from paimon.testing.memory_files import MemoryFiles

LAYOUTS = {
    "key": (["id"], {"bucket": "2"}),
    "buckets": (["id"], {"bucket": "5", "num-sorted-run.compaction-trigger": "2", "write-buffer-size": "1 mb"}),
    "dynamic": (["id"], {}),
    "deletion vectors": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "first row": (["id"], {"bucket": "1", "merge-engine": "first-row"}),
    "lookup": (["id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "postpone": (["id"], {"bucket": "-2"}),
    "append": ([], {"bucket": "-1"}),
    "row tracking": ([], {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
}
ROWS = [{"id": n, "a": n} for n in range(4)]
VERBS: dict[str, Callable[[Table], object]] = {
    "write": lambda t: t.write([{"id": 1, "a": 10}, {"id": 9, "a": 9}]),
    "overwrite": lambda t: t.overwrite([{"id": 7, "a": 7}]),
    "delete": lambda t: t.delete(where="id = 2"),
    "update": lambda t: t.update(set={"a": "a + 100"}, where="id > 1"),
    "merge": lambda t: (
        t.merge([{"id": 3, "a": 30}, {"id": 8, "a": 8}], on="id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
    "compact": lambda t: t.compact(full=True),
    "expire": lambda t: t.maintain.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0)),
    "rescale": lambda t: t.rescale(3),
    "scan": lambda t: t.scan().to_arrow(),
}
BY_DAY_WITH_THREADS = {("buckets", "compact"), ("buckets", "write")}
BY_DAY = {("key", "write"), ("deletion vectors", "write"), ("append", "delete"), ("key", "compact"), ("key", "expire")}
REFUSED = {
    *((layout, "rescale") for layout in ("dynamic", "append", "row tracking", "postpone")),
    *(("row tracking", verb) for verb in ("delete", "compact")),
    *(("first row", verb) for verb in ("delete", "update", "merge")),
    *(("postpone", verb) for verb in ("delete", "update", "merge", "overwrite")),
}


class MemoryDirectories(FaultyFiles):
    """Files in memory whose directories can be moved in one step."""

    def make_directory(self, path: str) -> None:
        self._inner.contents.setdefault(f"{path}/.directory", b"")

    def move_directory(self, source: str, target: str) -> None:
        self._fault_of("move", source)
        contents = self._inner.contents
        if any(path.startswith(f"{target}/") for path in contents):
            raise paimon.AlreadyExists("directory", target)
        for path in [path for path in contents if path.startswith(f"{source}/")]:
            contents[target + path.removeprefix(source)] = contents.pop(path)

    def delete_directory(self, path: str) -> None:
        self._fault_of("delete", path)
        self._inner.delete([found for found in self._inner.contents if found.startswith(f"{path}/")])


class Lake:
    """A table in memory of which each test run has a copy, and a token that is cancelled at a call of the storage."""

    def __init__(self, layout: str, threads: int = 1, has_directories: bool = False) -> None:
        keys, options = LAYOUTS[layout]
        self.token = paimon.CancelToken()
        self.calls, self.stop_at = 0, -1
        self.memory = MemoryFiles()
        self.files = (MemoryDirectories if has_directories else FaultyFiles)(self.memory, self._count)
        self.executor = SerialExecutor() if threads == 1 else ThreadExecutor(threads)
        catalog = make_catalog(make_engine(self.files, executor=self.executor), "/lake")
        catalog.create_database("shop")
        schema = "id INT NOT NULL, a INT" if keys else "id INT, a INT"
        table = catalog.create_table("shop.t", schema, primary_keys=keys, options=options)
        for half in (ROWS[:2], ROWS[2:]):
            table.write(half)
        self.start = dict(self.memory.contents)

    def _count(self, operation: str, path: str) -> None:
        self.calls += 1
        if self.calls == self.stop_at:
            self.token.cancel()

    def open(self) -> Table:
        """The table as it was at the start, without what an engine caches."""
        self.memory.contents.clear()
        self.memory.contents.update(self.start)
        self.token, self.calls, self.stop_at = paimon.CancelToken(), 0, -1
        return self.reopen()

    def reopen(self) -> Table:
        return make_catalog(make_engine(self.files, executor=self.executor), "/lake").table("shop.t")

    def rows(self, table: Table) -> list[object]:
        return sorted(map(str, table.with_options({}).scan().to_arrow().to_pylist()))


@pytest.mark.parametrize(
    ("layout", "verb", "step", "threads"),
    [
        *((layout, verb, 9, 1) for layout, verb in sorted(BY_DAY)),
        *((layout, verb, 5, 4) for layout, verb in sorted(BY_DAY_WITH_THREADS)),
        *(
            pytest.param(layout, verb, 1, threads, marks=pytest.mark.nightly)
            for threads in (1, 4)
            for layout in LAYOUTS
            for verb in VERBS
            if (layout, verb) not in REFUSED
        ),
    ],
)
def test_a_call_that_is_cancelled_leaves_the_table_whole(layout: str, verb: str, step: int, threads: int) -> None:
    lake = Lake(layout, threads)
    table = lake.open()
    before = lake.rows(table)
    VERBS[verb](lake.open())
    calls, after = lake.calls, lake.rows(table)
    stopped = 0
    for number in range(1, calls + 1, step):
        table = lake.open()
        lake.stop_at = number
        try:
            with lake.token:
                VERBS[verb](table)
        except paimon.Cancelled:
            stopped += 1
            assert lake.rows(table) == before, number
            assert lake.reopen().options.get("bucket") == LAYOUTS[layout][1].get("bucket"), number
            left = lake.memory.contents.keys() ^ lake.start.keys()  # a rescale puts the option back in a schema
            assert verb == "expire" or [path for path in left if "/schema/" not in path] == [], number
        else:
            assert lake.rows(table) == after, number
        assert not table.maintain.check().faults, number
    assert stopped


CATALOG_VERBS: dict[str, Callable[[paimon.Catalog], object]] = {
    "create table": lambda c: c.create_table("shop.new", "id INT NOT NULL", primary_keys=["id"]),
    "replace table": lambda c: c.create_table("shop.t", "id INT", replace=True),
    "create filled": lambda c: c.create_filled_table("shop.new", "id INT", lambda t: t.write([{"id": 1}])),
    "replace filled": lambda c: c.create_filled_table("shop.t", "id INT", lambda t: t.write([{"id": 1}]), replace=True),
    "drop table": lambda c: c.drop_table("shop.t"),
    "rename table": lambda c: c.rename_table("shop.t", "shop.new"),
    "clone": lambda c: c.clone_table("shop.t", "shop.new"),
    "repair": lambda c: c.repair_table("shop.t"),
    "create database": lambda c: c.create_database("new"),
    "drop database": lambda c: c.drop_database("shop", cascade=True),
    "alter": lambda c: c.table("shop.t").alter("ADD COLUMN b INT"),
    "tag": lambda c: c.table("shop.t").tags.create("new"),
    "replace tag": lambda c: c.table("shop.t").tags.replace("old", 2),
    "rename tag": lambda c: c.table("shop.t").tags.rename("old", "new"),
    "delete tag": lambda c: c.table("shop.t").tags.delete("old"),
    "branch": lambda c: c.table("shop.t").branches.create("new", tag="old"),
    "rename branch": lambda c: c.table("shop.t").branches.rename("b", "new"),
    "delete branch": lambda c: c.table("shop.t").branches.delete("b"),
    "fast forward": lambda c: c.table("shop.t").branches.fast_forward("b"),
    "reset consumer": lambda c: c.table("shop.t").consumers.reset("new", 1),
    "delete consumer": lambda c: c.table("shop.t").consumers.delete("old"),
    "clear consumers": lambda c: c.table("shop.t").consumers.clear(),
    "roll back": lambda c: c.table("shop.t").maintain.rollback_to(1),
}
CATALOGS_BY_DAY = {"create table", "tag", "branch"}


@pytest.mark.parametrize("has_directories", [False, True])
@pytest.mark.parametrize(
    "verb", [pytest.param(v, marks=[] if v in CATALOGS_BY_DAY else pytest.mark.nightly) for v in CATALOG_VERBS]
)
def test_a_change_of_metadata_is_stopped_before_it_or_done(verb: str, has_directories: bool) -> None:
    """A call that raises has changed nothing; one that returns has changed all."""
    lake = Lake("append", has_directories=has_directories)
    if "replace" in verb and "tag" not in verb and not has_directories:
        return
    table = lake.open()
    table.tags.create("old", 1)
    table.branches.create("b", tag="old")
    table.consumers.reset("old", 1)
    lake.start = dict(lake.memory.contents)

    def run(stop_at: int) -> tuple[set[str], bool]:
        """Return the names of all files, without those drawn at random, and whether the call returned."""
        lake.open()
        catalog = make_catalog(make_engine(lake.files, executor=lake.executor), "/lake")
        lake.calls, lake.stop_at = 0, stop_at
        if stop_at == 0:
            lake.token.cancel()
        try:
            with lake.token:
                CATALOG_VERBS[verb](catalog)
        except paimon.Cancelled:
            # a clone keeps the copies, and the next call does not copy them again
            return {path for path in lake.memory.contents if verb != "clone" or "/new/bucket-" not in path}, False
        return {re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "*", path) for path in lake.memory.contents}, True

    after, _ = run(-1)
    calls, stopped = lake.calls, 0
    for number in range(calls + 1):
        files, is_done = run(number)
        stopped += not is_done
        assert files == (after if is_done else set(lake.start)), number
    assert stopped


@pytest.mark.parametrize("metastore", ["filesystem", "jdbc"])
def test_calls_of_a_catalog_are_stopped(tmp_path: Path, metastore: str) -> None:
    catalog = paimon.connect(tmp_path, metastore=metastore)
    catalog.create_database("shop")
    for call in (catalog.databases, lambda: catalog.create_database("new"), lambda: catalog.tables("shop")):
        with pytest.raises(paimon.DeadlineExceeded), paimon.deadline(0):
            call()
    assert catalog.databases() == ["shop"]


def _at_first_snapshot(lake: Lake, monkeypatch: pytest.MonkeyPatch, instead: Callable[[str, bytes], object]) -> None:
    """Cancel the token when a snapshot is put, and call a function instead; None lets the put go on."""
    put = lake.memory.put_if_absent

    def put_or_stop(path: str, data: bytes) -> object:
        found = None
        if "/snapshot/snapshot-" in path:
            lake.token.cancel()
            found = instead(path, data)
        return put(path, data) if found is None else found

    monkeypatch.setattr(lake.memory, "put_if_absent", put_or_stop)


def test_a_stop_hides_no_unknown_outcome_whose_files_must_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("append")
    table, late = lake.open(), {}

    def lose_the_reply(path: str, data: bytes) -> PutOutcome:
        late[path] = data
        return PutOutcome.UNKNOWN

    _at_first_snapshot(lake, monkeypatch, lose_the_reply)
    with pytest.raises(paimon.CommitUncertain), lake.token:
        table.write([{"id": 9, "a": 9}])
    lake.memory.contents.update(late)  # the put arrives after the call
    assert len(lake.rows(lake.reopen())) == 5


def test_a_stop_between_two_attempts_leaves_no_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("append")
    table, other, files, calls = lake.open(), lake.reopen(), set[str](), count()

    def be_first(path: str, data: bytes) -> None:
        if next(calls):
            return
        before = set(lake.memory.contents)
        other.write([{"id": 8, "a": 8}])
        files.update(lake.memory.contents.keys() - before)

    _at_first_snapshot(lake, monkeypatch, be_first)
    with pytest.raises(paimon.Cancelled), lake.token:
        table.write([{"id": 9, "a": 9}])
    assert lake.memory.contents.keys() == lake.start.keys() | files


def test_a_stop_in_a_callback_fails_no_published_write() -> None:
    lake = Lake("append")
    table = lake.open()

    def read_after_the_stop(event: object) -> None:
        lake.token.cancel()
        assert table.scan().count() == 5

    with lake.token:
        assert table.with_callbacks({"read": read_after_the_stop}).write([{"id": 9, "a": 9}]).snapshot_ids == (3,)


def test_a_deadline_holds_while_the_error_of_an_earlier_one_is_handled() -> None:
    table = Lake("append").open()
    try:
        with paimon.deadline(0):
            table.scan().to_arrow()
    except paimon.DeadlineExceeded:
        with pytest.raises(paimon.DeadlineExceeded), paimon.deadline(0):
            table.scan().to_arrow()


def test_a_rename_that_began_to_copy_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("append")
    catalog = make_catalog(make_engine(lake.files, executor=lake.executor), "/lake")
    create = lake.memory.create

    def stop_and_create(path: str) -> object:
        lake.token.cancel()
        return create(path)

    monkeypatch.setattr(lake.memory, "create", stop_and_create)
    with lake.token:
        catalog.rename_table("shop.t", "shop.moved")
    assert lake.token.is_stopped() and catalog.list_tables("shop") == ["moved"]


@pytest.mark.parametrize("seconds", [0, 1e9])
def test_a_deadline_is_an_error_of_the_library_at_the_end_of_the_block(seconds: float) -> None:
    table = Lake("append").open()
    if seconds:
        with paimon.deadline(seconds):
            assert table.scan().count() == 4
        return
    with pytest.raises(paimon.DeadlineExceeded, match="longer than its deadline of 0 s") as caught, paimon.deadline(0):
        try:
            table.scan().to_arrow()
        except Exception as error:  # a service that goes on after an error must not go on here
            pytest.fail(f"caught {error}")
    assert isinstance(caught.value, paimon.Cancelled) and isinstance(caught.value, paimon.PaimonError)
    assert caught.value.seconds == 0
    assert table.scan().count() == 4  # the token ends with its block


@pytest.mark.parametrize("seconds", [-1, "1", float("nan")])
def test_a_deadline_that_is_no_time_is_refused(seconds: object) -> None:
    with pytest.raises(paimon.InvalidRequest, match="is not a time"):
        paimon.deadline(seconds)  # type: ignore[arg-type]


def test_the_outer_token_stops_through_an_inner_one() -> None:
    table, outer = Lake("append").open(), paimon.CancelToken()
    outer.cancel()
    with pytest.raises(paimon.Cancelled), outer:
        try:
            with paimon.deadline(1e9):
                table.scan().to_arrow()
        except paimon.PaimonError:
            pytest.fail("the inner block is not the one that is stopped")


def test_threads_of_an_executor_inherit_the_token_and_cleaning_up_is_not_stopped() -> None:
    executor, token, cleaned = ThreadExecutor(2), paimon.CancelToken(), []

    def work(number: int) -> int:
        if number == 1:
            token.cancel()
        check_stop()
        return number

    def clean(number: int) -> None:
        check_stop()
        cleaned.append(number)

    with pytest.raises(paimon.Cancelled), token:
        try:
            list(executor.map(work, range(5)))
        finally:
            list(executor.map(clean, range(3)))
    assert sorted(cleaned) == [0, 1, 2]


def test_a_shielded_block_is_not_stopped() -> None:
    token = paimon.CancelToken()
    token.cancel()
    with pytest.raises(paimon.Cancelled), token:
        with shielded():
            check_stop()
        check_stop()


def test_waits_of_followers_and_retries_end() -> None:
    table = Lake("append").open()
    token, seen = paimon.CancelToken(), threading.Event()

    def follow() -> str:
        try:
            with token:
                for _ in table.follow():
                    seen.set()
        except paimon.Cancelled:
            return "cancelled"
        return "ended"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(follow()))
    thread.start()
    assert seen.wait(60)
    token.cancel()
    thread.join(60)
    assert results == ["cancelled"]


def test_a_query_of_sql_is_stopped_while_it_computes() -> None:
    catalog = paimon.connect("memory://cancelled-sql")
    catalog.create_database("shop")
    catalog.create_table("shop.t", "id BIGINT").write([{"id": n} for n in range(1000)])
    sql = "SELECT count(*) FROM shop.t a, shop.t b, shop.t c, shop.t d WHERE a.id + b.id + c.id + d.id = 7"
    started = time.monotonic()
    with pytest.raises(paimon.DeadlineExceeded), paimon.deadline(0.2):
        print(catalog.sql(sql).to_arrow())
    assert time.monotonic() - started < 120  # the query itself takes hours
    assert catalog.sql("SELECT count(*) AS n FROM shop.t").to_arrow().to_pylist() == [{"n": 1000}]


def test_asyncio_cancels_a_call_through_a_token() -> None:
    table, begun, ended = Lake("append").open(), threading.Event(), []

    def wait_for_the_stop() -> None:
        begun.set()
        try:
            while True:
                table.scan().to_arrow()
        finally:
            ended.append(True)

    async def main() -> None:
        assert (await paimon.run_async(table.scan().to_arrow)).num_rows == 4
        task = asyncio.create_task(paimon.run_async(wait_for_the_stop))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]  # nothing goes on behind the caller
        with pytest.raises(paimon.DeadlineExceeded), paimon.deadline(0):
            await paimon.run_async(table.scan().to_arrow)
        with pytest.raises(paimon.InvalidRequest):
            await paimon.run_async(table.delete, where="nothing = 1")

    asyncio.run(main())


def test_a_task_that_is_cancelled_again_waits_for_the_end_of_its_call() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def run() -> None:
        begun.set()
        may_end.wait()
        ended.append(True)

    async def main() -> None:
        task = asyncio.create_task(paimon.run_async(run))
        await asyncio.to_thread(begun.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]
        with pytest.raises(paimon.InvalidRequest, match="iterate_async"):
            await asyncio.wait_for(paimon.run_async(next, iter(())), 60)

    asyncio.run(main())


def test_asyncio_iterates_over_batches_and_closes_what_it_leaves() -> None:
    table = Lake("append").open()
    following = table.follow()

    async def main() -> list[int]:
        found = [batch.num_rows async for batch in paimon.iterate_async(table.scan().to_batches())]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                async for batch in paimon.iterate_async(following):  # waits for a snapshot that does not come
                    found.append(batch.num_rows)
        return found

    assert sum(asyncio.run(main())) == 8
    assert list(following) == []


def test_the_end_of_a_catalog_releases_what_its_engine_caches() -> None:
    with paimon.connect("memory://closed") as catalog:
        catalog.create_database("shop")
        table = catalog.create_table("shop.t", "id INT")
        table.write([{"id": 1}])
        catalog.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM shop.t")
        assert table.scan().count() == 1 and catalog.engine.cache.paths()
    assert catalog.engine.cache.paths() == []
    assert table.scan().count() == 1 and catalog.databases() == ["shop"]
    with pytest.raises(paimon.PaimonError):
        catalog.sql("SELECT * FROM v")


def test_a_token_serves_several_threads_and_tasks_at_once() -> None:
    token, entered = paimon.CancelToken(), threading.Barrier(3)

    def work() -> str:
        try:
            with token, token:
                entered.wait(60)
                while True:
                    check_stop()
        except paimon.Cancelled:
            return "cancelled"

    async def main() -> list[str]:
        calls = [asyncio.to_thread(work) for _ in range(2)]
        gathered = asyncio.gather(*calls)
        await asyncio.to_thread(entered.wait, 60)
        token.cancel()
        return await gathered

    assert asyncio.run(main()) == ["cancelled", "cancelled"]
    check_stop()


def test_threads_share_a_table() -> None:
    table, entered = Lake("key").open(), threading.Barrier(4)

    def work(number: int) -> int:
        entered.wait(60)
        table.write([{"id": 100 + number, "a": number}])
        return table.scan(where=f"id = {100 + number}").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [1] * 4
    assert table.scan().count() == 8


def test_stopped_is_no_exception_that_code_takes_for_a_fault() -> None:
    assert not issubclass(Stopped, Exception)


class TestStoppableFiles(FileIOContract):
    long_list = 30

    def make_files(self):
        return stoppable_files(MemoryFiles()), "/root"
