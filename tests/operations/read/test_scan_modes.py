"""`scan.mode` and the options that go with it, for batch reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import CommitKind


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": 1, "write-only": True}
    table = catalog.create_table("db.orders", "k INT NOT NULL", primary_keys=["k"], options=options)
    for key in (1, 2):
        table.write([{"k": key}])
    table.compact(full=True)
    table.write([{"k": 3}])
    return table


def keys(table: paimon.Table, options: Mapping[str, object]) -> list[int]:
    return sorted(table.with_options(options).scan().to_arrow()["k"].to_pylist())


def test_compacted_full_reads_the_newest_compaction(orders: paimon.Table) -> None:
    assert [s.commit_kind for s in orders.snapshots()][2:] == [CommitKind.COMPACT, CommitKind.APPEND]
    assert keys(orders, {"scan.mode": "compacted-full"}) == [1, 2]
    assert keys(orders, {"scan.mode": "latest-full"}) == [1, 2, 3]
    # if full compactions run at intervals, a manual full compaction counts too
    assert keys(orders, {"scan.mode": "compacted-full", "full-compaction.delta-commits": 7}) == [1, 2]


def test_compacted_full_of_a_table_never_compacted_is_the_latest(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k INT")
    assert keys(table, {"scan.mode": "compacted-full"}) == []
    table.write([{"k": 1}])
    assert keys(table, {"scan.mode": "compacted-full"}) == [1]


def test_files_created_since_a_time(orders: paimon.Table) -> None:
    last = orders.snapshots()[-1].time_millis
    made = "scan.file-creation-time-millis"
    assert keys(orders, {made: 1}) == [1, 2, 3]
    assert keys(orders, {made: last + 3_600_000}) == []
    assert "ages: 2 -> 0" in orders.with_options({made: last + 3_600_000}).scan().explain()


def test_the_first_state_since_a_time_or_the_files_created_since(orders: paimon.Table) -> None:
    times = [s.time_millis for s in orders.snapshots()]
    made = "scan.creation-time-millis"
    assert keys(orders, {made: times[0] + 1}) == keys(orders, {"scan.timestamp-millis": times[1]})
    assert keys(orders, {made: times[-1] + 3_600_000}) == []
    assert keys(orders, {made: 1}) == [1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"scan.mode": "from-snapshot"},
        {"scan.mode": "from-timestamp", "scan.snapshot-id": 1},
        {"scan.mode": "latest", "scan.snapshot-id": 1},
        {"scan.mode": "compacted-full", "scan.tag-name": "t"},
        {"scan.snapshot-id": 1, "scan.file-creation-time-millis": 1},
    ],
    ids=lambda options: "+".join(options),
)
def test_modes_require_their_options_and_no_others(orders: paimon.Table, options: Mapping[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="scan"):
        keys(orders, options)
