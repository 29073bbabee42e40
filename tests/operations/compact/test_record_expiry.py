"""Record-level expiry on real files: compaction drops expired rows, and reads return what is stored."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest

NOW = int(time.time())
DAY = 86_400
EXPIRY = {"record-level.time-field": "t", "record-level.expire-time": "1 d", "bucket": "1", "write-only": "true"}


def create_expiring_table(home: Path, kind: str = "INT", **options: str) -> paimon.Table:
    return create_table(home, f"k INT NOT NULL, v INT, t {kind}", primary_keys=["k"], options={**EXPIRY, **options})


def rows(table: paimon.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(columns=["k", "v"]).to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("kind", "scale"), [("INT", 1), ("BIGINT", 1), ("BIGINT", 1000), ("TIMESTAMP(3)", None), ("TIMESTAMP_LTZ(6)", None)]
)
def test_compaction_drops_expired_rows(tmp_path: Path, kind: str, scale: int | None) -> None:
    table = create_expiring_table(tmp_path, kind)

    def at(age: int) -> Any:
        seconds = NOW - age
        return seconds * scale if scale else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))

    table.write([{"k": 1, "v": 1, "t": at(2 * DAY)}, {"k": 2, "v": 2, "t": at(0)}, {"k": 3, "v": 3, "t": None}])
    table.write([{"k": 1, "v": 9, "t": at(3 * DAY)}, {"k": 4, "v": 4, "t": at(2 * DAY)}])
    assert rows(table) == [(1, 9), (2, 2), (3, 3), (4, 4)]
    table.compact(full=True)
    assert rows(table) == [(2, 2), (3, 3)]


def test_an_expired_row_is_still_marked_when_a_newer_row_replaces_it(tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": "true", "merge-engine": "partial-update", "record-level.expire-time": "99 d",
               "num-sorted-run.compaction-trigger": "9"}  # fmt: skip
    table = create_expiring_table(tmp_path, **options)
    table.write([{"k": k, "v": k, "t": NOW - 2 * DAY} for k in range(2_000)])
    table.compact(full=True)
    table = table.with_options({"record-level.expire-time": "1 d"})
    table.write([{"k": 7, "v": None, "t": NOW}])
    assert table.compact().files_before == 1
    assert [row for row in rows(table) if row[0] == 7] == [(7, None)], "the old value is no part of it, and is gone"
    assert len(rows(table)) == 2_000


def test_expired_rows_are_not_merged(tmp_path: Path) -> None:
    table = create_expiring_table(tmp_path, **{"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"})
    for v, age in ((100, 2 * DAY), (10, 0), (1, 0)):
        table.write([{"k": 1, "v": v, "t": NOW - age}])
    assert rows(table) == [(1, 111)]
    table.compact(full=True)
    assert rows(table) == [(1, 11)]


def test_files_of_the_top_level_are_rewritten_where_their_oldest_record_expired(tmp_path: Path) -> None:
    table = create_expiring_table(tmp_path, **{"record-level.expire-time": "9999 d"})
    table.write([{"k": 1, "v": 1, "t": NOW - 2 * DAY}, {"k": 2, "v": 2, "t": NOW}])
    table.compact(full=True)
    assert table.compact(full=True).snapshot_ids == ()
    sooner = table.with_options({"record-level.expire-time": "1 d"})
    assert sooner.compact(full=True).files_before == 1
    assert rows(table) == [(2, 2)]
    assert sooner.compact(full=True).snapshot_ids == ()


def test_no_file_remains_if_all_rows_are_expired(tmp_path: Path) -> None:
    table = create_expiring_table(tmp_path)
    table.write([{"k": k, "v": 1, "t": 0} for k in range(3)])
    table.compact(full=True)
    assert rows(table) == []
    assert table.system_table("files").scan().count() == 0


def test_a_lookup_does_not_find_expired_rows(tmp_path: Path) -> None:
    table = create_expiring_table(tmp_path, **{"record-level.expire-time": "9999 d", "changelog-producer": "lookup"})
    table.write([{"k": 1, "v": 1, "t": NOW - 2 * DAY}, {"k": 2, "v": 1, "t": NOW}])
    table.compact(full=True)
    table.write([{"k": k, "v": 2, "t": NOW} for k in (1, 2)])
    table.with_options({"record-level.expire-time": "1 d"}).compact()
    changes = table.changes(after=2).to_arrow().to_pylist()
    assert [(row["_row_kind"], row["k"], row["v"]) for row in changes] == [("+I", 1, 2), ("-U", 2, 1), ("+U", 2, 2)]


def test_an_expiry_without_a_time_is_refused(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    for options, message in (({"record-level.expire-time": "1 d"}, "time-field"),
                          ({"record-level.time-field": "x"}, "which does not exist")):  # fmt: skip
        with pytest.raises(InvalidRequest, match=message):
            catalog.create_table("db.t", "k INT NOT NULL", primary_keys=["k"], options={"bucket": "1", **options})
