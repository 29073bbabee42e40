"""Stream reads of this library and of Java on one table start at the same snapshot, return the same rows, and continue
each other's progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.spark.source import PaimonDataSource

pytestmark = pytest.mark.interop

FIELDS = {"k": "INT NOT NULL", "v": "STRING"}
LIVES = {
    "input": {"changelog-producer": "input"},
    "none": {},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "3"},
    "vectors": {"deletion-vectors.enabled": "true", "write-only": "true"},
    "first-row": {"merge-engine": "first-row", "write-only": "true"},
    "append": {},
}
STARTS: dict[str, dict[str, str]] = {
    "state": {},
    "full": {"scan.mode": "latest-full"},
    "latest": {"scan.mode": "latest"},
    "compacted": {"scan.mode": "compacted-full"},
    "snapshot": {"scan.snapshot-id": "3"},
    "snapshot-full": {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"},
    "bounded": {"scan.snapshot-id": "2", "scan.bounded.watermark": "5000"},
    "overwrites": {"scan.snapshot-id": "1", "streaming-read-overwrite": "true"},
    "append-overwrites": {"scan.snapshot-id": "1", "streaming-read-append-overwrite": "true"},
}


def open_table(directory: Path, options: dict[str, str] | None = None) -> paimon.Table:
    table = paimon.open_table(directory, options or {})
    assert isinstance(table, paimon.Table)
    return table


def write_history(java: JavaPaimon, directory: Path, options: dict[str, str]) -> None:
    keys = () if options is LIVES["append"] else ("k",)
    whole = {"bucket": "1", "bucket-key": "k", **options} if not keys else {"bucket": "1", **options}
    java.create(directory, FIELDS, primary_keys=keys, options=whole)
    for step in range(1, 6):
        rows = [{"k": k, "v": f"{step}-{k}"} for k in range(step % 3, 9, 2)]
        if step == 4:
            java.write(directory, rows, identifier=step, overwrite={})
        elif step % 2:
            java.write(directory, rows, identifier=step)
        else:
            open_table(directory).write(rows, watermark=step * 3000, commit_user="we", identifier=step)


def follow_by_java(java: JavaPaimon, directory: Path, options: dict[str, str], record: bool = False) -> list[Any]:
    lines = java.retention(directory, "follow", options=options, plans=20, record=record)
    return [canonical(json.loads(line)["rows"]) for line in lines.split("\n") if line]


def follow_by_us(directory: Path, options: dict[str, str], **asked: Any) -> list[Any]:
    found: dict[int, list[Any]] = {}
    for batch in open_table(directory, options).follow(idle_timeout=0, **asked):
        for row in batch.to_pylist():
            found.setdefault(row.pop("_snapshot_id"), []).append(row)
    return [canonical(rows) for rows in found.values()]


@pytest.mark.parametrize("life", mark_nightly(LIVES, always=["input", "lookup", "vectors", "append"]))
def test_streams_begin_and_read_as_javas(java: JavaPaimon, tmp_path: Path, life: str) -> None:
    write_history(java, tmp_path, LIVES[life])
    for name, options in STARTS.items():
        if name == "overwrites" and life in ("lookup", "full-compaction", "append"):
            continue  # Java refuses it
        assert follow_by_us(tmp_path, options) == follow_by_java(java, tmp_path, options), name


def test_streams_since_a_time_read_as_javas(java: JavaPaimon, tmp_path: Path) -> None:
    write_history(java, tmp_path, LIVES["input"])
    for snapshot in open_table(tmp_path).snapshots():
        for millis in (snapshot.time_millis, snapshot.time_millis + 1):
            options = {"scan.timestamp-millis": str(millis)}
            assert follow_by_us(tmp_path, options) == follow_by_java(java, tmp_path, options)


def test_each_continues_where_the_other_stopped(java: JavaPaimon, tmp_path: Path) -> None:
    write_history(java, tmp_path, LIVES["input"])
    consumer = {"consumer-id": "c"}
    assert follow_by_us(tmp_path, {}, consumer_id="c", until=3, from_snapshot=1) != []
    seen = json.loads(java.retention(tmp_path, "names"))
    assert seen["consumers"] == {"c": 4}
    java.retention(tmp_path, "expire", min=1, max=1)
    assert json.loads(java.retention(tmp_path, "names"))["snapshots"][0] == 4
    rest = follow_by_java(java, tmp_path, consumer, record=True)
    latest = json.loads(java.retention(tmp_path, "names"))["latest"]
    assert rest and open_table(tmp_path).consumers["c"] == latest + 1
    open_table(tmp_path).write([{"k": 100, "v": "new"}])
    assert follow_by_us(tmp_path, consumer) == [[{"_row_kind": "+I", "k": 100, "v": "new"}]]
    assert follow_by_java(java, tmp_path, consumer) == []
    anew = {**consumer, "consumer.ignore-progress": "true", "scan.snapshot-id": str(latest)}
    assert follow_by_us(tmp_path, anew) == follow_by_java(java, tmp_path, anew)


def read_by_spark_source(directory: Path, options: dict[str, str]) -> Any:
    """Read what Spark reads in the first batch of a new stream, and record its progress as Spark does."""
    source = PaimonDataSource({"path": str(directory), "row-kind-column": "_row_kind", **options})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    parts = reader.partitions(start, end)
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    reader.commit(end)
    return canonical(rows)


def test_streams_of_spark_and_java_continue_from_each_other(java: JavaPaimon, tmp_path: Path) -> None:
    write_history(java, tmp_path, LIVES["input"])
    consumer = {"consumer-id": "c"}
    first = follow_by_java(java, tmp_path, {**consumer, "scan.snapshot-id": "1"}, record=True)
    latest = json.loads(java.retention(tmp_path, "names"))["latest"]
    assert first and open_table(tmp_path).consumers["c"] == latest + 1
    open_table(tmp_path).write([{"k": 100, "v": "ours"}])
    assert read_by_spark_source(tmp_path, consumer) == [{"_row_kind": "+I", "k": 100, "v": "ours"}]
    assert json.loads(java.retention(tmp_path, "names"))["consumers"] == {"c": latest + 2}
    java.write(tmp_path, [{"k": 101, "v": "Java's"}], identifier=9)
    assert follow_by_java(java, tmp_path, consumer) == [[{"_row_kind": "+I", "k": 101, "v": "Java's"}]]


def test_streams_read_long_lived_changelogs_as_java_does(java: JavaPaimon, tmp_path: Path) -> None:
    retention_options = {"changelog.num-retained.max": "100", "changelog.num-retained.min": "100"}
    for producer in ("input", "none"):
        directory = tmp_path / producer
        write_history(java, directory, {**LIVES[producer], **retention_options})
        before = follow_by_us(directory, {}, from_snapshot="earliest")
        open_table(directory).maintain.expire_snapshots(retain_max=1, retain_min=1, older_than=0)
        java.retention(directory, "expire", min=1, max=1, changelogMax=100, changelogMin=100)
        assert len(open_table(directory).snapshots()) == 1
        assert follow_by_us(directory, {}, from_snapshot="earliest") == before
        assert follow_by_java(java, directory, {"scan.snapshot-id": "1", "scan.mode": "from-snapshot"}) == before
