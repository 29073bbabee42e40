"""Register sessions: names of tables, options of the warehouse, second registrations and new sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import paimon
import paimon.spark

pytestmark = pytest.mark.spark

DDL = "id BIGINT NOT NULL, note STRING"


@pytest.fixture
def session(spark: SparkSession, catalog: paimon.Catalog) -> Iterator[SparkSession]:
    """A new session with the warehouse of the test."""
    yield paimon.spark.register(spark.newSession(), catalog.warehouse)


@pytest.mark.slow("a new session plans each statement anew")
def test_names_are_paths_in_all_directions(session: SparkSession, catalog: paimon.Catalog) -> None:
    catalog.create_table("db.t", DDL, primary_keys=["id"], options={"bucket": 2})
    catalog.create_table("db.plain", DDL)
    frame = session.createDataFrame([(1, "a"), (2, "b")], DDL.replace(" NOT NULL", ""))
    assert paimon.spark.write(frame, "db.t").rows == 2
    frame.write.format("paimon").mode("append").save("db.plain")
    assert session.read.format("paimon").load("db.plain").count() == 2
    assert paimon.spark.read(session, "db.t", where="id > 1").count() == 1
    assert session.read.format("paimon").load("db.t$snapshots").count() == 1
    assert paimon.spark.compact("db.t", full=True, spark=session).snapshot_ids == (2,)
    assert session.read.format("paimon").option("versionAsOf", 1).load("db.t").count() == 2
    with pytest.raises(PySparkException, match=r"db\.orders"):
        session.read.format("paimon").load("db.orders")
    with pytest.raises(PySparkException, match=r"'snapshott' .* is unknown. Did you mean 'snapshot'"):
        session.read.format("paimon").option("snapshott", 1).load("db.t")
    with pytest.raises(paimon.NotFound, match=r"db\.orders"):
        paimon.spark.read(session, "db.orders")


def test_a_session_is_registered_again_and_on_new_sessions(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write({"id": [1], "note": ["a"]})
    for session in (spark, spark.newSession()):
        for _ in range(2):
            assert paimon.spark.register(session) is session
        assert session.read.format("paimon").load(table.location).count() == 1
    other = paimon.connect(Path(catalog.warehouse).parent / "other")
    other.create_database("db")
    other.create_table("db.t", DDL)
    session = spark.newSession()
    for warehouse, count in ((catalog.warehouse, 1), (other.warehouse, 0), (catalog, 1)):
        paimon.spark.register(session, warehouse)
        paimon.spark.register(session)  # keeps the warehouse
        assert session.read.format("paimon").load("db.t").count() == count


def test_the_lock_of_the_catalog_reaches_committers_by_name(spark: SparkSession, tmp_path: Path) -> None:
    database = tmp_path / "catalog.db"
    options = {"metastore": "jdbc", "uri": f"sqlite:///{database}", "lock_acquire_timeout": "50 ms"}
    catalog = paimon.connect(tmp_path / "lake", **options)
    catalog.create_database("db")
    table = catalog.create_table("db.t", DDL)
    session = paimon.spark.register(spark.newSession(), warehouse=tmp_path / "lake", **options)
    with sqlite3.connect(database) as connection:  # another process holds the lock for an hour
        connection.execute(
            "INSERT OR REPLACE INTO paimon_distributed_locks (lock_id, acquired_at, expire_time_seconds) "
            "VALUES ('jdbc.db.t', datetime('now'), 3600)"
        )
    frame = session.createDataFrame([(1, "a")], DDL.replace(" NOT NULL", ""))
    with pytest.raises(paimon.StorageError, match="lock"):
        paimon.spark.write(frame, "db.t")
    with pytest.raises(PySparkException, match="lock"):  # the path of a table in the warehouse has the catalog, too
        frame.write.format("paimon").mode("append").save(table.location)
    assert table.snapshots() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"storage": {"secret": "s3cr3t"}}, "Option 'secret' of storage is a secret"),
        ({"metastore": "jdbc", "jdbc_password": "s3cr3t"}, "Option 'jdbc_password' of register is a secret"),
        ({"metastor": "jdbc"}, "'metastor' is not known. Did you mean 'metastore'"),
    ],
)
def test_options_that_cannot_be_sent_are_refused(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(paimon.InvalidRequest, match=message) as caught:
        paimon.spark.register(spark.newSession(), tmp_path, **arguments)  # type: ignore[arg-type]
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(paimon.InvalidRequest, match="needs a warehouse"):
        paimon.spark.register(spark, **arguments)  # type: ignore[arg-type]


def test_a_warehouse_that_does_not_exist_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    with pytest.raises(paimon.NotFound, match=r"Warehouse .*nowhere' does not exist"):
        paimon.spark.register(session, tmp_path / "nowhere")
    assert session.conf.get("spark.paimon.warehouse", None) is None


def test_secrets_of_a_catalog_stay_in_this_process(spark: SparkSession, tmp_path: Path) -> None:
    catalog = paimon.connect(f"local://{tmp_path}/lake", storage={"single-writer": True, "secret": "s3cr3t"})
    catalog.create_database("db")
    catalog.create_table("db.t", DDL)
    session = paimon.spark.register(spark.newSession(), catalog)
    frame = session.createDataFrame([(1, "a")], DDL.replace(" NOT NULL", ""))
    assert paimon.spark.write(frame, "db.t").rows == 1  # the option single-writer reaches the committer
    frame.write.format("paimon").mode("append").save("db.t")
    loaded = session.read.format("paimon").load("db.t")
    assert loaded.count() == 2
    settings = dict(session.conf.getAll) if not callable(session.conf.getAll) else session.conf.getAll()
    for text in (str(loaded._jdf.queryExecution().toString()), str(settings)):
        assert "s3cr3t" not in text
    assert b"s3cr3t" not in cloudpickle.dumps(paimon.spark.read(session, "db.t").schema)
