"""The JDBC catalog in SQLite and PostgreSQL: the layout of Java, the lock, and storages without put-if-absent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
import sqlalchemy as sa
from fsspec.implementations.local import LocalFileSystem
from support.case_lists import mark_nightly

import paimon
from paimon.adapters.catalogs import locking
from paimon.adapters.catalogs.jdbc import JdbcCatalogStore
from paimon.adapters.catalogs.locking import (
    LOCKS,
    METADATA,
    PROPERTIES,
    TABLE_PROPERTIES,
    TABLES,
    CatalogLock,
    Database,
    LockedFiles,
)
from paimon.adapters.files.local import LocalFiles
from paimon.catalog import Catalog
from paimon.domain.errors import (
    AlreadyExists,
    CorruptTable,
    InvalidRequest,
    NotFound,
    PaimonError,
    StorageError,
    Unsupported,
)
from paimon.domain.schema.changes import RemoveOption, SetOption
from paimon.ports.catalogs import CatalogStore
from paimon.ports.files import FileIO, FileStatus, PutOutcome
from paimon.testing.contracts import CatalogStoreContract
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.stress_test import get_process_context


@pytest.fixture(params=["sqlite", "postgres"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "sqlite":
        return paimon.connect(tmp_path / "lake", metastore="jdbc")
    uri = "jdbc:" + request.getfixturevalue("postgres")
    return paimon.connect(tmp_path / "lake", metastore="jdbc", uri=uri, catalog_key=tmp_path.name)


class TestPostgres(CatalogStoreContract):
    @pytest.fixture(autouse=True)
    def _use_server(self, postgres: str, tmp_path: Path) -> None:
        self.uri = "jdbc:" + postgres
        self.warehouse = str(tmp_path / "lake")

    def make_store(self) -> tuple[CatalogStore, FileIO]:
        files = LocalFiles()
        return JdbcCatalogStore(files, self.warehouse, Database(self.uri), self.warehouse), files


def test_databases_and_tables(catalog: Catalog) -> None:
    assert catalog.databases() == []
    catalog.create_database("shop")
    with pytest.raises(AlreadyExists):
        catalog.create_database("shop")
    keyed = {"primary_keys": ["id"], "options": {"bucket": "1"}}
    table = catalog.create_table("shop.orders", "id BIGINT NOT NULL, n INT", **keyed)
    with pytest.raises(AlreadyExists):
        catalog.create_table("shop.orders", "id BIGINT")
    table.write({"id": [1, 2], "n": [10, 20]})
    assert catalog.tables("shop") == ["orders"]
    catalog.create_database("old")
    catalog.rename_table("shop.orders", "old.orders_2025")
    assert (catalog.tables("shop"), catalog.tables("old")) == ([], ["orders_2025"])
    assert catalog.table("old.orders_2025").scan().count() == 2
    with pytest.raises(NotFound):
        catalog.table("shop.orders")
    catalog.create_table("shop.orders", "id BIGINT")
    with pytest.raises(AlreadyExists):
        catalog.rename_table("old.orders_2025", "shop.orders")
    assert catalog.table("old.orders_2025").scan().count() == 2
    catalog.drop_table("old.orders_2025")
    assert catalog.tables("old") == []
    catalog.drop_database("shop", cascade=True)
    assert catalog.databases() == ["old"]
    assert not Path(catalog.warehouse, "shop.db").exists()


def read_stored_properties(catalog: Catalog) -> dict[str, str]:
    found = sa.select(TABLE_PROPERTIES.c.property_key, TABLE_PROPERTIES.c.property_value)
    with catalog.store.database.transaction() as connection:
        rows = connection.execute(found.where(TABLE_PROPERTIES.c.catalog_key == catalog.store.catalog_key))
        return dict(map(tuple, rows))


def test_an_altered_table_has_its_options_in_the_catalog(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT NOT NULL", primary_keys=["a"], options={"bucket": "2"})
    keys = {"bucket-key": "a", "primary-key": "a"}
    assert read_stored_properties(catalog) == {"bucket": "2", **keys}
    table = table.alter(SetOption("snapshot.num-retained.max", "20"), SetOption("num-sorted-run.stop-trigger", "9"))
    pickle.loads(pickle.dumps(table)).alter(RemoveOption("num-sorted-run.stop-trigger"))
    now = {"bucket": "2", "snapshot.num-retained.max": "20", **keys}
    assert read_stored_properties(catalog) == now
    table.branches.create("b")
    branch = catalog.table("d.t$branch_b")
    branch.alter(SetOption("snapshot.num-retained.max", "30"))
    paimon.open_table(table.location).alter(SetOption("snapshot.num-retained.max", "40"))
    assert (
        read_stored_properties(catalog) == now
    )  # A branch is not the table. An alteration without the catalog does not change the catalog.
    catalog.repair_table("d.t")
    assert read_stored_properties(catalog) == {**now, "snapshot.num-retained.max": "40"}
    catalog.drop_table("d.t")
    assert read_stored_properties(catalog) == {}


def test_options_are_not_copied_to_the_catalog_if_configured(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake", metastore="jdbc", sync_all_properties=False)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT", options={"snapshot.num-retained.max": "17"})
    table.alter(SetOption("snapshot.num-retained.max", "20"))
    assert read_stored_properties(catalog) == {}


def test_a_pickled_catalog_has_no_password(tmp_path: Path) -> None:
    options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/c.sqlite", "jdbc.password": "hush-hush"}
    catalog = paimon.connect(tmp_path / "lake", **options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT")
    for value in (catalog, table):
        assert b"hush-hush" not in pickle.dumps(value)
        assert "hush-hush" not in repr(value) + repr(table.engine)
    assert pickle.loads(pickle.dumps(catalog)).tables("d") == ["t"]
    assert pickle.loads(pickle.dumps(table)).write({"a": [1]}).snapshot_ids == (1,)
    database = Database("postgresql://me:hush-hush@host/db", password="hush-hush")
    assert "hush" not in repr(pickle.loads(pickle.dumps(database))) + database.redacted_uri


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="metastore 'hive'"):
        paimon.connect(tmp_path, metastore="hive")
    with pytest.raises(InvalidRequest, match="Metastore 'hiv' is not known"):
        paimon.connect(tmp_path, metastore="hiv")
    with pytest.raises(InvalidRequest, match='metastore="jdbc"'):
        paimon.connect(tmp_path, uri="sqlite://")
    with pytest.raises(InvalidRequest, match="needs the option 'uri'"):
        paimon.connect("memory://lake", metastore="jdbc")
    with pytest.raises(InvalidRequest, match="must be a database URL"):
        paimon.connect(tmp_path, metastore="jdbc", uri="nonsense").databases()
    with pytest.raises(StorageError) as caught:
        paimon.connect(tmp_path, metastore="jdbc", uri="postgresql://me:hush-hush@127.0.0.1:9/db").databases()
    assert "hush-hush" not in str(caught.value)


def test_a_location_outside_the_warehouse_is_refused(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake", metastore="jdbc")
    catalog.create_database("d")
    engine = sa.create_engine(f"sqlite:///{tmp_path}/lake/paimon-catalog.sqlite")
    with engine.begin() as connection:
        of_location = PROPERTIES.c.property_key == "location"
        connection.execute(sa.update(PROPERTIES).where(of_location).values(property_value="/etc"))
    with pytest.raises(CorruptTable, match="outside"):
        catalog.create_table("d.t", "a INT")


class OverwritingFiles(MemoryFiles):
    """A storage without put-if-absent: it checks, waits, then writes."""

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        time.sleep(0.01)
        self.replace(path, data)
        return PutOutcome.CREATED


def test_the_lock_makes_an_overwriting_storage_safe(postgres: str) -> None:
    files = LockedFiles(OverwritingFiles(), CatalogLock(Database(postgres)), "/lake", "key")
    won: list[int] = []

    def race(number: int) -> None:
        for i in range(5):
            if files.put_if_absent(f"/lake/d.db/t/snapshot/snapshot-{i}", str(number).encode()) is PutOutcome.CREATED:
                won.append(i)

    racers = [threading.Thread(target=race, args=(n,)) for n in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(won) == list(range(5))


def test_an_expired_lock_of_a_dead_process_is_acquired_by_another(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")
    lock = CatalogLock(database, timeout_millis=1_000, longest_wait_millis=50)
    with database.transaction() as connection:
        connection.execute(sa.insert(LOCKS).values(lock_id="key.d.t", expire_time_seconds=3600))
    with pytest.raises(StorageError, match=r"key\.d\.t"), lock.hold_lock("key.d.t"):
        pass
    with database.transaction() as connection:
        connection.execute(sa.update(LOCKS).values(expire_time_seconds=1, acquired_at=sa.text("'2020-01-01 00:00:00'")))
    with lock.hold_lock("key.d.t") as commit_lock:
        pass
    assert commit_lock.was_never_lost


@pytest.mark.parametrize(
    ("options", "longest"), [({}, 0.64), ({"lock-check-max-sleep": "50 ms"}, 0.05), ({"lock-check-max-sleep": 0}, 0)]
)
def test_an_option_limits_the_pauses_between_attempts_to_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], longest: float
) -> None:
    catalog = paimon.connect(tmp_path, metastore="jdbc", **options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT")
    database = Database(f"sqlite:///{tmp_path}/paimon-catalog.sqlite")
    with database.transaction() as connection:
        connection.execute(sa.insert(LOCKS).values(lock_id="jdbc.d.t", expire_time_seconds=3600))
    pauses: list[float] = []
    sleep, writer = time.sleep, threading.get_ident()

    def count_pause(seconds: float) -> None:
        if threading.get_ident() != writer:  # threads of other tests, which may poll
            sleep(seconds)
            return
        pauses.append(seconds)
        if len(pauses) == 6:
            with database.transaction() as connection:
                connection.execute(sa.delete(LOCKS))

    monkeypatch.setattr(time, "sleep", count_pause)
    table.write([{"k": 1}])
    assert len(pauses) == 6 and pauses[0] == 0.02
    assert pauses[-1] == pytest.approx(longest)


def test_a_creation_under_a_lost_lock_has_an_unknown_outcome(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")

    class Slow(MemoryFiles):
        def status(self, path: str) -> FileStatus | None:
            return super().status(path)

        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            with database.transaction() as connection:
                connection.execute(sa.delete(LOCKS))  # another process considered it expired
            return super().put_if_absent(path, data)

    files = LockedFiles(Slow(), CatalogLock(database), "/lake", "key")
    assert files.put_if_absent("/lake/d.db/t/x", b"1") is PutOutcome.UNKNOWN
    assert files.put_if_absent("/lake/d.db/t/x", b"2") is PutOutcome.EXISTS


def _append(catalog: Catalog, writer: int, commits: int) -> None:
    table = catalog.table("d.t")
    for i in range(commits):
        table.write(pa.table({"writer": pa.array([writer], pa.int32()), "i": pa.array([i], pa.int32())}))


def test_processes_append(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "writer INT, i INT")
    context = get_process_context()
    workers = [context.Process(target=_append, args=(catalog, w, 5)) for w in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    rows = table.scan().to_arrow()
    read = sorted(zip(rows["writer"].to_pylist(), rows["i"].to_pylist(), strict=True))
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert read == [(w, i) for w in range(3) for i in range(5)]
    with catalog.store.database.transaction() as connection:
        lock_ids = connection.execute(sa.select(LOCKS.c.lock_id).where(LOCKS.c.lock_id.like("%.d.t"))).all()
    assert lock_ids == []


def test_processes_that_connect_first_at_the_same_time_create_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt loses another table to another process, and the last one finds nothing missing."""
    uri = f"sqlite:///{tmp_path}/catalog.sqlite"
    other, create_all = sa.create_engine(uri), METADATA.create_all
    others = iter(METADATA.sorted_tables)

    def lose_one(engine: sa.Engine) -> None:
        table = next(others, None)
        if table is None:
            create_all(engine)
            return
        table.create(other)
        with engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(table))

    monkeypatch.setattr(METADATA, "create_all", lose_one)
    with Database(uri).transaction() as connection:
        assert set(sa.inspect(connection).get_table_names()) == set(METADATA.tables)


