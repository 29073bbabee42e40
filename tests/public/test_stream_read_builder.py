"""Streams by plans, and streams that are iterated with ``async for``."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon

OPTIONS = {"bucket": "2", "changelog-producer": "input", "continuous.discovery-interval": "10 ms"}


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    columns = "id BIGINT NOT NULL, name STRING"
    return catalog.create_table("shop.orders", columns, primary_keys=["id"], options=OPTIONS)


def shorten(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["_snapshot_id"], row["_row_kind"], row["id"]) for row in table.to_pylist())


def test_plans_have_the_state_first_and_then_the_changes_of_each_snapshot(orders: paimon.Table) -> None:
    orders.write([{"id": 1, "name": "a"}, {"id": 2, "name": "a"}])
    orders.delete(where="id = 1")
    builder = orders.new_stream_read_builder()
    scan, read = builder.new_scan(idle_timeout=0), builder.new_read()
    first = next(scan)
    orders.write([{"id": 3, "name": "c"}])
    rest = list(scan)
    assert (first.snapshot_id, first.is_state) == (2, True)
    assert shorten(read.to_arrow(first)) == [(2, "+I", 2)]
    assert [(plan.snapshot_id, plan.is_state) for plan in rest] == [(3, False)]
    assert shorten(read.to_arrow(rest[0])) == [(3, "+I", 3)]
    assert scan.next_snapshot == 4


def test_plans_and_reads_travel_to_other_processes(orders: paimon.Table) -> None:
    orders.write([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    builder = orders.new_stream_read_builder().with_start("earliest").with_filter("id > 1").with_projection(["id"])
    (plan,) = builder.new_scan(idle_timeout=0)
    read = pickle.loads(pickle.dumps(builder.new_read()))
    table = pa.concat_tables([read.to_arrow(plan, [split]) for split in pickle.loads(pickle.dumps(plan)).splits()])
    assert shorten(table) == [(1, "+I", 2)]
    assert table.schema.names == ["_snapshot_id", "_row_kind", "id"]


def test_a_scan_continues_where_its_consumer_was_acknowledged(orders: paimon.Table) -> None:
    orders.write([{"id": 1, "name": "a"}])
    orders.write([{"id": 2, "name": "b"}])
    builder = orders.new_stream_read_builder().with_start("earliest").with_consumer_id("copy")
    with builder.new_scan(idle_timeout=0) as scan:
        assert [next(scan).snapshot_id, next(scan).snapshot_id] == [1, 2]
        scan.acknowledge(2)
    assert dict(orders.consumers) == {"copy": 2}
    assert [plan.snapshot_id for plan in builder.new_scan(idle_timeout=0)] == [2]


def test_a_scan_ends_at_the_last_snapshot_that_is_wanted(orders: paimon.Table) -> None:
    for number in range(3):
        orders.write([{"id": number, "name": "a"}])
    builder = orders.new_stream_read_builder().with_start(1)
    assert [plan.snapshot_id for plan in builder.new_scan(until=2)] == [1, 2]


def test_a_negative_timeout_is_refused(orders: paimon.Table) -> None:
    with pytest.raises(paimon.InvalidRequest, match="must not be negative"):
        orders.new_stream_read_builder().new_scan(idle_timeout=-1)


def test_tasks_write_and_follow_in_one_event_loop(orders: paimon.Table) -> None:
    async def follow() -> list[tuple[Any, ...]]:
        with orders.follow("earliest", until=3) as changes:
            return [row async for batch in changes for row in shorten(pa.table(batch))]

    async def write() -> None:
        for number in range(1, 4):
            await asyncio.to_thread(orders.write, [{"id": number, "name": "a"}])

    async def run() -> list[tuple[Any, ...]]:
        found, _ = await asyncio.gather(follow(), write())
        return found

    assert asyncio.run(run()) == [(1, "+I", 1), (2, "+I", 2), (3, "+I", 3)]


def test_plans_are_iterated_asynchronously(orders: paimon.Table) -> None:
    async def list_snapshots() -> list[int]:
        scan = orders.new_stream_read_builder().with_start("earliest").new_scan(idle_timeout=0)
        return [plan.snapshot_id async for plan in scan]

    for number in range(3):
        orders.write([{"id": number, "name": "a"}])
    assert asyncio.run(list_snapshots()) == [1, 2, 3]


def test_cancelling_a_task_ends_the_thread_that_waits(orders: paimon.Table) -> None:
    orders.write([{"id": 1, "name": "a"}])

    changes = orders.follow("latest")

    async def run() -> None:
        task = asyncio.ensure_future(changes.__anext__())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())  # it waits for its threads
    orders.write([{"id": 2, "name": "b"}])
    assert next(changes, None) is None


def test_row_kinds_are_the_first_column_of_a_read(orders: paimon.Table) -> None:
    orders.with_options({"write-only": "true"}).write(
        [{"id": 1, "name": "a", "op": "+I"}, {"id": 2, "name": "b", "op": "-D"}], kind_column="op"
    )
    builder = orders.new_read_builder().with_row_kinds().with_projection(["name"])
    table = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert sorted(table.to_pylist(), key=str) == [{"rowkind": "+I", "name": "a"}, {"rowkind": "-D", "name": "b"}]
