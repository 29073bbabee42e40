"""Structured Streaming: each batch is committed exactly once, and a stream of changes adds up to its table."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType
from support.case_lists import mark_nightly

import paimon
import paimon.spark
import paimon.spark.streams.checkpoint as checkpoint_module
from paimon.adapters.observers import CountingObserver
from paimon.builders.direct_writes import commit_messages
from paimon.domain.commit import stream_batches
from paimon.domain.schema.changes import AddColumn, RenameColumn
from paimon.domain.types.data_types import IntType
from paimon.spark.options import SourceOptions
from paimon.spark.source import PaimonDataSource
from paimon.spark.streams import stream_reader

pytestmark = pytest.mark.spark

DDL = "id BIGINT NOT NULL, amount BIGINT"
NOW = {"availableNow": True}
Start = Callable[[DataFrame, paimon.Table, Path], None]


class Inbox:
    """A directory of Parquet files, which Spark reads as a stream, one file in each batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        self._spark = spark
        folder.mkdir()

    def add(self, number: int, rows: Mapping[str, list[Any]]) -> None:
        """Add the file of a batch."""
        table = pa.table({"id": pa.array(rows["id"], pa.int64()), "amount": pa.array(rows["amount"], pa.int64())})
        pq.write_table(table, self.folder / f"{number:03}.parquet")

    def frame(self) -> DataFrame:
        """Return the stream."""
        schema = DDL.replace(" NOT NULL", "")
        return self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def inbox(spark: SparkSession, tmp_path: Path) -> Inbox:
    """An inbox with a batch; keys repeat in all batches, so that a sum shows a batch that is written twice."""
    made = Inbox(spark, tmp_path / "inbox")
    add_batches(made, 1)
    return made


def add_batches(inbox: Inbox, *numbers: int) -> None:
    for number in numbers:
        inbox.add(number, {"id": [1, 2, 10 + number], "amount": [1, 10, 100]})


def run_source(frame: DataFrame, table: paimon.Table, checkpoint: Path) -> None:
    """Write a stream through the data source."""
    writer = frame.writeStream.format("paimon").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start(table.location).awaitTermination()


def run_function(frame: DataFrame, table: paimon.Table, checkpoint: Path) -> None:
    """Write a stream by `write_stream`."""
    paimon.spark.write_stream(frame, table, str(checkpoint), trigger=NOW).awaitTermination()


def run_batches(frame: DataFrame, table: paimon.Table, checkpoint: Path) -> None:
    """Write a stream with `write` in `foreachBatch`."""

    def commit(batch: DataFrame, number: int) -> None:
        paimon.spark.write(batch, table, commit_identifier=number)

    writer = frame.writeStream.foreachBatch(commit).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def forget_batch(checkpoint: Path, number: int) -> None:
    """Delete the record that a batch was committed, as if the driver was killed before it wrote the record."""
    for name in (str(number), f".{number}.crc"):
        (checkpoint / "commits" / name).unlink()


def identifiers(table: paimon.Table) -> list[int]:
    return [s.commit_identifier for s in table.snapshots()]


def create_sums(catalog: paimon.Catalog, name: str = "db.sums") -> paimon.Table:
    """Create a table that adds the amounts of a key, so that a batch that is written twice changes it."""
    options = {"bucket": 2, "merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"}
    return catalog.create_table(name, DDL, primary_keys=["id"], options=options)


@pytest.mark.slow("starts a query several times")
@pytest.mark.parametrize("run", mark_nightly([run_source, run_function, run_batches], always=[run_source]))
def test_issue_9666_a_replayed_batch_is_committed_once(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path, run: Start
) -> None:
    """The driver was killed after the commit, before the record of Spark: the first and the last batch come again."""
    table, checkpoint = create_sums(catalog), tmp_path / "checkpoint"
    run(inbox.frame(), table, checkpoint)
    forget_batch(checkpoint, 0)
    add_batches(inbox, 2, 3)
    run(inbox.frame(), table, checkpoint)
    forget_batch(checkpoint, 2)
    files = len(list(Path(table.location).rglob("data-*")))
    run(inbox.frame(), table, checkpoint)
    assert len(list(Path(table.location).rglob("data-*"))) == files  # files of the repeated batch are deleted
    found = table.scan().to_arrow().group_by("id").aggregate([("amount", "sum")]).sort_by("id")
    assert found["amount_sum"].to_pylist() == [3, 30, 100, 100, 100]
    assert sorted(set(identifiers(table))) == [0, 1, 2]
    assert len({s.commit_user for s in table.snapshots()}) == 1
    planned = [checkpoint_module.Checkpoint.of(str(checkpoint), table).find_batch(n).planned_millis for n in range(3)]
    first, second, third = planned
    assert first is not None and second is not None and third is not None
    assert 1_700_000_000_000 < first < second < third <= table.snapshots()[-1].time_millis + 60_000


