"""CREATE TABLE AS on Spark: a driver that dies at any operation on the storage leaves no half table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from pyspark.sql import SparkSession
from support.case_lists import mark_nightly

import paimon
import paimon.spark
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults

pytestmark = pytest.mark.spark

WRITES = ("put_if_absent", "replace", "create", "close", "delete")
STATEMENTS = {
    "append": "CREATE TABLE d.t AS SELECT id, v FROM d.s",
    "keyed": "CREATE TABLE d.t WITH ('primary-key' = 'id', 'bucket' = '1') AS SELECT id, v FROM d.s",
}
PARTS = 10


def run_statement(spark: SparkSession, home: Path, text: str, plan: Callable[[str, str], Fault | None]) -> None:
    """Run a statement whose driver has a disk with faults; its tasks have none."""
    catalog = paimon.connect(home)
    files = FaultyFiles(LocalFiles(), plan)
    engine = evolve(catalog.engine, files=files, snapshots=PutIfAbsentSnapshotCommit(files))
    paimon.spark.connect(spark, evolve(catalog, engine=engine)).sql(text)


def make_source(home: Path) -> None:
    catalog = paimon.connect(home)
    catalog.create_database("d")
    catalog.create_table("d.s", "id INT NOT NULL, v INT").write({"id": [1, 2], "v": [1, 2]})


@pytest.mark.slow("each death has two statements on Spark")
@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.parametrize("part", mark_nightly(range(PARTS), always=[0]))
def test_a_driver_that_dies_leaves_the_table_whole_or_none(
    spark: SparkSession, tmp_path: Path, kind: str, part: int
) -> None:
    statement, operations = STATEMENTS[kind], list[str]()
    make_source(tmp_path / "none")

    def record(operation: str, path: str) -> None:
        operations.append(operation)

    run_statement(spark, tmp_path / "none", statement, record)
    places = [(n, f) for n, o in enumerate(operations) if o in WRITES for f in (Fault.DIE_BEFORE, Fault.DIE_AFTER)]
    assert len(places) > 20
    for number, fault in places[part::PARTS]:
        home = tmp_path / f"{number}-{fault.name}"
        make_source(home)
        with contextlib.suppress(ProcessDied):
            run_statement(spark, home, statement, plan_numbered_faults({number: fault}))
        catalog = paimon.connect(home)
        if "t" in catalog.tables("d"):
            assert catalog.table("d.t").scan().count() == 2, operations[: number + 1]
        with contextlib.suppress(paimon.AlreadyExists):
            paimon.spark.connect(spark, home).sql(statement)
        table = paimon.connect(home).table("d.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        assert list(table.branches) == []
        assert table.maintain.check(deep=True).is_whole
