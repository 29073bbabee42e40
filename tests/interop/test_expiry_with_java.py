"""Maintenance by this library and by Java on one table: each reads and continues what the other wrote."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon, canonical

import paimon

pytestmark = pytest.mark.interop

FIELDS = {"k": "INT NOT NULL", "v": "STRING"}
OPTIONS = {"bucket": "2", "changelog-producer": "input", "num-sorted-run.compaction-trigger": "3"}
NOW = timedelta(0)


def open_table(directory: Path, **options: str) -> paimon.Table:
    table = paimon.open_table(directory, {k.replace("_", "-"): v for k, v in options.items()})
    assert isinstance(table, paimon.Table)
    return table


def write_history(java: JavaPaimon, directory: Path, **options: str) -> None:
    """Commit alternately from both sides; compact some commits and tag two."""
    java.create(directory, FIELDS, primary_keys=["k"], options={**OPTIONS, **options})
    for step in range(1, 9):
        rows = [{"k": k, "v": f"{step}-{k}"} for k in range(step % 3, 12, 3)]
        if step % 2:
            java.write(directory, rows, identifier=step, compact=step == 5 and "write-only" not in options)
        else:
            open_table(directory).write(rows)
        if step in (3, 6):
            java.retention(directory, "create-tag", name=f"t{step}", snapshot=latest(java, directory))


def latest(java: JavaPaimon, directory: Path) -> int:
    return int(java.snapshot(directory)["id"])


def names(java: JavaPaimon, directory: Path) -> Any:
    return json.loads(java.retention(directory, "names"))


def read_by_java(java: JavaPaimon, directory: Path) -> dict[str, Any]:
    """The rows that Java reads from every snapshot and tag."""
    seen = names(java, directory)
    found = {f"s{i}": java.read(directory, options={"scan.snapshot-id": str(i)}) for i in seen["snapshots"]}
    return found | {name: java.read(directory, options={"scan.tag-name": name}) for name in seen["tags"]}


def read_by_us(directory: Path) -> dict[str, Any]:
    table = open_table(directory)
    found = {f"s{s.id}": canonical(table.scan(snapshot=s.id).to_arrow().to_pylist()) for s in table.snapshots()}
    return found | {name: canonical(table.scan(tag=name).to_arrow().to_pylist()) for name in table.tags}


def files(directory: Path) -> set[str]:
    """All files except hints, which both may write or leave, and the records of last commits, which only we write."""
    hints = ("LATEST", "EARLIEST")
    found = {p.relative_to(directory) for p in directory.rglob("*") if p.is_file() and p.name not in hints}
    return {str(path) for path in found if path.parts[0] != "last-commit"}


def no_orphans(java: JavaPaimon, directory: Path) -> None:
    assert java.retention(directory, "orphans", dry=True) == ""
    assert open_table(directory).maintain.remove_orphans(NOW, dry_run=True).num_rows == 0


@pytest.mark.parametrize("keep", mark_nightly([1, 3, 6], always=[3]))
def test_our_expiry_leaves_the_same_files_as_javas(java: JavaPaimon, tmp_path: Path, keep: int) -> None:
    write_history(java, tmp_path / "java")
    shutil.copytree(tmp_path / "java", tmp_path / "ours")
    java.retention(tmp_path / "java", "expire", min=1, max=keep)
    open_table(tmp_path / "ours").maintain.expire_snapshots(retain_min=1, retain_max=keep)
    assert files(tmp_path / "ours") == files(tmp_path / "java")
    assert read_by_java(java, tmp_path / "ours") == read_by_us(tmp_path / "java") == read_by_us(tmp_path / "ours")
    for name in ("t3", "t6"):
        java.retention(tmp_path / "java", "delete-tag", name=name)
        open_table(tmp_path / "ours").tags.delete(name)
        assert files(tmp_path / "ours") == files(tmp_path / "java")
    assert read_by_java(java, tmp_path / "ours") == read_by_us(tmp_path / "ours")
    no_orphans(java, tmp_path / "ours")


@pytest.mark.parametrize("producer", ["none", "input"])
def test_changelogs_expire_after_their_snapshots_as_in_java(java: JavaPaimon, tmp_path: Path, producer: str) -> None:
    options_of_both = {"changelog.num-retained.min": "4", "changelog.num-retained.max": "6"}
    options_of_both |= {
        "snapshot.num-retained.min": "1",
        "snapshot.num-retained.max": "2",
        "changelog-producer": producer,
    }
    write_history(java, tmp_path / "java", **options_of_both, **{"write-only": "true"})
    shutil.copytree(tmp_path / "java", tmp_path / "ours")
    java.retention(tmp_path / "java", "expire", min=1, max=2, changelogMin=4, changelogMax=6)
    open_table(tmp_path / "ours").maintain.expire_snapshots(retain_max=2)
    assert files(tmp_path / "ours") == files(tmp_path / "java")
    first = names(java, tmp_path / "ours")["changelogs"][0]
    read = java.retention(tmp_path / "ours", "changes", **{"from": first})
    assert read and read == java.retention(tmp_path / "java", "changes", **{"from": first})
    java.retention(tmp_path / "java", "expire-changelogs", min=1, max=2, changelogMin=4, changelogMax=6)
    open_table(tmp_path / "ours").maintain.expire_changelogs()
    assert files(tmp_path / "ours") == files(tmp_path / "java")
    first = names(java, tmp_path / "ours")["changelogs"][0]
    assert java.retention(tmp_path / "ours", "changes", **{"from": first})
    assert open_table(tmp_path / "ours").changes(after=first - 1).to_arrow().num_rows
    no_orphans(java, tmp_path / "ours")


def test_both_see_the_tags_branches_and_consumers_of_the_other(java: JavaPaimon, tmp_path: Path) -> None:
    write_history(java, tmp_path / "t")
    table = open_table(tmp_path / "t")
    table.tags.create("ours", 2, time_retained="3 d")
    table.tags.create("renamed", 4)
    table.tags.rename("renamed", "kept")
    table.tags.replace("t6", 5)
    table.branches.create("dev", "ours")
    table.consumers.reset("reader", 6)
    java.retention(tmp_path / "t", "create-tag", name="theirs", snapshot=7, days=2)
    java.retention(tmp_path / "t", "create-branch", name="their-branch", tag="theirs")
    java.retention(tmp_path / "t", "consumer", name="other", next=7)
    seen = names(java, tmp_path / "t")
    assert seen["tags"].keys() == set(table.tags) == {"kept", "ours", "t3", "t6", "theirs"}
    assert (seen["tags"]["kept"], seen["tags"]["ours"], seen["tags"]["t6"]) == (4, 2, 5)
    assert sorted(seen["branches"]) == sorted(table.branches) == ["dev", "their-branch"]
    assert seen["consumers"] == dict(table.consumers) == {"other": 7, "reader": 6}
    assert table.tags["theirs"].retained_seconds == 2 * 86_400
    table.maintain.expire_snapshots(retain_max=1)
    assert names(java, tmp_path / "t")["earliest"] == 6
    java.retention(tmp_path / "t", "expire", min=1, max=1)
    assert open_table(tmp_path / "t").snapshots()[0].id == 6
    assert read_by_java(java, tmp_path / "t") == read_by_us(tmp_path / "t")


def test_both_write_to_a_branch_and_fast_forward(java: JavaPaimon, tmp_path: Path) -> None:
    write_history(java, tmp_path / "t")
    table = open_table(tmp_path / "t")
    table.branches.create("dev", "t6")
    java.write(tmp_path / "t", [{"k": 50, "v": "java"}], options={"branch": "dev"}, identifier=20)
    open_table(tmp_path / "t", branch="dev").write([{"k": 51, "v": "ours"}])
    expected = java.read(tmp_path / "t", options={"branch": "dev"})
    assert [r["k"] for r in expected if r["k"] >= 50] == [50, 51]
    shutil.copytree(tmp_path / "t", tmp_path / "java")
    java.retention(tmp_path / "java", "fast-forward", name="dev")
    open_table(tmp_path / "t").branches.fast_forward("dev")
    for directory in (tmp_path / "t", tmp_path / "java"):
        assert java.read(directory) == expected == canonical(open_table(directory).scan().to_arrow().to_pylist())
        assert names(java, directory)["snapshots"] == names(java, tmp_path / "java")["snapshots"]
    java.write(tmp_path / "t", [{"k": 52, "v": "on"}], identifier=30)
    open_table(tmp_path / "t").branches.delete("dev")
    open_table(tmp_path / "t").maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    assert read_by_java(java, tmp_path / "t") == read_by_us(tmp_path / "t")


@pytest.mark.parametrize("gone", [False, True], ids=["standing", "expired"])
def test_both_roll_back_to_the_same(java: JavaPaimon, tmp_path: Path, gone: bool) -> None:
    write_history(java, tmp_path / "java")
    if gone:
        java.retention(tmp_path / "java", "expire", min=1, max=2)
    shutil.copytree(tmp_path / "java", tmp_path / "ours")
    java.retention(tmp_path / "java", "rollback-to-tag", tag="t3")
    open_table(tmp_path / "ours").maintain.rollback_to(tag="t3")
    assert names(java, tmp_path / "ours") == names(java, tmp_path / "java")
    assert read_by_java(java, tmp_path / "ours") == read_by_us(tmp_path / "java")
    java.write(tmp_path / "ours", [{"k": 1, "v": "again"}], identifier=40)
    open_table(tmp_path / "java").write([{"k": 1, "v": "again"}])
    assert java.read(tmp_path / "java") == java.read(tmp_path / "ours")
    theirs = set(java.retention(tmp_path / "ours", "orphans", dry=True).split("\n")) - {""}
    ours = open_table(tmp_path / "ours").maintain.remove_orphans(NOW, dry_run=True)
    assert set(ours["path"].to_pylist()) >= theirs and theirs
    open_table(tmp_path / "ours").maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    no_orphans(java, tmp_path / "ours")
    assert read_by_java(java, tmp_path / "ours") == read_by_us(tmp_path / "ours")


@pytest.mark.parametrize(
    "options",
    mark_nightly(
        [
            {},
            {"tag.creation-period": "hourly", "tag.creation-delay": "10 min", "tag.automatic-completion": "true"},
            {
                "tag.creation-period": "two-hours",
                "tag.num-retained-max": "2",
                "sink.watermark-time-zone": "Asia/Shanghai",
            },
            {"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes", "tag.num-retained-max": "3"},
            {"tag.creation-period-duration": "25 min", "sink.watermark-time-zone": "+05:30"},
        ],
        always=[{}, {"tag.creation-period-duration": "25 min", "sink.watermark-time-zone": "+05:30"}],
    ),
)
def test_automatic_tags_equal_those_of_java(java: JavaPaimon, tmp_path: Path, options: dict[str, str]) -> None:
    """Our tags are created commit by commit, Java's at the end of the same history."""
    options_of_both = {
        **OPTIONS,
        **options,
        "tag.automatic-creation": "watermark",
        "num-sorted-run.compaction-trigger": "99",
    }
    write_watermarks(java, tmp_path / "ours", options_of_both)
    write_watermarks(java, tmp_path / "java", {**options_of_both, "write-only": "true"})
    assert names(java, tmp_path / "java")["tags"] == {}
    java.retention(tmp_path / "java", "auto-tags")
    assert names(java, tmp_path / "ours")["tags"] == names(java, tmp_path / "java")["tags"] != {}


