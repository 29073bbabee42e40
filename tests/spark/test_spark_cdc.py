"""Change data capture on Spark: batch frames and streams, several tables, dead letters, replayed batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import paimon
import paimon.spark
import paimon.spark.streams.checkpoint as checkpoint_module
from paimon.builders.direct_writes import commit_messages

pytestmark = pytest.mark.spark

DDL = "id BIGINT NOT NULL, name STRING, amount BIGINT"
Row = dict[str, Any]


def debezium(op: str, before: Row | None, after: Row | None, table: str = "orders") -> str:
    source = {"connector": "mysql", "db": "shop", "table": table}
    return json.dumps({"before": before, "after": after, "source": source, "op": op})


def order(key: int, name: str = "a", amount: int | None = 1) -> Row:
    return {"id": key, "name": name, "amount": amount}


def create(catalog: paimon.Catalog, name: str, **options: object) -> paimon.Table:
    return catalog.create_table(f"db.{name}", DDL, primary_keys=["id"], options={"bucket": 2, **options})


def to_frame(spark: SparkSession, partitions: list[list[str | None]]) -> DataFrame:
    """Return events as Spark reads them from Kafka, a list for each partition."""
    rows = [
        (p, n, None if text is None else bytearray(text.encode()))
        for p, texts in enumerate(partitions)
        for n, text in enumerate(texts)
    ]
    frame = spark.createDataFrame(rows, "partition INT, offset BIGINT, value BINARY")
    kafka = frame.repartitionById(len(partitions), frame["partition"]).sortWithinPartitions("offset")
    return kafka.selectExpr("CAST(NULL AS BINARY) AS key", "value", "'orders' AS topic", "partition", "offset")


@contextmanager
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Send the events of a partition to its task in many batches, so that their rows are shuffled in many messages."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "7")
    try:
        yield
    finally:
        spark.conf.unset(name)


def rows_of(table: paimon.Table) -> list[Row]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.slow("writes several tables")
def test_a_batch_of_events_goes_to_its_tables(spark: SparkSession, catalog: paimon.Catalog) -> None:
    orders, items = create(catalog, "orders"), create(catalog, "items", bucket=-1)
    letters = catalog.create_table("db.letters", paimon.DEAD_LETTER_SCHEMA)
    versions = [debezium("c", None, order(1, "v0"))]
    versions += [debezium("u", order(1, f"v{n}"), order(1, f"v{n + 1}")) for n in range(50)]
    moved = [debezium("c", None, order(2)), debezium("u", order(2), order(3)), None]
    others = [debezium("c", None, {**order(n, "i"), "size": n}, "items") for n in range(4)]
    bad = ["{broken", debezium("c", None, {"id": "x"})]
    frame = to_frame(spark, [[*versions, bad[0], others[0]], [*moved, *others[1:], bad[1]]])
    tables = {"shop.orders": orders.location, "shop.items": items}
    with pytest.raises(paimon.InvalidRequest, match=r"offset \d+ of partition [01] of topic 'orders' cannot be read"):
        paimon.spark.cdc(frame, tables, "debezium-json")
    assert orders.snapshots() == items.snapshots() == []
    with small_batches(spark):
        for _ in range(2):  # the second call is recognized
            done = paimon.spark.cdc(
                frame, tables, "debezium-json",
                dead_letters=letters, merge_schema=True, commit_user="job", commit_identifier=0,
            )  # fmt: skip
    assert isinstance(done, paimon.CdcResult)
    assert (done.events, done.rejected, done.ignored) == (60, 2, 1)
    assert rows_of(orders) == [order(1, "v50"), order(3)]
    assert rows_of(catalog.table("db.items")) == [{**order(n, "i"), "size": n} for n in range(4)]
    found = letters.scan().to_arrow().sort_by("partition").to_pylist()
    assert [(row["partition"], row["offset"], row["value"].decode()) for row in found] == [
        (0, 51, bad[0]),
        (1, 6, bad[1]),
    ]
    assert [len(t.snapshots()) for t in (orders, items, letters)] == [1, 1, 1]


def test_new_columns_that_differ_only_in_case_are_refused(spark: SparkSession, catalog: paimon.Catalog) -> None:
    """A session that ignores case could not read such a table."""
    table = create(catalog, "orders")

    def write(*rows: Row) -> None:
        frame = to_frame(spark, [[debezium("c", None, row) for row in rows]])
        paimon.spark.cdc(frame, table, "debezium-json", merge_schema=True)

    for rows in ([{"id": 1, "Amount": 2}], [{"id": 1, "Note": "a"}, {"id": 2, "NOTE": "b"}]):
        with pytest.raises(paimon.InvalidRequest, match="only in case, which the session ignores"):
            write(*rows)
    assert catalog.table("db.orders").table_schema.names == ("id", "name", "amount") and table.snapshots() == []


def test_a_refused_batch_adds_no_columns(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create(catalog, "orders")
    good, bad = debezium("c", None, {**order(1), "size": 2}), debezium("c", None, {"id": "x", "color": "red"})
    with pytest.raises(paimon.InvalidRequest, match="cannot be read"):
        paimon.spark.cdc(to_frame(spark, [[good, bad]]), table, "debezium-json", merge_schema=True)
    assert len(list((Path(table.location) / "schema").iterdir())) == 1 and table.snapshots() == []
    paimon.spark.cdc(to_frame(spark, [[good]]), table, "debezium-json", merge_schema=True)
    assert rows_of(catalog.table("db.orders")) == [{**order(1), "size": 2}]


def test_a_stream_of_events_is_committed_once(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed between the commits of two tables; a table joins the stream later."""
    sums = {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    tables = {f"shop.{name}": create(catalog, name, **sums) for name in ("orders", "items")}
    letters = catalog.create_table("db.letters", paimon.DEAD_LETTER_SCHEMA)
    inbox, checkpoint = tmp_path / "inbox", tmp_path / "checkpoint"
    inbox.mkdir()
    results: dict[int, paimon.CdcResult] = {}

    def add(number: int, *events: str) -> None:
        (inbox / f"{number}.txt").write_text("\n".join(events) + "\n")

    def run(dead_letters: paimon.Table | None = letters) -> None:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(inbox))
        query = paimon.spark.cdc(
            stream, tables.get, "debezium-json", checkpoint=str(checkpoint), dead_letters=dead_letters,
            trigger={"availableNow": True}, on_batch=results.__setitem__,
        )  # fmt: skip
        query.awaitTermination()

    def forget(number: int) -> None:
        for name in (str(number), f".{number}.crc"):
            (checkpoint / "commits" / name).unlink()

    add(0, debezium("c", None, order(1)), "{broken", debezium("c", None, order(2)))
    run()
    add(1, debezium("c", None, order(1)), debezium("c", None, order(1), "items"), debezium("c", None, order(9), "log"))
    calls = iter(range(9))

    def commit_two(*arguments: Any, **named: Any) -> Any:
        if next(calls) == 2:
            raise paimon.StorageError("snapshot-2", "the storage did not reply")
        return commit_messages(*arguments, **named)

    with monkeypatch.context() as patch, pytest.raises(PySparkException, match="did not reply"):
        patch.setattr(checkpoint_module, "commit_messages", commit_two)
        run()
    assert rows_of(tables["shop.items"]) == [order(1)] and rows_of(tables["shop.orders"])[0] == order(1)
    run()
    assert [(r.events, r.rejected, r.ignored) for r in results.values()] == [(3, 1, 0), (3, 0, 1)]
    forget(1)
    run()
    assert rows_of(tables["shop.orders"]) == [order(1, amount=2), order(2)]
    assert rows_of(tables["shop.items"]) == [order(1)] and letters.scan().count() == 1
    assert [s.commit_identifier for s in tables["shop.items"].snapshots()] == [0]
    add(2, debezium("c", None, order(1)), "{bad")
    with pytest.raises(PySparkException, match=r"Event 1 cannot be read: The event is not a JSON object"):
        run(None)
    run()
    assert rows_of(tables["shop.orders"])[0] == order(1, amount=3) and letters.scan().count() == 2
    assert [s.commit_identifier for s in tables["shop.items"].snapshots()] == [0, 1]
