"""Batches of a stream in a real table: found while their snapshots exist, and never guessed after they expired."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import paimon
from paimon.domain.commit.stream_batches import StreamBatch
from paimon.domain.errors import InvalidRequest
from paimon.operations.commit import stream_batches
from paimon.operations.commit.stream_batches import check_stream_batch
from paimon.operations.metadata.snapshots import earliest_snapshot_id
from paimon.operations.table_context import TableContext

USER = "spark-1"
MINUTE = 60_000


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    return catalog.create_table("db.t", "id INT")


def commit_batches(table: paimon.Table, count: int) -> None:
    for number in range(count):
        table.new_stream_write_builder(USER).new_commit().commit(number, ())


def test_batches_are_found_by_their_snapshots_also_empty_ones(table: paimon.Table) -> None:
    assert not check_stream_batch(table.context, USER, StreamBatch(0))
    commit_batches(table, 3)
    table.write({"id": [1]})
    assert check_stream_batch(table.context, USER, StreamBatch(2))
    assert not check_stream_batch(table.context, USER, StreamBatch(3))
    assert not check_stream_batch(table.context, "spark-2", StreamBatch(0))
    for number, message in ((1, "older than batch 2"), (4, "up to 2, and 4 is the next")):
        with pytest.raises(InvalidRequest, match=message):
            check_stream_batch(table.context, USER, StreamBatch(number))


def test_a_batch_whose_snapshots_may_have_expired_is_refused(table: paimon.Table) -> None:
    commit_batches(table, 3)
    for _ in range(3):
        table.write({"id": [1]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=2, older_than=timedelta(0))
    first = table.snapshots()[0]
    planned_after, planned_before = first.time_millis + MINUTE, first.time_millis + MINUTE - 1
    assert not check_stream_batch(table.context, USER, StreamBatch(3, planned_after))
    for planned in (planned_before, None):
        with pytest.raises(InvalidRequest, match=f"snapshots begin with {first.id}"):
            check_stream_batch(table.context, USER, StreamBatch(3, planned))


def test_a_snapshot_that_expires_during_the_check_does_not_make_a_batch_new(
    table: paimon.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_batches(table, 1)
    for _ in range(3):
        table.write({"id": [1]})
    table.maintain.expire_snapshots(retain_min=2, retain_max=2, older_than=timedelta(0))
    listed = [3]

    def expire_after_listing(context: TableContext) -> int | None:
        found = listed.pop() if listed else earliest_snapshot_id(context)
        table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
        return found

    monkeypatch.setattr(stream_batches, "earliest_snapshot_id", expire_after_listing)
    with pytest.raises(InvalidRequest, match="snapshots begin with 4"):
        check_stream_batch(table.context, USER, StreamBatch(0))