def test_tables_that_cannot_be_created_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []

    def refuse(engine: sa.Engine) -> None:
        attempts.append(1)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE nonsense"))

    monkeypatch.setattr(METADATA, "create_all", refuse)
    with pytest.raises(StorageError, match="nonsense"), Database(f"sqlite:///{tmp_path}/c.sqlite").transaction():
        pass
    assert len(attempts) == 2


def test_errors_are_ours(catalog: Catalog) -> None:
    for call in (
        lambda: catalog.store.drop_database("nope"),
        lambda: catalog.store.drop_table("d", "nope"),
        lambda: catalog.store.rename_table("d", "nope", "d", "x"),
    ):
        with pytest.raises(PaimonError, match="does not exist"):
            call()


def test_a_half_created_table_is_registered(catalog: Catalog) -> None:
    catalog.create_database("d")
    made = catalog.create_table("d.t", "a INT", options={"snapshot.num-retained.min": "3"})
    made.write({"a": [1]})
    with catalog.store.database.transaction() as connection:
        for table in (TABLES, TABLE_PROPERTIES):
            mine = sa.and_(table.c.catalog_key == catalog.store.catalog_key, table.c.database_name == "d")
            connection.execute(sa.delete(table).where(mine))
    with pytest.raises(NotFound):
        catalog.table("d.t")
    with pytest.raises(AlreadyExists, match="repair_table"):
        catalog.create_table("d.t", "a INT")
    assert catalog.repair_table("d.t").scan().count() == 1
    assert catalog.tables("d") == ["t"]
    with pytest.raises(NotFound):
        catalog.repair_table("d.nothing")
    catalog.drop_table("d.t")
    catalog.create_table("d.t", "a INT")  # no row of the dropped table prevents it


