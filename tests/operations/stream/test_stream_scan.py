"""Stream scans of tables on disk: no change is missed, progress is stored, and slow readers get an error."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType

FAST = {"bucket": "1", "continuous.discovery-interval": "20 ms", "num-sorted-run.compaction-trigger": "100"}


def new_table(root: Path, options: Mapping[str, str] | None = None) -> paimon.Table:
    catalog = paimon.connect(root)
    catalog.create_database("shop")
    whole = {**FAST, **(options or {})}
    return catalog.create_table("shop.orders", "k INT NOT NULL, v INT", primary_keys=["k"], options=whole)


def write_keys(table: paimon.Table, *keys: int) -> None:
    table.write([{"k": key, "v": 10 * key} for key in keys])


def to_tuples(follow: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in follow for row in batch.to_pylist()]


def expire_all(table: paimon.Table) -> list[int]:
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    return [s.id for s in table.snapshots()]


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    table = new_table(tmp_path)
    for key in (1, 2, 3):
        write_keys(table, key)
    return table


def test_the_state_is_returned_first_and_then_the_changes(orders: paimon.Table) -> None:
    follow = orders.follow()
    assert to_tuples([next(follow)]) == [(3, "+I", k, 10 * k) for k in (1, 2, 3)]
    assert follow.next_snapshot == 4
    orders.delete("k = 2")
    write_keys(orders, 9)
    assert to_tuples([next(follow), next(follow)]) == [(4, "-D", 2, 20), (5, "+I", 9, 90)]


def test_it_begins_at_the_requested_position(orders: paimon.Table) -> None:
    two, three = (2, "+I", 2, 20), (3, "+I", 3, 30)
    assert to_tuples(orders.follow(2, idle_timeout=0)) == [two, three]
    assert to_tuples(orders.follow("earliest", idle_timeout=0, until=2)) == [(1, "+I", 1, 10), two]
    assert to_tuples(orders.follow("latest", idle_timeout=0)) == []
    assert to_tuples(orders.with_options({"scan.snapshot-id": 3}).follow(idle_timeout=0)) == [three]
    assert to_tuples(orders.follow(1, idle_timeout=0, columns=["v"], where="k > 1 AND _row_kind = '+I'")) == [
        (2, "+I", 20), (3, "+I", 30)
    ]  # fmt: skip
    assert to_tuples(orders.follow(1, idle_timeout=0, where="v = k * 10 AND k % 2 = 1")) == [(1, "+I", 1, 10), three]


@pytest.mark.parametrize("start", [0, -1, "first", True, 1.5])
def test_a_start_that_cannot_be_is_refused(orders: paimon.Table, start: Any) -> None:
    with pytest.raises(InvalidRequest, match="cannot start"):
        orders.follow(start)


def test_options_that_only_batches_read_are_refused(orders: paimon.Table) -> None:
    orders.tags.create("t")
    with pytest.raises(InvalidRequest, match=r"scan\.tag-name"):
        orders.with_options({"scan.tag-name": "t"}).follow()
    made = {"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": 1}
    with pytest.raises(Unsupported, match="from-file-creation-time"):
        orders.with_options(made).follow()
    with pytest.raises(InvalidRequest, match="cannot be combined with"):
        orders.with_options({"scan.mode": "latest", "scan.snapshot-id": 1}).follow()
    with pytest.raises(InvalidRequest, match=r"is after .until. \(2\)"):
        next(orders.follow(until=2))
    with pytest.raises(NotFound, match="start at 4 or before"):
        next(orders.follow(9))


def test_a_scan_of_an_empty_table_waits(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    follow = table.follow(idle_timeout="10 min")
    writer = threading.Timer(0.3, write_keys, (table, 1, 2))
    writer.start()
    assert to_tuples([next(follow)]) == [(1, "+I", 1, 10), (1, "+I", 2, 20)]
    assert to_tuples(table.follow("latest", idle_timeout="30 ms")) == []
    writer.join()


def test_close_ends_a_waiting_scan(orders: paimon.Table) -> None:
    waiting = orders.with_options({"continuous.discovery-interval": "1 h"})
    with waiting.follow("latest") as follow:
        threading.Timer(0.2, follow.close).start()
        start = time.monotonic()
        assert list(follow) == []
        assert time.monotonic() - start < 600


def test_progress_is_recorded_by_the_next_read(orders: paimon.Table) -> None:
    follow = orders.follow(1, consumer_id="c")
    next(follow)
    assert orders.consumers["c"] == 1  # the consumer references snapshot 1 from the start
    next(follow)
    assert orders.consumers["c"] == 2
    again = orders.follow(consumer_id="c", idle_timeout=0)
    assert [row[0] for row in to_tuples(again)] == [2, 3]
    assert dict(orders.consumers) == {"c": 4}
    assert to_tuples(orders.follow(1, consumer_id="c", idle_timeout=0)) == []
    anew = orders.with_options({"consumer-id": "c", "consumer.ignore-progress": "true"})
    assert len(to_tuples(anew.follow(1, idle_timeout=0))) == 3


def test_progress_is_recorded_when_acknowledged(orders: paimon.Table) -> None:
    follow = orders.follow(1, consumer_id="c", acknowledge=False, idle_timeout=0)
    seen = [(follow.next_snapshot, orders.consumers["c"]) for _ in follow]
    assert seen == [(2, 1), (3, 1), (4, 1)]
    follow.acknowledge(3)
    assert orders.consumers["c"] == 3
    follow.acknowledge()
    assert orders.consumers["c"] == 4


def test_unread_snapshots_of_a_consumer_are_not_expired(orders: paimon.Table) -> None:
    follow = orders.follow(2, consumer_id="c")
    next(follow)
    assert expire_all(orders) == [2, 3]
    assert to_tuples([next(follow)]) == [(3, "+I", 3, 30)]
    assert expire_all(orders) == [3]


def test_the_initial_state_is_protected_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.changes._BATCH_BYTES", 1)
    table = new_table(tmp_path, {"bucket": "4"})
    write_keys(table, *range(100))
    follow = table.follow(consumer_id="c")
    rows = to_tuples([next(follow)])
    table.overwrite([{"k": 1000, "v": 1}])
    write_keys(table, 1001)
    assert expire_all(table) == [1, 2, 3]
    for batch in follow:
        rows += to_tuples([batch])
        if rows[-1][0] == 3:
            break
    assert sorted(rows) == [(1, "+I", k, 10 * k) for k in range(100)] + [(3, "+I", 1001, 10010)]
    assert dict(table.consumers) == {"c": 2}  # the consumer no longer references the state


def test_files_that_an_overwrite_replaced_stay_for_unfinished_consumers(tmp_path: Path) -> None:
    table = new_table(tmp_path, {"streaming-read-overwrite": "true"})
    write_keys(table, 1, 2)
    assert len(to_tuples(table.follow(1, consumer_id="c", idle_timeout=0))) == 2
    table.overwrite([{"k": 2, "v": 0}])
    write_keys(table, 3)
    assert expire_all(table) == [1, 2, 3]
    assert sorted(to_tuples(table.follow(consumer_id="c", idle_timeout=0))) == [
        (2, "+I", 2, 0), (2, "-D", 1, 10), (2, "-D", 2, 20), (3, "+I", 3, 30)
    ]  # fmt: skip
    table.consumers.delete("c")
    assert dict(table.consumers) == {}


def test_a_reader_that_fell_behind_gets_the_oldest_snapshot(orders: paimon.Table) -> None:
    follow = orders.follow(1)
    next(follow)
    assert expire_all(orders) == [3]
    with pytest.raises(NotFound, match="start at 3"):
        next(follow)
    with pytest.raises(NotFound, match="start at 3"):
        next(orders.follow(1))
    changelogs_only = orders.with_options({"consumer.changelog-only": "true"})
    orders.consumers.reset("c", 3)
    write_keys(orders, 4)
    assert expire_all(changelogs_only) == [4]
    with pytest.raises(NotFound, match=r"reset the consumer to it"):
        next(orders.follow(consumer_id="c"))


def test_long_lived_changelogs_are_followed(tmp_path: Path) -> None:
    table = new_table(tmp_path, {"changelog-producer": "input", "changelog.num-retained.min": "50"})
    follow = table.follow("earliest")
    for key in (1, 2, 3):
        write_keys(table, key)
    next(follow)
    assert expire_all(table) == [3]
    assert to_tuples([next(follow), next(follow)]) == [(2, "+I", 2, 20), (3, "+I", 3, 30)]


def test_a_rollback_ends_it(orders: paimon.Table) -> None:
    follow, other = orders.follow(1), orders.follow("latest", idle_timeout="10 min")
    to_tuples([next(follow) for _ in range(3)])
    orders.maintain.rollback_to(2)
    with pytest.raises(NotFound, match="rolled back"):
        next(other)
    write_keys(orders, 8)
    write_keys(orders, 9)
    with pytest.raises(NotFound, match="rolled back"):
        next(follow)


def test_a_delay_and_a_watermark_limit_the_snapshots(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for watermark in (1, 5, 9):
        table.write([{"k": watermark, "v": 0}], watermark=watermark)
    bounded = table.with_options({"scan.bounded.watermark": 5})
    assert [row[2] for row in to_tuples(bounded.follow(1))] == [1, 5]
    assert [row[2] for row in to_tuples(bounded.follow())] == [1, 5, 9]
    delayed = table.with_options({"streaming.read.snapshot.delay": "1 h"})
    assert to_tuples(delayed.follow(1, idle_timeout=0)) == []


def test_its_columns_stay_as_they_were(orders: paimon.Table) -> None:
    follow = orders.follow("latest")
    wider = orders.alter(AddColumn("w", IntType()))
    wider.write([{"k": 7, "v": 70, "w": 700}])
    assert to_tuples([next(follow)]) == [(4, "+I", 7, 70)]
    assert to_tuples(wider.follow(4, idle_timeout=0)) == [(4, "+I", 7, 70, 700)]


@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once"])
def test_both_modes_of_consumers_repeat_unfinished_snapshots(orders: paimon.Table, mode: str) -> None:
    table = orders.with_options({"consumer.mode": mode, "consumer-id": "c"})
    follow = table.follow(1)
    assert to_tuples([next(follow), next(follow)]) == [(1, "+I", 1, 10), (2, "+I", 2, 20)]
    assert table.consumers["c"] == 2
    assert to_tuples([next(table.follow(1))]) == [(2, "+I", 2, 20)]


def test_a_waiting_consumer_does_not_expire(orders: paimon.Table) -> None:
    table = orders.with_options({"consumer.expiration-time": "400 ms"})
    follow = table.follow("latest", consumer_id="c", idle_timeout="1500 ms", acknowledge=False)
    file, started = Path(table.location, "consumer", "consumer-c"), time.time_ns()
    assert list(follow) == []
    assert file.stat().st_mtime_ns > started + 10**8  # rewritten during the wait
    assert table.consumers["c"] == 4


def test_a_slow_read_references_the_state_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.changes._BATCH_BYTES", 1)
    table = new_table(tmp_path, {"bucket": "4", "consumer.expiration-time": "400 ms"})
    write_keys(table, *range(100))
    consumer_file, seen = Path(table.location, "consumer", "consumer-c.state"), []
    for _ in table.follow(consumer_id="c", until=1):
        seen.append(consumer_file.stat().st_mtime_ns)
        time.sleep(0.12)
    assert len(seen) > 2
    assert sorted(set(seen)) == seen  # rewritten at each batch, so that it does not look abandoned
    assert dict(table.consumers) == {"c": 2}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(["write", "delete", "compact", "expire", "stop"]), max_size=12))
def test_changes_lead_to_the_states(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    table = new_table(tmp_path_factory.mktemp("lake"), {"changelog-producer": "input"})
    table.follow("earliest", consumer_id="c")
    state: dict[int, int] = {}

    def take() -> None:
        for _, kind, key, value in to_tuples(table.follow("earliest", consumer_id="c", idle_timeout=0)):
            if kind in ("+I", "+U"):
                state[key] = value
            else:
                state.pop(key, None)

    for round_, step in enumerate(steps):
        if step == "write":
            table.write([{"k": round_ % 3, "v": round_}])
        elif step == "delete":
            table.delete("k < 2")
        elif step == "compact":
            table.compact(full=True)
        elif step == "expire":
            expire_all(table)
        else:
            take()
    take()
    assert state == {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


WRITER = """
import sys, paimon
table = paimon.open_table(sys.argv[1])
for key in range(10):
    table.write([{"k": key, "v": key}])
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=0)
"""


def test_another_process_writes_and_expires_concurrently(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.consumers.reset("c", 1)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, table.location])
    keys: list[int] = []
    while len(keys) < 10:  # each follower stops early, and the next one continues
        with table.follow(consumer_id="c", idle_timeout="30 s") as follow:
            for batch, _ in zip(follow, range(3), strict=False):
                keys += [key for key in batch["k"].to_pylist() if key not in keys[-3:]]
                if len(keys) == 10:
                    break
    assert writer.wait() == 0
    for batch in table.follow(consumer_id="c", idle_timeout="100 ms"):  # what was not acknowledged, and nothing else
        keys += [key for key in batch["k"].to_pylist() if key not in keys[-3:]]
    assert keys == list(range(10))
    assert len(table.snapshots()) < 10


def test_a_stream_scan_uses_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are read on demand: of many files, few are opened."""
    monkeypatch.setattr("paimon.changes._BATCH_BYTES", 1)
    table = new_table(tmp_path, {"bucket": "8"})
    write_keys(table, *range(200))
    opened: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(table.engine.files, name)

        def open(self, path: str) -> Any:
            opened.append(path)
            return table.engine.files.open(path)

    watched: Any = Watched()
    follow = table.with_engine(evolve(table.engine, files=watched)).follow()
    next(follow)
    assert len([path for path in opened if "/bucket-" in path]) <= 3
