"""Dry runs of single actions: they return what a run does, and change no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_products
from support.tables import create_table

import paimon

KEYED: dict[str, Any] = {"primary_keys": ["k", "day"], "partition_keys": ["day"]}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append in buckets": {"options": {"bucket": "2", "bucket-key": "k", "write-only": "true"}},
    "append with vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "fixed": {**KEYED, "options": {"bucket": "2", "write-only": "true"}},
    "fixed with vectors": {**KEYED, "options": {
        "bucket": "2", "write-only": "true", "deletion-vectors.enabled": "true"}},
    "dynamic": {**KEYED, "options": {"write-only": "true"}},
}  # fmt: skip


def create_table_with_commits(folder: Path, commits: int = 6, **layout: Any) -> paimon.Table:
    table = create_table(folder, "k INT NOT NULL, day STRING NOT NULL, v INT", "d.t", **layout)
    for number in range(commits):
        table.write({"k": [*range(number, number + 3)], "day": ["a", "b", "a"], "v": [number] * 3})
    return table


def list_files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("layout", "full", "where"), mark_products(LAYOUTS, [False, True], [None, "day = 'a'"]))
def test_compact(tmp_path: Path, layout: str, full: bool, where: str | None) -> None:
    table = create_table_with_commits(tmp_path, **LAYOUTS[layout])
    if where is not None and not table.partition_keys:
        with pytest.raises(paimon.InvalidRequest, match="day"):
            table.compact(full, where, dry_run=True)
        return
    before = list_files(tmp_path)
    found = table.compact(full, where, dry_run=True)
    assert list_files(tmp_path) == before
    done = table.compact(full, where)
    assert (found.snapshot_ids, found.files_after) == ((), 0)
    assert (found.buckets, found.files_before) == (done.buckets, done.files_before)
    assert found.rows >= done.rows and bool(found.buckets) == bool(done.snapshot_ids)
    assert found.buckets or not full
    assert table.compact(full, where, dry_run=True) == table.compact(full, where)


def test_compact_postponed_rows(tmp_path: Path) -> None:
    table = create_table_with_commits(tmp_path, **KEYED, options={"bucket": "-2"})
    before = list_files(tmp_path)
    found = table.compact(where="day = 'a'", dry_run=True)
    assert list_files(tmp_path) == before
    assert (found.buckets, found.files_before, found.rows) == (1, 6, 12)
    done = table.compact(where="day = 'a'")
    assert (found.buckets, found.files_before) == (done.buckets, done.files_before)
    assert table.compact(where="day = 'a'", dry_run=True).buckets == 0
    assert table.compact(dry_run=True).buckets == 1


@pytest.mark.parametrize("where", [None, "day = 'a'"])
def test_rescale(tmp_path: Path, where: str | None) -> None:
    table = create_table_with_commits(tmp_path, **LAYOUTS["fixed"])
    before = list_files(tmp_path)
    found = table.rescale(5, where, dry_run=True)
    assert list_files(tmp_path) == before
    done = table.rescale(5, where)
    assert found.partitions == done.partitions == (2 if where is None else 1)
    assert (found.snapshot_ids, found.files_after, found.files_before) == ((), 0, done.files_before)
    assert found.rows >= done.rows > 0
    opened = paimon.open_table(table.location)
    assert opened.rescale(5, where, dry_run=True).partitions == 0
    with pytest.raises(paimon.InvalidRequest):
        opened.rescale(0, dry_run=True)


def test_expire_snapshots(tmp_path: Path) -> None:
    table = create_table_with_commits(tmp_path, commits=9)
    table.consumers.reset("reader", 6)
    before = list_files(tmp_path)
    found = table.maintain.expire_snapshots(retain_max=2, dry_run=True)
    assert list_files(tmp_path) == before
    done = table.maintain.expire_snapshots(retain_max=2)
    assert (found.first, found.until, found.snapshots) == (done.first, done.until, done.snapshots) == (1, 6, 5)
    assert found.files == 0 < done.files
    assert table.maintain.expire_snapshots(retain_max=2, dry_run=True).snapshots == 0
    with pytest.raises(paimon.InvalidRequest):
        table.maintain.expire_snapshots(retain_min=5, retain_max=2, dry_run=True)


def test_tables_without_rows(tmp_path: Path) -> None:
    table = create_table_with_commits(tmp_path, commits=0, **LAYOUTS["fixed"])
    assert table.compact(True, dry_run=True).buckets == 0
    assert table.rescale(4, dry_run=True).partitions == 0
    assert table.maintain.expire_snapshots(dry_run=True).snapshots == 0