def run_events(frame: DataFrame, table: paimon.Table, checkpoint: Path) -> None:
    """Write a stream of events by `cdc`."""
    events = frame.selectExpr("to_json(named_struct('op', 'c', 'after', struct(*))) AS value")
    query = paimon.spark.cdc(events, table, "debezium-json", checkpoint=str(checkpoint), trigger=NOW)
    assert isinstance(query, StreamingQuery)
    query.awaitTermination()


@pytest.mark.slow("starts two queries")
@pytest.mark.parametrize("run", mark_nightly([run_function, run_batches], always=[run_function]))
def test_snapshots_have_the_watermark_of_the_stream(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path, run: Callable[..., None]
) -> None:
    table = catalog.create_table("db.timed", DDL)
    (tmp_path / "timed").mkdir()
    for number, hour in enumerate((7200, 7300)):
        (tmp_path / "timed" / f"{number}.json").write_text(json.dumps({"id": hour, "amount": 1}))
    stream = spark.readStream.schema(DDL.replace(" NOT NULL", "")).option("maxFilesPerTrigger", 1)
    timed = stream.json(str(tmp_path / "timed")).selectExpr("*", "timestamp_seconds(id) AS at")
    run(timed.withWatermark("at", "10 seconds").drop("at"), table, tmp_path / "checkpoint")
    first, second = table.snapshots()
    ids = sorted(row["id"] for row in table.scan(snapshot=1).to_arrow().to_pylist())
    assert (first.watermark, second.watermark) == (None, (ids[0] - 10) * 1000), "the rows of the batches before"


