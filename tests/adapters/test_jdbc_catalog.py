"""The JDBC catalog, in SQLite and in PostgreSQL: Java's layout, the lock, storages that have no compare-and-swap."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
import sqlalchemy as sa
from fsspec.implementations.local import LocalFileSystem

import paimon
from paimon.adapters.catalogs.database import LOCKS, PROPERTIES, TABLE_PROPERTIES, TABLES, Database
from paimon.adapters.catalogs.locking import CatalogLock, LockedFiles
from paimon.catalog import Catalog
from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, NotFound, PaimonError, StorageError
from paimon.domain.schema.changes import RemoveOption, SetOption
from paimon.ports.files import FileStatus, PutOutcome
from paimon.testing.memory_files import MemoryFiles

SERVER = shutil.which("initdb") or next(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A server of its own; it does not run as root."""
    home = tempfile.mkdtemp(prefix="pg")
    user = "nobody" if os.getuid() == 0 else None
    if user:
        shutil.chown(home, user)
    bin_dir = Path(str(SERVER)).parent
    data = f"{home}/data"

    def run(*command: str) -> None:
        subprocess.run(command, user=user, check=True, capture_output=True, cwd=home, timeout=120)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run(str(bin_dir / "initdb"), "-D", data, "-U", "lake", "-A", "trust", "-E", "UTF8", "--no-sync")
    said = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off"
    run(str(bin_dir / "pg_ctl"), "-D", data, "-w", "-o", said, "-l", f"{home}/log", "start")
    yield f"postgresql://lake@127.0.0.1:{port}/postgres"
    run(str(bin_dir / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(home, ignore_errors=True)


KINDS = ["sqlite", *(["postgres"] if SERVER else [])]


@pytest.fixture(params=KINDS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "sqlite":
        return paimon.connect(tmp_path / "lake", metastore="jdbc")
    uri = "jdbc:" + request.getfixturevalue("postgres")
    return paimon.connect(tmp_path / "lake", metastore="jdbc", uri=uri, catalog_key=tmp_path.name)


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


def properties_kept(catalog: Catalog) -> dict[str, str]:
    found = sa.select(TABLE_PROPERTIES.c.property_key, TABLE_PROPERTIES.c.property_value)
    with catalog.store.database.transaction() as connection:
        rows = connection.execute(found.where(TABLE_PROPERTIES.c.catalog_key == catalog.store.catalog_key))
        return dict(map(tuple, rows))


def test_an_altered_table_has_its_options_beside_it(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT NOT NULL", primary_keys=["a"], options={"bucket": "2"})
    keys = {"bucket-key": "a", "primary-key": "a"}
    assert properties_kept(catalog) == {"bucket": "2", **keys}
    table = table.alter(SetOption("snapshot.num-retained.max", "20"), SetOption("num-sorted-run.stop-trigger", "9"))
    pickle.loads(pickle.dumps(table)).alter(RemoveOption("num-sorted-run.stop-trigger"))
    now = {"bucket": "2", "snapshot.num-retained.max": "20", **keys}
    assert properties_kept(catalog) == now
    table.branches.create("b")
    branch = catalog.table("d.t$branch_b")
    branch.alter(SetOption("snapshot.num-retained.max", "30"))
    paimon.open_table(table.location).alter(SetOption("snapshot.num-retained.max", "40"))
    assert properties_kept(catalog) == now  # a branch is not the table; who goes past the catalog tells it nothing
    catalog.repair_table("d.t")
    assert properties_kept(catalog) == {**now, "snapshot.num-retained.max": "40"}
    catalog.drop_table("d.t")
    assert properties_kept(catalog) == {}


def test_options_stay_out_of_the_catalog_where_it_is_told_so(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake", metastore="jdbc", sync_all_properties=False)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT", options={"snapshot.num-retained.max": "17"})
    table.alter(SetOption("snapshot.num-retained.max", "20"))
    assert properties_kept(catalog) == {}


def test_a_catalog_travels_without_its_password(tmp_path: Path) -> None:
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
    assert "hush" not in repr(pickle.loads(pickle.dumps(database))) + database.shown


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no metastore 'hive'"):
        paimon.connect(tmp_path, metastore="hive")
    with pytest.raises(InvalidRequest, match='metastore="jdbc"'):
        paimon.connect(tmp_path, uri="sqlite://")
    with pytest.raises(InvalidRequest, match="needs a database"):
        paimon.connect("memory://lake", metastore="jdbc")
    with pytest.raises(InvalidRequest, match="no database URL"):
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


class Careless(MemoryFiles):
    """A storage that looks and then writes: between the two it takes its time."""

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        time.sleep(0.01)
        self.replace(path, data)
        return PutOutcome.CREATED


def test_the_lock_makes_a_careless_storage_safe(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    uri = request.getfixturevalue("postgres") if SERVER else f"sqlite:///{tmp_path}/locks.sqlite"
    files = LockedFiles(Careless(), CatalogLock(Database(uri)), "/lake", "key")
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


def test_a_lock_of_the_dead_is_taken_when_its_time_is_over(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")
    lock = CatalogLock(database, timeout_millis=1_000, longest_wait_millis=50)
    with database.transaction() as connection:
        connection.execute(sa.insert(LOCKS).values(lock_id="key.d.t", expire_time_seconds=3600))
    with pytest.raises(StorageError, match=r"key\.d\.t"), lock.held("key.d.t"):
        pass
    with database.transaction() as connection:
        connection.execute(sa.update(LOCKS).values(expire_time_seconds=1, acquired_at=sa.text("'2020-01-01 00:00:00'")))
    with lock.held("key.d.t") as held:
        pass
    assert held.to_the_end


def test_what_was_created_under_a_lock_that_was_lost_is_unknown(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")

    class Slow(MemoryFiles):
        def status(self, path: str) -> FileStatus | None:
            return super().status(path)

        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            with database.transaction() as connection:
                connection.execute(sa.delete(LOCKS))  # another one found it too old
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
    context = multiprocessing.get_context("spawn")
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
        held = connection.execute(sa.select(LOCKS.c.lock_id).where(LOCKS.c.lock_id.like("%.d.t"))).all()
    assert held == []


def test_errors_are_ours(catalog: Catalog) -> None:
    for call in (
        lambda: catalog.store.drop_database("nope"),
        lambda: catalog.store.drop_table("d", "nope"),
        lambda: catalog.store.rename_table("d", "nope", "d", "x"),
    ):
        with pytest.raises(PaimonError, match="does not exist"):
            call()


def test_a_table_whose_making_was_cut_short_is_taken_in(catalog: Catalog) -> None:
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
    catalog.create_table("d.t", "a INT")  # nothing of the first is in its way


def test_a_lock_whose_time_is_over_is_left_to_whoever_took_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")
    lock = CatalogLock(database, timeout_millis=200)
    with lock.held("key.d.t") as held:
        time.sleep(0.3)
    assert not held.to_the_end
    with database.transaction() as connection:
        assert connection.execute(sa.select(LOCKS.c.expire_time_seconds)).all() == [(1,)]  # it may be another's


def test_a_database_that_fails_after_the_put_leaves_it_unknown(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/locks.sqlite")

    class Last(MemoryFiles):
        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            with database.transaction() as connection:
                connection.execute(sa.text("DROP TABLE paimon_distributed_locks"))
            return super().put_if_absent(path, data)

    files = LockedFiles(Last(), CatalogLock(database), "/lake", "key")
    assert files.put_if_absent("/lake/d.db/t/x", b"1") is PutOutcome.UNKNOWN


class CarelessStore(LocalFileSystem):  # type: ignore[misc]
    """A file system of fsspec that has no create-if-absent: it looks, takes its time, and overwrites."""

    protocol = "careless"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        time.sleep(60 if os.environ.get("DOOMED") and "/snapshot-" in path else 0.005)
        super().pipe_file(path, value)


def careless(warehouse: str, uri: str) -> Catalog:
    fsspec.register_implementation("careless", CarelessStore, clobber=True)
    options = {"metastore": "jdbc", "uri": uri, "lock-acquire-timeout": "4 s", "catalog-key": "careless"}
    return paimon.connect(warehouse, storage={"auto_mkdir": True}, **options)


def _append_carelessly(warehouse: str, uri: str, writer: int, commits: int) -> None:
    if writer == 0:
        os.environ["DOOMED"] = "yes"
    _append(careless(warehouse, uri), writer, commits)


def test_processes_append_to_a_careless_storage_after_one_died_with_the_lock(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri = request.getfixturevalue("postgres") if SERVER else f"sqlite:///{tmp_path}/locks.sqlite"
    warehouse = f"careless://{tmp_path}/lake"
    catalog = careless(warehouse, uri)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "writer INT, i INT")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_carelessly, args=(warehouse, uri, w, 4)) for w in range(4)]
    workers[0].start()
    store: Any = catalog.store
    held = sa.select(sa.func.count()).select_from(LOCKS).where(LOCKS.c.lock_id.like("careless.%"))
    for _ in range(600):
        with store.database.transaction() as connection:
            if connection.scalar(held):
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