def write_watermarks(java: JavaPaimon, directory: Path, options: dict[str, str]) -> None:
    java.create(directory, FIELDS, primary_keys=["k"], options=options)
    time = 1_699_999_200_000
    for minutes in (0, 40, 3, 61, 1, 1, 125, 59, 300, 2, 26 * 60, 60, 60, 7):
        time += minutes * 60_000
        open_table(directory).write([{"k": minutes, "v": "x"}], watermark=time)


def test_java_does_not_read_expired_partitions(java: JavaPaimon, tmp_path: Path) -> None:
    fields = {"dt": "STRING NOT NULL", "k": "INT NOT NULL"}
    options = {"bucket": "1", "partition.expiration-time": "7 d", "partition.timestamp-formatter": "yyyyMMdd"}
    java.create(tmp_path / "t", fields, primary_keys=["dt", "k"], partition_keys=["dt"], options=options)
    today = pa.scalar(0).as_py()
    java.write(tmp_path / "t", [{"dt": d, "k": today} for d in ("20200101", "20200102", "29990101", "none")])
    gone = open_table(tmp_path / "t").maintain.expire_partitions()
    assert gone == [{"dt": "20200101"}, {"dt": "20200102"}]
    assert [row["dt"] for row in java.read(tmp_path / "t")] == ["29990101", "none"]
    assert open_table(tmp_path / "t").drop_partitions({"dt": "none"}) == (3,)
    assert [row["dt"] for row in java.read(tmp_path / "t")] == ["29990101"]
