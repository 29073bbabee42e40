"""Frames and statements on Spark that read the table that they change lose no change of another user."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.case_lists import mark_products

import paimon
import paimon.spark
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import encode
from paimon.domain.errors import TableReplaced
from paimon.operations.commit import commit as commit_module
from paimon.spark.frame_reads import _find_missing_paths
from paimon.spark.tasks.message_tasks import collect_prepared, run_message_tasks

pytestmark = pytest.mark.spark


def make_table(catalog: paimon.Catalog) -> paimon.Table:
    table = catalog.create_table("db.t", "id BIGINT NOT NULL, v BIGINT", primary_keys=["id"], options={"bucket": 1})
    table.write([{"id": i, "v": 10 * i} for i in (1, 2)])
    table.compact(full=True)
    return table


def read(table: paimon.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def act_before_publish(monkeypatch: pytest.MonkeyPatch, table: paimon.Table) -> None:
    waiting = [lambda: table.with_options({}).write([{"id": 1, "v": 100}])]

    def publish(real: Any, *given: Any) -> Any:
        while waiting:
            waiting.pop()()
        return real(*given)

    for name in ("publish_change", "publish_in_group"):
        monkeypatch.setattr(commit_module, name, partial(publish, getattr(commit_module, name)))


def add_one(source: Any, table: paimon.Table) -> object:
    return (
        paimon.spark.merge(source, table, "target.id = source.id").when_matched_update({"v": "source.v + 1"}).execute()
    )


REFUSED: dict[str, Callable[[SparkSession, paimon.Table], object]] = {
    "merge": lambda spark, t: add_one(paimon.spark.read(spark, t).where("id > 0"), t),
    "overwrite": lambda spark, t: paimon.spark.write(paimon.spark.read(spark, t), t, "overwrite"),
    "upsert": lambda spark, t: paimon.spark.write(paimon.spark.read(spark, t).selectExpr("id", "v + 1 AS v"), t),
}


@pytest.mark.parametrize(("name", "reader"), mark_products(REFUSED, ["spark", "python"], always=["merge", "overwrite"]))
def test_frames_of_an_older_snapshot_are_refused(
    spark: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, name: str, reader: str
) -> None:
    table = make_table(catalog)
    monkeypatch.setattr("paimon.spark.parquet_files._get_reader", lambda session: reader)
    act_before_publish(monkeypatch, table)
    with pytest.raises(paimon.CommitConflict, match="changed rows after snapshot"):
        REFUSED[name](spark, table)
    assert read(table) == [(1, 100), (2, 20)]


READ_AGAIN: dict[str, Callable[[SparkSession, paimon.Catalog, paimon.Table], object]] = {
    "function": lambda spark, c, t: add_one(lambda: paimon.spark.read(spark, t), t),
}
STATEMENTS = [
    "INSERT OVERWRITE db.t SELECT id, v + 1 FROM db.t",
    "INSERT INTO db.t SELECT id, v + 1 FROM db.t",
    "UPDATE db.t SET v = v + 1 WHERE id IN (SELECT id FROM db.t)",
]


@pytest.mark.parametrize("name", READ_AGAIN)
def test_frames_that_are_planned_again_have_the_newest_rows(
    spark: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    table = make_table(catalog)
    act_before_publish(monkeypatch, table)
    READ_AGAIN[name](spark, catalog, table)
    assert read(table) == [(1, 101), (2, 21)]


def test_a_frame_of_an_unknown_snapshot_is_refused(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    loaded = spark.read.format("paimon").load(table.location)
    with pytest.raises(paimon.InvalidRequest, match="their snapshot is not known"):
        add_one(loaded, table)
    old = spark.read.format("paimon").option("snapshot", "1").load(table.location)
    add_one(old, table)
    add_one(paimon.spark.read(spark, table, snapshot=1), table)
    add_one(paimon.spark.read(spark, table, snapshot=1, where="v > 0"), table)
    assert read(table) == [(1, 11), (2, 21)]


def test_frames_of_other_databases_are_sources(spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path) -> None:
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    reader = spark.read.format("jdbc").option("url", "jdbc:derby:memory:other;create=true")
    add_one(
        reader.option("query", 'SELECT 1 AS "id", 5 AS "v" FROM SYSIBM.SYSDUMMY1').load(), table := make_table(catalog)
    )
    assert read(table) == [(1, 6), (2, 20)]


@pytest.mark.parametrize("reader", ["spark", "python"])
def test_files_of_a_table_that_was_created_again_are_missed_by_name(
    spark: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setattr("paimon.spark.parquet_files._get_reader", lambda session: reader)
    frame = paimon.spark.read(spark, make_table(catalog))
    catalog.drop_table("db.t")
    make_table(catalog)  # has a snapshot of the same id
    target = catalog.create_table("db.copy", "id BIGINT NOT NULL, v BIGINT")
    with pytest.raises(TableReplaced, match="was dropped and created again"):
        paimon.spark.write(frame, target)
    if reader == "spark":
        with pytest.raises(TableReplaced, match="was dropped and created again"):
            frame.collect()
        written = CommitMessage(b"", 0, -1, f"{target.definition.location}/bucket-0")
        (prepared := collect_prepared(spark)).add((encode([written]),))
        messages = run_message_tasks(frame, bytes, prepared)
        assert next(messages) == written  # of a task that succeeded: the caller deletes its files
        with pytest.raises(TableReplaced):
            next(messages)
    assert not target.snapshots()


def test_a_missing_file_is_known_by_its_path_without_escapes() -> None:
    text = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///my%20lake/p=%253A/a.parquet."
    assert "/my lake/p=%3A/a.parquet" in _find_missing_paths(f"{text} File does not exist. It is possible\n")
    assert "/my lake/a" in _find_missing_paths("[PATH_NOT_FOUND] Path does not exist: file:/my lake/a. SQLSTATE: 42K03")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_read_the_newest_rows_again(
    spark: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    table = make_table(catalog)
    act_before_publish(monkeypatch, table)
    paimon.spark.connect(spark, catalog).sql(statement)
    assert read(table) == [(1, 101), (2, 21)]
