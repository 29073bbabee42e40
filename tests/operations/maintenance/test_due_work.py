"""Maintenance that is due: what a dry run counts is what a run does, and an error does not stop the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

import paimon

WRITE_ONLY = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "3"}
RETAINED = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}


def create_table_with_commits(catalog: paimon.Catalog, name: str, commits: int, **options: str) -> paimon.Table:
    table = catalog.create_table(
        name, "k INT NOT NULL, v INT", primary_keys=["k"], options={**WRITE_ONLY, **RETAINED, **options}
    )
    for number in range(commits):
        table.write({"k": [number % 3], "v": [number]})
    return table


def read_report(report: pa.Table) -> dict[tuple[str, str], int]:
    assert report["error"].null_count == report.num_rows
    return {(row["table"], row["action"]): row["count"] for row in report.to_pylist()}


def test_a_dry_run_counts_what_a_run_does(catalog: paimon.Catalog) -> None:
    table = create_table_with_commits(catalog, "d.t", 6)
    table.tags.create("old", time_retained=1)
    rows = table.scan().to_arrow().sort_by("k")
    latest = table.snapshots()[-1].id
    counted = read_report(table.maintain.run_due(dry_run=True))
    assert counted == {("d.t", "compact"): 1, ("d.t", "expire_tags"): 1, ("d.t", "expire_snapshots"): 3}
    assert table.snapshots()[-1].id == latest
    assert len(table.snapshots()) == 6
    assert "old" in table.tags
    done = read_report(table.maintain.run_due())
    assert done == {("d.t", "compact"): 1, ("d.t", "expire_tags"): 1, ("d.t", "expire_snapshots"): 4}
    assert table.scan().to_arrow().sort_by("k") == rows
    assert table.maintain.run_due().num_rows == 0
    assert table.maintain.check(deep=True).is_whole


def test_what_no_option_asks_for_is_not_done(catalog: paimon.Catalog) -> None:
    table = create_table_with_commits(catalog, "d.t", 2)
    assert table.maintain.run_due().num_rows == 0
    assert read_report(table.maintain.run_due(full=True)) == {("d.t", "compact"): 1}


def test_partitions_consumers_and_changelogs_expire(catalog: paimon.Catalog) -> None:
    table = catalog.create_table(
        "d.p",
        "k INT NOT NULL, day STRING NOT NULL, v INT",
        primary_keys=["k", "day"],
        partition_keys=["day"],
        options={
            **WRITE_ONLY,
            **RETAINED,
            "changelog-producer": "input",
            "changelog.num-retained.min": "3",
            "changelog.num-retained.max": "4",
            "partition.expiration-time": "30 d",
            "partition.timestamp-formatter": "yyyy-MM-dd",
            "consumer.expiration-time": "1 d",
        },
    )
    for number in range(6):
        table.write({"k": [number], "day": ["2020-01-01" if number < 3 else "2999-01-01"], "v": [number]})
    table.consumers.reset("reader", 6)
    os.utime(Path(table.location, "consumer", "consumer-reader"), (0, 0))
    counted = read_report(table.maintain.run_due(dry_run=True))
    assert counted[("d.p", "expire_partitions")] == 1
    assert counted[("d.p", "expire_consumers")] == 1
    done = read_report(table.maintain.run_due())
    assert done[("d.p", "expire_partitions")] == 1
    assert done[("d.p", "expire_consumers")] == 1
    assert done[("d.p", "expire_snapshots")] >= 3
    changelogs = read_report(table.maintain.run_due(dry_run=True)).get(("d.p", "expire_changelogs"), 0)
    assert changelogs == 0
    assert done[("d.p", "expire_changelogs")] > 0
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [3, 4, 5]


def test_an_error_of_one_action_does_not_stop_the_rest(catalog: paimon.Catalog) -> None:
    create_table_with_commits(catalog, "d.t", 6)
    broken = catalog.table("d.t", {"snapshot.num-retained.min": "9"})
    report = broken.maintain.run_due().to_pylist()
    assert [(row["action"], row["error"] is None) for row in report] == [("compact", True), ("expire_snapshots", False)]
    assert "num-retained" in report[1]["error"]


def test_all_tables_of_a_database_are_maintained(catalog: paimon.Catalog, tmp_path: Path) -> None:
    create_table_with_commits(catalog, "d.a", 4)
    create_table_with_commits(catalog, "d.b", 4)
    catalog.create_database("other")
    create_table_with_commits(catalog, "other.c", 4)
    schema = tmp_path / "d.db" / "a" / "schema" / "schema-0"
    content = schema.read_bytes()
    schema.write_bytes(b"{}")
    report = paimon.connect(tmp_path).maintain("d").to_pylist()
    assert [(row["table"], row["action"]) for row in report if row["error"]] == [("d.a", "open")]
    assert {(row["table"], row["action"]) for row in report if not row["error"]} == {
        ("d.b", "compact"),
        ("d.b", "expire_snapshots"),
    }
    schema.write_bytes(content)
    assert set(catalog.maintain(dry_run=True)["table"].to_pylist()) == {"d.a", "other.c"}


def test_orphan_files_are_removed_on_request(catalog: paimon.Catalog, tmp_path: Path) -> None:
    table = create_table_with_commits(catalog, "d.t", 1)
    orphan = tmp_path / "d.db" / "t" / "bucket-0" / "data-0.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (0, 0))
    assert table.maintain.run_due().num_rows == 0
    assert read_report(table.maintain.run_due(orphans=True, dry_run=True)) == {("d.t", "remove_orphans"): 1}
    assert orphan.exists()
    assert read_report(table.maintain.run_due(orphans=True)) == {("d.t", "remove_orphans"): 1}
    assert not orphan.exists()
