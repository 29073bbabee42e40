"""Batches of a stream in a real table: found while their snapshots exist, and never guessed after they expired."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.builders.direct_writes import commit_messages
from paimon.domain.commit.stream_batches import PLAN_HASH, StreamBatch
from paimon.domain.errors import InvalidRequest
from paimon.operations.commit import commit as commit_module
from paimon.operations.commit import history
from paimon.operations.commit.history import check_stream_batch
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


@pytest.mark.parametrize("is_late", [False, True])
def test_a_batch_that_another_process_planned_otherwise_is_never_taken_for_ours(
    table: paimon.Table, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """The other process commits before this one looks, or after its look."""

    def commit_batch(rows: list[int], plan: str) -> None:
        builder = table.new_batch_write_builder(USER)
        with builder.new_write() as writer:
            writer.write({"id": rows})
            commit_messages(builder.new_commit(), writer.prepare_commit(), {PLAN_HASH: plan}, 0)

    look = commit_module.is_already_committed

    def look_before_the_other(*arguments: Any) -> bool:
        found = look(*arguments)
        monkeypatch.setattr(commit_module, "is_already_committed", look)
        commit_batch([1], "a")
        return found

    if is_late:
        monkeypatch.setattr(commit_module, "is_already_committed", look_before_the_other)
    else:
        commit_batch([1], "a")
    with pytest.raises(InvalidRequest, match="Batch 0 of the stream has another plan"):
        commit_batch([2], "b")
    commit_batch([1], "a")  # a replay
    assert table.scan().to_arrow().to_pydict() == {"id": [1]}
    assert len(list(Path(table.location).rglob("data-*"))) == 1


def test_a_batch_whose_snapshots_may_have_expired_is_refused(table: paimon.Table) -> None:
    commit_batches(table, 3)
    for _ in range(3):
        table.write({"id": [1]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=2, older_than=timedelta(0))
    assert check_stream_batch(table.context, USER, StreamBatch(2))
    shutil.rmtree(Path(table.location) / "last-commit")  # as if another client had expired them
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
    shutil.rmtree(Path(table.location) / "last-commit")  # as if another client had expired them
    listed = [3]

    def expire_after_listing(context: TableContext) -> int | None:
        found = listed.pop() if listed else earliest_snapshot_id(context)
        table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
        return found

    monkeypatch.setattr(history, "earliest_snapshot_id", expire_after_listing)
    with pytest.raises(InvalidRequest, match="snapshots begin with 4"):
        check_stream_batch(table.context, USER, StreamBatch(0))