@pytest.mark.slow("starts two queries")
def test_a_stream_adds_its_new_columns_with_its_first_batch(
    spark: SparkSession, inbox: Inbox, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    table, checkpoint = create_sums(catalog), tmp_path / "checkpoint"
    wider = inbox.frame().selectExpr("*", "'new' AS note")
    with pytest.raises(paimon.InvalidRequest, match="note"):
        paimon.spark.write_stream(wider, table, str(checkpoint), trigger=NOW)
    with pytest.raises(paimon.InvalidRequest, match="'widen' or 'cast'"):
        paimon.spark.write_stream(wider, table, str(checkpoint), merge_schema="wide")
    calls: list[tuple[int, tuple[int, ...], int]] = []

    def run(frame: DataFrame, merge_schema: bool | str) -> None:
        def collect(number: int, done: paimon.WriteResult) -> None:
            calls.append((number, done.snapshot_ids, done.rows))
            if len(calls) == 3:
                raise ValueError("the listener fails")

        given: Any = {"trigger": NOW, "merge_schema": merge_schema, "on_batch": collect}
        paimon.spark.write_stream(frame, table.location, str(checkpoint), **given).awaitTermination()

    for numbers in ((), (2,)):  # the second run finds the column
        add_batches(inbox, *numbers)
        run(wider, True)
    newest = catalog.table("db.sums")
    assert newest.table_schema.id == 1 and newest.table_schema.names == ("id", "amount", "note")
    add_batches(inbox, 3)
    decimals = wider.selectExpr("id", "CAST(amount AS DECIMAL(22, 2)) amount", "note")
    with pytest.raises(PySparkException, match="the listener fails"):
        run(decimals, "widen")
    run(decimals, "widen")  # the batch is committed, and reported again
    newest = catalog.table("db.sums")
    assert newest.arrow_schema.types[:2] == [pa.int64(), pa.decimal128(22, 2)]
    rows = {r["id"]: (r["amount"], r["note"]) for r in newest.scan().to_arrow().to_pylist()}
    assert rows == {1: (3, "new"), 2: (30, "new"), **dict.fromkeys((11, 12, 13), (100, "new"))}
    ids = [s.id for s in newest.snapshots() if s.commit_kind.value == "APPEND"]
    assert [(n, found[0], rows) for n, found, rows in calls] == [
        (0, ids[0], 3),
        (1, ids[1], 3),
        (2, ids[2], 3),
        (2, ids[2], 3),
    ]
    assert calls[2] == calls[3]


def restore_copy(checkpoint: Path) -> None:
    """Restore the checkpoint of an earlier batch."""
    shutil.rmtree(checkpoint)
    shutil.copytree(checkpoint.with_name("copy"), checkpoint)


def delete_last_plan(checkpoint: Path) -> None:
    """Delete what Spark stored about batch 1, as if it was damaged."""
    for path in [*checkpoint.glob("offsets/*1*"), *checkpoint.glob("commits/*1*"), *checkpoint.glob("sources/0/*1*")]:
        path.unlink()


@pytest.mark.parametrize(
    ("run", "lose"),
    [
        (run_source, restore_copy),
        pytest.param(run_function, restore_copy, marks=pytest.mark.nightly),
        pytest.param(run_events, restore_copy, marks=pytest.mark.nightly),
        pytest.param(run_batches, restore_copy, marks=pytest.mark.nightly),
        pytest.param(run_function, delete_last_plan, marks=pytest.mark.nightly),
    ],
)
def test_a_batch_that_spark_plans_again_with_other_rows_is_refused(
    spark: SparkSession,
    catalog: paimon.Catalog,
    inbox: Inbox,
    tmp_path: Path,
    run: Start,
    lose: Callable[[Path], None],
) -> None:
    """The checkpoint is one batch older than the table; the way out is a rollback."""
    table = catalog.create_table("db.t", DDL) if run is run_source else create_sums(catalog)
    checkpoint = tmp_path / "checkpoint"
    run(inbox.frame(), table, checkpoint)
    before = table.snapshots()[-1].id
    shutil.copytree(checkpoint, checkpoint.with_name("copy"))
    add_batches(inbox, 2)
    run(inbox.frame(), table, checkpoint)
    lose(checkpoint)
    inbox.add(1, {"id": [7], "amount": [7]})  # the file of batch 0, which is read, changes nothing
    (inbox.folder / "002.parquet").rename(inbox.folder / "004.parquet")
    inbox.add(3, {"id": [3], "amount": [3]})
    snapshots, files = len(table.snapshots()), len(list(Path(table.location).rglob("data-*")))
    with pytest.raises(PySparkException, match="Batch 1 of the stream has another plan"):
        run(inbox.frame(), table, checkpoint)
    assert len(table.snapshots()) == snapshots
    assert len(list(Path(table.location).rglob("data-*"))) == files
    table.maintain.rollback_to(before)
    run(inbox.frame(), table, checkpoint)
    found = table.scan().to_arrow().group_by("id").aggregate([("amount", "sum")]).sort_by("id")
    assert found.to_pydict() == {"id": [1, 2, 3, 11, 12], "amount_sum": [2, 20, 3, 100, 100]}


def test_a_batch_of_an_earlier_version_is_accepted_without_a_recorded_plan(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, checkpoint = create_sums(catalog), tmp_path / "checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(stream_batches.StreamBatch, "properties", {})
        run_function(inbox.frame(), table, checkpoint)
    assert not any(s.properties for s in table.snapshots())
    forget_batch(checkpoint, 0)
    add_batches(inbox, 2)
    run_function(inbox.frame(), table, checkpoint)
    plan = hashlib.sha256((checkpoint / "offsets" / "1").read_bytes()).hexdigest()
    assert table.snapshots()[-1].properties[stream_batches.PLAN_HASH] == plan
    assert table.scan().to_arrow().sort_by("id")["amount"].to_pylist() == [2, 20, 100, 100]


def test_a_batch_whose_plan_is_not_in_the_checkpoint_is_refused(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    """As with asynchronous progress tracking, where Spark writes the plan later."""
    table, checkpoint = catalog.create_table("db.t", DDL), tmp_path / "checkpoint"

    def lose_plan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path in (checkpoint / "offsets").glob("*0*"):
            path.unlink()
        yield from batches

    frame = inbox.frame().mapInArrow(lose_plan, inbox.frame().schema)
    with pytest.raises(PySparkException, match=r"no 'offsets/0' while batch 0 is written.*asynchronous progress"):
        run_source(frame, table, checkpoint)
    assert table.snapshots() == [] and not list(Path(table.location).rglob("data-*"))
    with pytest.raises(paimon.Unsupported, match=r"no 'offsets/0'"):
        checkpoint_module.StreamSink.open(table, str(checkpoint), 0)
    writer = inbox.frame().writeStream.format("paimon").option("asyncProgressTrackingEnabled", "true")
    with pytest.raises(PySparkException, match=r"(?i)asyncProgressTracking|async progress"):
        writer.option("checkpointLocation", f"{tmp_path}/async").start(table.location).awaitTermination()


@pytest.mark.parametrize("run", mark_nightly([run_source, run_function], always=[run_function]))
def test_a_new_stream_starts_on_a_table_whose_snapshots_expired(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path, run: Start
) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write({"id": [1], "amount": [1]})
    run(inbox.frame(), table, tmp_path / "checkpoint")
    table.write({"id": [1], "amount": [1]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    run(inbox.frame(), table, tmp_path / "other")
    assert table.scan().count() == 8
    forget_batch(tmp_path / "checkpoint", 0)
    run(inbox.frame(), table, tmp_path / "checkpoint")  # the expiry recorded the batch
    assert table.scan().count() == 8
    shutil.rmtree(Path(table.location) / "last-commit")  # as if another client had expired the snapshots
    forget_batch(tmp_path / "checkpoint", 0)
    with pytest.raises(PySparkException, match=r"may be in table 'db.t': its snapshots begin with 3"):
        run(inbox.frame(), table, tmp_path / "checkpoint")
    assert table.scan().count() == 8


class FailingSink:
    """A function for `foreachBatch` that fails after its write, as if a second sink failed."""

    def __init__(self, table: paimon.Table, name: Mapping[str, Any], is_cdc: bool) -> None:
        self.fails = True
        self._table, self._name, self._is_cdc = table, name, is_cdc

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write the batch."""
        name = {**self._name, "commit_identifier": number}
        if self._is_cdc:
            events = batch.selectExpr("to_json(named_struct('op', 'c', 'after', struct(*))) AS value")
            paimon.spark.cdc(events, self._table, "debezium-json", **name)
        else:
            paimon.spark.write(batch, self._table, **name)
        if self.fails:
            raise RuntimeError("a second sink fails")

    def run(self, frame: DataFrame, checkpoint: Path) -> None:
        """Run the stream to its end."""
        writer = frame.writeStream.foreachBatch(self).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize(
    ("name", "is_cdc"),
    [
        *(pytest.param({}, is_cdc, marks=pytest.mark.nightly) for is_cdc in (False, True)),
        ({"commit_user": "job"}, False),
    ],
)
def test_a_replay_of_foreach_batch_is_recognized_after_its_snapshot_expired(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path, name: dict[str, Any], is_cdc: bool
) -> None:
    """The table is young when the stream begins; another writer expires the snapshot of the batch."""
    table, checkpoint = catalog.create_table("db.t", DDL), tmp_path / "checkpoint"
    sink = FailingSink(table, name, is_cdc)

    def expire() -> None:
        for _ in range(2):
            table.write({"id": [100], "amount": [1]})
        table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))

    expire()
    with pytest.raises(PySparkException, match="a second sink fails"):
        sink.run(inbox.frame(), checkpoint)
    expire()
    sink.fails = False
    add_batches(inbox, 2)
    sink.run(inbox.frame(), checkpoint)
    found = table.scan(where="id < 100").to_arrow().group_by("id").aggregate([("amount", "sum")]).sort_by("id")
    assert found.to_pydict() == {"id": [1, 2, 11, 12], "amount_sum": [2, 20, 100, 100]}


def test_a_replay_of_foreach_batch_is_refused_if_another_client_expired_its_snapshot(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    """Other clients record no commits."""
    table, checkpoint = catalog.create_table("db.t", DDL), tmp_path / "checkpoint"
    sink = FailingSink(table, {}, False)
    with pytest.raises(PySparkException, match="a second sink fails"):
        sink.run(inbox.frame(), checkpoint)
    table.write({"id": [100], "amount": [1]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    shutil.rmtree(Path(table.location) / "last-commit")
    sink.fails = False
    with pytest.raises(PySparkException, match=r"Batch 0 of the stream may be in table 'db\.t'"):
        sink.run(inbox.frame(), checkpoint)
    assert table.scan().count() == 4
    sink.run(inbox.frame(), tmp_path / "other")  # a new stream
    assert table.scan().count() == 7


def test_an_identifier_without_a_user_and_a_stream_is_refused(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    frame = spark.range(1).selectExpr("id", "id AS amount")
    events = frame.selectExpr("to_json(named_struct('op', 'c', 'after', struct(*))) AS value")
    for call in (
        lambda: paimon.spark.write(frame, table, commit_identifier=1),
        lambda: paimon.spark.cdc(events, table, "debezium-json", commit_identifier=1),
        lambda: frame.write.format("paimon").mode("append").option("commit-identifier", "1").save(table.location),
    ):
        with pytest.raises((paimon.InvalidRequest, PySparkException), match=r"has no effect without a commit user"):
            call()
    assert table.snapshots() == []


def test_complete_and_update_modes_replace_and_update(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    add_batches(inbox, 2)
    totals = inbox.frame().groupBy("id").sum("amount").toDF("id", "amount")
    keyed = catalog.create_table("db.keyed", DDL, primary_keys=["id"], options={"bucket": 2})
    paimon.spark.write_stream(totals, keyed, f"{tmp_path}/a", trigger=NOW, output_mode="update").awaitTermination()
    plain = catalog.create_table("db.plain", DDL)
    for _ in range(2):  # the second run replays the last batch
        writer = totals.writeStream.format("paimon").outputMode("complete").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{tmp_path}/b").start(plain.location).awaitTermination()
        forget_batch(tmp_path / "b", 1)
    wanted = [{"id": 1, "amount": 2}, {"id": 2, "amount": 20}, {"id": 11, "amount": 100}, {"id": 12, "amount": 100}]
    for table in (keyed, plain):
        assert table.scan().to_arrow().sort_by("id").to_pylist() == wanted
        assert sorted(set(identifiers(table))) == [0, 1]
    with pytest.raises(paimon.InvalidRequest, match="Output mode 'update' would add"):
        paimon.spark.write_stream(totals, plain, f"{tmp_path}/c", output_mode="update")


@pytest.mark.parametrize("is_published", [True, False])
def test_failed_commits_and_killed_workers_leave_each_row_once(
    spark: SparkSession,
    catalog: paimon.Catalog,
    inbox: Inbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_published: bool,
) -> None:
    table = create_sums(catalog)
    marker = tmp_path / "killed"

    def kill_first_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    def fail(*arguments: Any, **named: Any) -> None:
        if is_published:
            commit_messages(*arguments, **named)
        raise paimon.StorageError("snapshot-1", "the storage did not reply")

    frame = inbox.frame().mapInArrow(kill_first_worker, inbox.frame().schema).toDF("ID", "Amount")  # case is ignored
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "commit_messages", fail)
        with pytest.raises(PySparkException, match="did not reply"):
            run_function(frame, table, tmp_path / "checkpoint")
    assert marker.exists() and len(table.snapshots()) == is_published
    run_function(frame, table, tmp_path / "checkpoint")
    if is_published:  # the next batch adapts to another number of buckets
        table.rescale(3)
        add_batches(inbox, 2)
        run_function(frame, table, tmp_path / "checkpoint")
    found = catalog.table("db.sums").scan().to_arrow().sort_by("id")
    assert found["amount"].to_pylist() == ([2, 20, 100, 100] if is_published else [1, 10, 100])
    assert [n for n in identifiers(table) if n < 9] == [0, 1][: 1 + is_published]


def test_a_stream_continues_only_with_its_table(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    table, other = (catalog.create_table(f"db.{name}", DDL) for name in ("t", "other"))
    checkpoint = tmp_path / "checkpoint"
    run_function(inbox.frame(), table, checkpoint)
    with pytest.raises(paimon.InvalidRequest, match=r"checkpoint belongs to a stream into .*/t, not into .*/other"):
        run_function(inbox.frame(), other, checkpoint)
    add_batches(inbox, 2)
    with pytest.raises(PySparkException, match="checkpoint belongs to a stream into"):
        run_source(inbox.frame(), other, checkpoint)
    catalog.drop_table("db.t")
    again = catalog.create_table("db.t", DDL)
    with pytest.raises(paimon.InvalidRequest, match="was dropped and created again"):
        run_function(inbox.frame(), again, checkpoint)
    assert again.snapshots() == [] and other.snapshots() == []
    keyed = create_sums(catalog)
    checkpoint_module.Checkpoint.of(f"{tmp_path}/keyed", keyed).bind(keyed, 0)
    keyed.alter(RenameColumn("id", "key"))
    renamed = inbox.frame().withColumnRenamed("id", "key")
    with pytest.raises(paimon.InvalidRequest, match=r"primary key of table .* changed from \(id\) to \(key\)"):
        run_function(renamed, catalog.table("db.sums"), tmp_path / "keyed")
    with pytest.raises(paimon.InvalidRequest, match=r"\(no such column\) \| note int64"):
        run_function(inbox.frame().selectExpr("*", "id AS note"), again, tmp_path / "wider")
    assert keyed.snapshots() == again.snapshots() == []


def test_streams_that_cannot_commit_once_are_refused(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    plain = catalog.create_table("db.plain", DDL)
    writer = inbox.frame().writeStream.format("paimon").trigger(availableNow=True)
    spark.conf.set("spark.sql.streaming.checkpointLocation", f"{tmp_path}/all")
    try:
        with pytest.raises(PySparkException, match=r"needs its checkpoint.*option.'checkpointLocation'"):
            writer.start(plain.location).awaitTermination()
        with pytest.raises(paimon.InvalidRequest, match=r"needs its checkpoint.*query_name"):
            paimon.spark.write_stream(inbox.frame(), plain)
        paimon.spark.write_stream(inbox.frame(), plain, query_name="named", trigger=NOW).awaitTermination()
        assert (tmp_path / "all" / "named" / "paimon" / "table.json").exists()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    for name, options, reason in (
        ("dynamic", {}, "agree about the bucket"),
        ("vectors", {"bucket": 2, "deletion-vectors.enabled": True}, "visible after a compaction"),
    ):
        refused = catalog.create_table(f"db.{name}", DDL, primary_keys=["id"], options=options)
        with pytest.raises(PySparkException, match=rf"{reason}.*write_stream"):
            writer.option("checkpointLocation", f"{tmp_path}/a").start(refused.location).awaitTermination()
    with pytest.raises(PySparkException, match="'commit-user' has no effect in writeStream"):
        writer.option("commit-user", "me").start(plain.location).awaitTermination()
    for arguments, message in (
        ({"trigger": {"continuous": "1 second"}}, "Trigger 'continuous' is unknown"),
        ({"output_mode": "overwrite"}, "Output mode 'overwrite' is unknown"),
        ({"tasks": 0}, "at least 1"),
    ):
        with pytest.raises(paimon.InvalidRequest, match=message):
            paimon.spark.write_stream(inbox.frame(), plain, f"{tmp_path}/b", **arguments)  # type: ignore[arg-type]
    with pytest.raises(paimon.InvalidRequest, match="not a stream"):
        paimon.spark.write_stream(spark.range(1), plain, f"{tmp_path}/b")


# --- reads


def read_stream(spark: SparkSession, table: paimon.Table | str, **options: object) -> DataFrame:
    reader = spark.readStream.format("paimon")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(table if isinstance(table, str) else table.location)


KINDS = {"row-kind-column": "kind"}


def copy_changes(
    spark: SparkSession, source: paimon.Table, target: paimon.Table, checkpoint: Path, **options: object
) -> Any:
    """Copy a table by its stream of changes, with row kinds."""
    frame = read_stream(spark, source, **{**KINDS, **options})
    query = paimon.spark.write_stream(frame, target, str(checkpoint), trigger=NOW, kind_column="kind")
    query.awaitTermination()
    return query


@pytest.mark.slow("starts a query several times")
def test_a_stream_of_changes_adds_up_to_its_table(spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path) -> None:
    """One batch contains several versions of a key, so their order counts; retracts and aggregates show doubles."""
    source = catalog.create_table(
        "db.source", DDL, primary_keys=["id"], options={"bucket": 2, "changelog-producer": "lookup"}
    )
    copy = catalog.create_table("db.copy", DDL, primary_keys=["id"], options={"bucket": 3})
    checkpoint = tmp_path / "checkpoint"
    source.write({"id": list(range(20)), "amount": [0] * 20})
    copy_changes(spark, source, copy, checkpoint)
    assert copy.scan().count() == 20
    for round_number in range(1, 4):
        source.write({"id": list(range(20)), "amount": [round_number] * 20})
    source.delete("id < 5")
    copy_changes(spark, source, copy, checkpoint)
    assert copy.scan().to_arrow().sort_by("id") == source.scan().to_arrow().sort_by("id")
    assert identifiers(copy)[-1] >= 1
    forget_batch(checkpoint, 1)  # all of it comes again
    before = len(copy.snapshots())
    copy_changes(spark, source, copy, checkpoint)
    assert len(copy.snapshots()) == before
    with pytest.raises(PySparkException, match=r"has rows of kind '-[UD]'.*row-kind-column"):
        plain = read_stream(spark, source, **{"scan.mode": "from-snapshot", "scan.snapshot-id": 1})
        run_source(plain, catalog.create_table("db.plain", DDL), tmp_path / "plain")


@pytest.mark.slow("starts a query several times")
def test_batches_are_limited_and_a_consumer_follows_committed_batches(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path
) -> None:
    source = catalog.create_table("db.source", DDL, options={"source.split.target-size": "1 b"})
    target = create_sums(catalog)
    for number in range(4):
        source.write({"id": [number], "amount": [1]})
    frame = read_stream(spark, source, maxFilesPerTrigger=3, maxRowsPerTrigger=2, **{"consumer-id": "me"})
    checkpoint = tmp_path / "checkpoint"
    query = paimon.spark.write_stream(frame, target, str(checkpoint), trigger=NOW)
    query.awaitTermination()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [2, 2]
    assert json.loads(query.recentProgress[0]["sources"][0]["latestOffset"]) == {"snapshot": 5}
    assert dict(source.consumers) == {"me.state": 4}  # the last batch is recorded when the next one begins
    source.write({"id": [0], "amount": [1]})
    source.alter(AddColumn("note", IntType()))
    catalog.table("db.source").write({"id": [9], "amount": [1], "note": [1]})
    running = paimon.spark.write_stream(frame, target, str(checkpoint), trigger=NOW)
    with pytest.raises(PySparkException, match=r"changed in snapshot 6: note.*with the same checkpoint"):
        running.awaitTermination()
    assert dict(source.consumers) == {"me": 5}
    newest = read_stream(spark, source, **{"consumer-id": "me"}).drop("note")
    paimon.spark.write_stream(newest, target, str(checkpoint), trigger=NOW).awaitTermination()
    found = target.scan().to_arrow().sort_by("id")
    assert found.to_pydict() == {"id": [0, 1, 2, 3, 9], "amount": [2, 1, 1, 1, 1]}


def read_changes(options: Mapping[str, str], start: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[Any]]:
    """Read a batch as Spark does after a start, in this process; return its end and its rows."""
    source = PaimonDataSource(dict(options))
    reader = source.streamReader(source.schema())
    begin = reader.initialOffset() if start is None else start
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    batches = [batch for part in reader.partitions(begin, end) for batch in reader.read(part)]
    return end, sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_a_start_in_the_past_has_the_newest_columns_and_may_expire(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write({"id": [1], "amount": [1]})
    table.alter(AddColumn("note", IntType()))
    catalog.table("db.t").write({"id": [2], "amount": [2], "note": [2]})
    at_first = {"path": table.location, "scan.snapshot-id": "1"}
    options = {**at_first, "scan.mode": "from-snapshot"}
    end, found = read_changes(options)
    assert found == [(1, 1, None), (2, 2, 2)]
    with pytest.raises(paimon.InvalidRequest, match=r"columns of table .* are others.*option 'scan\.mode'"):
        read_changes(at_first)
    catalog.table("db.t").write({"id": [3], "amount": [3], "note": [3]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    for restarted in (options, at_first):  # the checkpoint is past the start
        assert read_changes(restarted, end)[1] == [(3, 3, 3)]
    for missing in (
        lambda: read_changes(options),
        lambda: PaimonDataSource({"path": table.location, "snapshot": "1"}).schema(),
        lambda: PaimonDataSource(at_first).reader(PaimonDataSource(at_first).schema()).partitions(),
    ):
        with pytest.raises(paimon.NotFound, match="'1' does not exist"):
            missing()
    catalog.table("db.t").alter(AddColumn("size", IntType()))
    batch = {**options, "scan.snapshot-id": "3"}
    with pytest.raises(paimon.InvalidRequest, match=r"has no column 'size'.*'snapshot'"):
        PaimonDataSource(batch).reader(PaimonDataSource(batch).schema())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"kind-column": "kind"}, "'kind-column' has no effect in readStream", marks=pytest.mark.nightly),
        ({"tag": "t"}, "'scan.tag-name' cannot start a stream"),
        pytest.param({"path": "$snapshots"}, "readStream of system table", marks=pytest.mark.nightly),
        pytest.param(
            {"scan.mode": "from-snapshot", "scan.snapshot-id": 7},
            "Snapshot '7' does not exist",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_stream_reads_that_cannot_start_are_refused(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write({"id": [1], "amount": [1]})
    table.tags.create("t")
    with pytest.raises(PySparkException, match=message):
        path = f"{table.location}{options.pop('path', '')}"
        writer = read_stream(spark, path, **options).writeStream.format("noop")
        writer.option("checkpointLocation", str(tmp_path / "c")).start().processAllAvailable()


def test_options_of_streams_are_refused_in_batches(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    with pytest.raises(PySparkException, match="'maxFilesPerTrigger' has no effect in a batch read"):
        spark.read.format("paimon").option("maxFilesPerTrigger", 1).load(table.location).collect()
    with pytest.raises(PySparkException, match="'checkpointLocation' has no effect in a batch write"):
        frame = spark.range(1).selectExpr("id", "id AS amount")
        frame.write.format("paimon").mode("append").option("checkpointLocation", "x").save(table.location)
    with pytest.raises(PySparkException, match="'maxRowsPerTrigger' must be at least 1"):
        spark.readStream.format("paimon").option("maxRowsPerTrigger", 0).load(table.location)
    with pytest.raises(PySparkException, match="'amount' already"):
        spark.readStream.format("paimon").option("row-kind-column", "amount").load(table.location)


def test_an_older_pyspark_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "_AvailableNow", object)
    reader = stream_reader.PaimonStreamReader(SourceOptions("lake/db.db/t"), StructType([]), None)
    for ask in (reader.initialOffset, reader.latestOffset):  # PySpark 4.1 calls either first, without arguments
        with pytest.raises(paimon.Unsupported, match=r"readStream of Paimon tables with PySpark \d.*4\.2 or newer"):
            ask()


def test_tasks_of_the_sink_write_one_bucket_with_numbers_of_their_own(
    spark: SparkSession, catalog: paimon.Catalog, inbox: Inbox, tmp_path: Path
) -> None:
    """Two tasks write the same keys: the row of the later task is the newer one."""
    table = catalog.create_table("db.t", DDL, primary_keys=["id"], options={"bucket": 1})
    add_batches(inbox, 2)
    twice = inbox.frame().withColumn("task", F.explode(F.array(F.lit(0), F.lit(1))))
    tasks = twice.repartitionById(2, "task").selectExpr("id", "amount + task AS amount")
    run_source(tasks, table, tmp_path / "checkpoint")
    files = catalog.table("db.t$files").scan().to_arrow().sort_by("min_sequence_number").to_pylist()
    assert [file["record_count"] for file in files] == [3, 3, 3, 3]
    gaps = [later["min_sequence_number"] - file["max_sequence_number"] for file, later in pairwise(files)]
    assert gaps[0] == gaps[2] == 2**24 - 2 and gaps[1] == 1
    table.compact(full=True)
    assert table.scan().to_arrow().sort_by("id")["amount"].to_pylist() == [2, 11, 101, 101]


@pytest.mark.parametrize("view", ["audit_log", "binlog"])
def test_system_tables_of_changes_are_streams_with_row_kinds(catalog: paimon.Catalog, view: str) -> None:
    """The stream begins with the state, and continues with the changes; a binlog joins the rows of an update."""
    options = {"bucket": 1, "changelog-producer": "lookup"}
    table = catalog.create_table("db.t", DDL, primary_keys=["id"], options=options)
    table.write({"id": [1, 2], "amount": [1, 2]})
    given = {"path": f"{table.location}${view}"}
    if view == "audit_log":
        given = {"path": f"{table.location}/", "read.changelog": "true", "table-read.sequence-number.enabled": "true"}
    end, found = read_changes(given)
    table.write({"id": [1, 3], "amount": [9, 3]})
    table.delete("id = 2")
    changes = read_changes(given, end)[1]
    if view == "audit_log":
        assert found == [("+I", 0, 1, 1), ("+I", 1, 2, 2)]
        assert [(kind, *rows) for kind, _, *rows in changes] == [
            ("+I", 3, 3), ("+U", 1, 9), ("-D", 2, 2), ("-U", 1, 1),
        ]  # fmt: skip
    else:
        assert found == [("+I", [1], [1]), ("+I", [2], [2])]
        assert changes == [("+I", [3], [3]), ("+U", [1, 1], [1, 9]), ("-D", [2], [2])]
    with pytest.raises(paimon.InvalidRequest, match="column 'rowkind' with row kinds"):
        read_changes({**given, "row-kind-column": "kind"})


def test_a_stream_waits_for_rows_but_not_longer_than_its_delay(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", DDL)
    source = PaimonDataSource({"path": table.location, "minRowsPerTrigger": "3", "maxTriggerDelayMs": "60000"})
    reader = source.streamReader(source.schema())
    assert reader.reportLatestOffset() is None
    moment = [10**12]
    clock = reader._table.engine.clock
    monkeypatch.setattr(type(clock), "now_millis", lambda self: moment[0])
    limit = reader.getDefaultReadLimit()
    start, seen = reader.initialOffset(), []
    for rows, wait in ((1, 0), (2, 0), (1, 0), (1, 0), (1, 70_000)):
        table.write({"id": list(range(rows)), "amount": [0] * rows})
        moment[0] += wait
        end = reader.latestOffset(start, limit)
        seen.append(sum(batch.num_rows for part in reader.partitions(start, end) for batch in reader.read(part)))
        start = end
    assert seen == [1, 0, 3, 0, 2], "the first batch, a delay, enough rows, a delay, the delay is over"
    table.write({"id": [1], "amount": [1]})
    assert reader.reportLatestOffset() == {"snapshot": start["snapshot"] + 1}
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, limit) != start
    source = PaimonDataSource({**source.options, "maxFilesPerTrigger": "1"})
    limited, start, seen = source.streamReader(source.schema()), reader.initialOffset(), []
    for _ in range(7):
        end = limited.latestOffset(start, limit)
        seen.append(sum(batch.num_rows for part in limited.partitions(start, end) for batch in limited.read(part)))
        start = end
    assert seen == [1, 2, 1, 1, 1, 0, 0], "only the last batch, which no limit ends, waits"
    for options, message in (
        ({"maxTriggerDelayMs": "1"}, "no effect alone"),
        ({"minRowsPerTrigger": "3", "maxRowsPerTrigger": "2"}, "larger than 'maxRowsPerTrigger'"),
    ):
        with pytest.raises(paimon.InvalidRequest, match=message):
            PaimonDataSource({"path": table.location, **options}).schema()


@pytest.mark.nightly
@pytest.mark.parametrize("run", mark_nightly([run_source, run_function], always=[run_source]))
def test_an_observer_receives_what_streams_read_and_write(
    spark: SparkSession, catalog: paimon.Catalog, tmp_path: Path, run: Start
) -> None:
    source, target = create_sums(catalog, "db.source"), create_sums(catalog)
    for number in range(2):
        source.write({"id": [1, 2], "amount": [number, number]})
    observer = CountingObserver()
    listener = paimon.spark.observe_streams(spark, observer)
    try:
        run(read_stream(spark, source), target, tmp_path / "checkpoint")
        end = time.monotonic() + 60
        while not observer.metrics["stream.files"] and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    assert observer.metrics["stream.rows"] == 2 and observer.metrics["stream.batches"] == 1
    assert "stream.report_failed" not in observer.metrics
    assert [done for name, done in observer.activities.items() if name.endswith(" reads")] == [(2, 2)]
    assert observer.activities["stream into db.sums"] == (target.snapshots()[-1].id, None)
