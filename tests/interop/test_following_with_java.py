"""Streams of ours and of Java's over one table: they begin alike, read alike, and go on where the other stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from java_paimon import JavaPaimon, canonical

import paimon

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


def opened(directory: Path, options: dict[str, str] | None = None) -> paimon.Table:
    table = paimon.open_table(directory, options or {})
    assert isinstance(table, paimon.Table)
    return table


def lived(java: JavaPaimon, directory: Path, options: dict[str, str]) -> None:
    keys = () if options is LIVES["append"] else ("k",)
    whole = {"bucket": "1", "bucket-key": "k", **options} if not keys else {"bucket": "1", **options}
    java.create(directory, FIELDS, primary_keys=keys, options=whole)
    for turn in range(1, 6):
        rows = [{"k": k, "v": f"{turn}-{k}"} for k in range(turn % 3, 9, 2)]
        if turn == 4:
            java.write(directory, rows, identifier=turn, overwrite={})
        elif turn % 2:
            java.write(directory, rows, identifier=turn)
        else:
            opened(directory).write(rows, watermark=turn * 3000, commit_user="we", identifier=turn)


def by_java(java: JavaPaimon, directory: Path, options: dict[str, str], record: bool = False) -> list[Any]:
    lines = java.retention(directory, "follow", options=options, plans=20, record=record)
    return [canonical(json.loads(line)["rows"]) for line in lines.split("\n") if line]


def by_us(directory: Path, options: dict[str, str], **asked: Any) -> list[Any]:
    found: dict[int, list[Any]] = {}
    for batch in opened(directory, options).follow(idle_timeout=0, **asked):
        for row in batch.to_pylist():
            found.setdefault(row.pop("_snapshot_id"), []).append(row)
    return [canonical(rows) for rows in found.values()]


@pytest.mark.parametrize("life", LIVES)
def test_streams_begin_and_read_as_javas(java: JavaPaimon, tmp_path: Path, life: str) -> None:
    lived(java, tmp_path, LIVES[life])
    for name, options in STARTS.items():
        if name == "overwrites" and life in ("lookup", "full-compaction", "append"):
            continue  # Java refuses it
        assert by_us(tmp_path, options) == by_java(java, tmp_path, options), name


def test_streams_since_a_time_read_as_javas(java: JavaPaimon, tmp_path: Path) -> None:
    lived(java, tmp_path, LIVES["input"])
    for snapshot in opened(tmp_path).snapshots():
        for millis in (snapshot.time_millis, snapshot.time_millis + 1):
            options = {"scan.timestamp-millis": str(millis)}
            assert by_us(tmp_path, options) == by_java(java, tmp_path, options)


def test_each_goes_on_where_the_other_stopped(java: JavaPaimon, tmp_path: Path) -> None:
    lived(java, tmp_path, LIVES["input"])
    consumer = {"consumer-id": "c"}
    assert by_us(tmp_path, {}, consumer_id="c", until=3, from_snapshot=1) != []
    seen = json.loads(java.retention(tmp_path, "names"))
    assert seen["consumers"] == {"c": 4}
    java.retention(tmp_path, "expire", min=1, max=1)
    assert json.loads(java.retention(tmp_path, "names"))["snapshots"][0] == 4
    rest = by_java(java, tmp_path, consumer, record=True)
    latest = json.loads(java.retention(tmp_path, "names"))["latest"]
    assert rest and opened(tmp_path).consumers["c"] == latest + 1
    opened(tmp_path).write([{"k": 100, "v": "new"}])
    assert by_us(tmp_path, consumer) == [[{"_row_kind": "+I", "k": 100, "v": "new"}]]
    assert by_java(java, tmp_path, consumer) == []
    anew = {**consumer, "consumer.ignore-progress": "true", "scan.snapshot-id": str(latest)}
    assert by_us(tmp_path, anew) == by_java(java, tmp_path, anew)


def test_streams_read_long_lived_changelogs_as_javas(java: JavaPaimon, tmp_path: Path) -> None:
    kept = {"changelog.num-retained.max": "100", "changelog.num-retained.min": "100"}
    for producer in ("input", "none"):
        directory = tmp_path / producer
        lived(java, directory, {**LIVES[producer], **kept})
        before = by_us(directory, {}, from_snapshot="earliest")
        opened(directory).maintain.expire_snapshots(retain_max=1, retain_min=1, older_than=0)
        java.retention(directory, "expire", min=1, max=1, changelogMax=100, changelogMin=100)
        assert len(opened(directory).snapshots()) == 1
        assert by_us(directory, {}, from_snapshot="earliest") == before
        assert by_java(java, directory, {"scan.snapshot-id": "1", "scan.mode": "from-snapshot"}) == before