def test_an_expired_lock_is_not_released_by_its_first_owner(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")
    lock = CatalogLock(database, timeout_millis=200)
    with lock.hold_lock("key.d.t") as commit_lock:
        time.sleep(0.3)
    assert not commit_lock.was_never_lost
    with database.transaction() as connection:
        assert connection.execute(sa.select(LOCKS.c.expire_time_seconds)).all() == [(1,)]  # another process may own it


def test_a_database_that_fails_after_the_put_leaves_it_unknown(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")

    class Last(MemoryFiles):
        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            with database.transaction() as connection:
                connection.execute(sa.text("DROP TABLE paimon_distributed_locks"))
            return super().put_if_absent(path, data)

    files = LockedFiles(Last(), CatalogLock(database), "/lake", "key")
    assert files.put_if_absent("/lake/d.db/t/x", b"1") is PutOutcome.UNKNOWN


class OverwritingStore(LocalFileSystem):  # type: ignore[misc]
    """An fsspec file system without create-if-absent: it checks, waits, then overwrites."""

    protocol = "overwriting"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        time.sleep(60 if os.environ.get("DOOMED") and "/snapshot-" in path else 0.005)
        super().pipe_file(path, value)


def connect_without_conditional_puts(warehouse: str, uri: str) -> Catalog:
    fsspec.register_implementation("overwriting", OverwritingStore, clobber=True)
    options = {"metastore": "jdbc", "uri": uri, "lock-acquire-timeout": "4 s", "catalog-key": "overwriting"}
    return paimon.connect(warehouse, storage={"auto_mkdir": True}, **options)


def _append_without_conditional_puts(warehouse: str, uri: str, writer: int, commits: int) -> None:
    if writer == 0:
        os.environ["DOOMED"] = "yes"
    _append(connect_without_conditional_puts(warehouse, uri), writer, commits)


@pytest.mark.slow("four processes, which load the library")
@pytest.mark.parametrize("kind", mark_nightly(["sqlite", "postgres"], always=["postgres"]))
def test_processes_append_after_a_crash_with_the_lock(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri = request.getfixturevalue("postgres") if kind == "postgres" else f"sqlite:///{tmp_path}/locks.sqlite"
    warehouse = f"overwriting://{tmp_path}/lake"
    catalog = connect_without_conditional_puts(warehouse, uri)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "writer INT, i INT")
    context = get_process_context()
    workers = [context.Process(target=_append_without_conditional_puts, args=(warehouse, uri, w, 4)) for w in range(4)]
    workers[0].start()
    store: Any = catalog.store
    count_locks = sa.select(sa.func.count()).select_from(LOCKS).where(LOCKS.c.lock_id.like("overwriting.%"))
    for _ in range(600):
        with store.database.transaction() as connection:
            if connection.scalar(count_locks):
                break
        time.sleep(0.1)
    workers[0].kill()
    for worker in workers[1:]:
        worker.start()
    for worker in workers:
        worker.join(120)
    rows = table.scan().to_arrow()
    assert [w.exitcode for w in workers] == [-9, 0, 0, 0]
    read = sorted(zip(rows["writer"].to_pylist(), rows["i"].to_pylist(), strict=True))
    assert read == [(w, i) for w in (1, 2, 3) for i in range(4)]


HOLD = """
import sys, time
from paimon.adapters.catalogs.locking import Database
from paimon.adapters.catalogs.locking import CatalogLock

with CatalogLock(Database(sys.argv[1])).hold_lock(sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def hold_in_a_process(uri: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns a lock."""
    command = [sys.executable, "-c", HOLD, uri, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def list_locks(uri: str, name: str) -> list[str]:
    with Database(uri).transaction() as connection:
        found = sa.select(LOCKS.c.lock_id).where(LOCKS.c.lock_id.startswith(name))
        return sorted(connection.scalars(found))


@pytest.mark.parametrize("name", ["key.d.killed", "key.d.with_%#" + "x" * 240])
def test_the_lock_of_a_killed_process_is_released(postgres: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Its timeout is eight minutes. Others wait for it no longer than a lost connection may last."""
    monkeypatch.setattr(locking, "_DEAD_OWNER_WAIT_SECONDS", 0.2)
    lock = CatalogLock(Database(postgres), longest_wait_millis=100)
    with hold_in_a_process(postgres, name) as owner:
        quick = CatalogLock(Database(postgres), timeout_millis=1, longest_wait_millis=100)
        with pytest.raises(StorageError, match="was not released"), quick.hold_lock(name):
            pass  # it lives
        owner.kill()
        with lock.hold_lock(name) as hold:
            assert len(list_locks(postgres, name[:200])) == 2  # the lock, and the row of its owner
    assert hold.was_never_lost
    assert list_locks(postgres, name[:200]) == []


def test_a_lost_connection_makes_the_outcome_unknown(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner still writes while another process takes its lock, as after a restart of the server."""
    monkeypatch.setattr(locking, "_DEAD_OWNER_WAIT_SECONDS", 0.0)
    lock, end = CatalogLock(Database(postgres), longest_wait_millis=50), sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    )  # fmt: skip

    class Cut(MemoryFiles):
        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            with lock.database.transaction() as connection:
                connection.execute(end)
            with lock.hold_lock("key.d.cut") as other:
                pass
            assert other.was_never_lost
            return super().put_if_absent(path, data)

    files = LockedFiles(Cut(), lock, "/lake", "key")
    assert files.put_if_absent("/lake/d.db/cut/x", b"1") is PutOutcome.UNKNOWN


def test_a_lock_of_java_is_not_released_early(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java writes one row. A row that a dead owner of an expired lock left does not make Java's lock a dead one."""
    monkeypatch.setattr(locking, "_DEAD_OWNER_WAIT_SECONDS", 0.0)
    database = Database(postgres)
    for left in ("key.d.java", "key.d.java#5"):
        with database.transaction() as connection:
            connection.execute(sa.insert(LOCKS).values(lock_id=left, expire_time_seconds=3600))
    lock = CatalogLock(database, timeout_millis=500, longest_wait_millis=50)
    with pytest.raises(StorageError, match="was not released"), lock.hold_lock("key.d.java"):
        pass
