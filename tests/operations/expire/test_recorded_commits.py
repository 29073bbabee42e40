"""Commits whose snapshots expired: repeated ones are recognized, by every way to commit, and new ones are made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

import paimon
from paimon.domain.commit.publishing import CommitStatus
from paimon.domain.commit.stream_batches import PLAN_HASH, StreamBatch
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.operations.commit.history import check_stream_batch
from paimon.ports.files import FileIO
from paimon.testing.faulty_files import Fault, FaultyFiles

USER = "job"
Rows = dict[str, list[int]]
Repeat = Callable[[paimon.Table, int], object]


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    return catalog.create_table("db.t", "id INT")


def write(table: paimon.Table, identifier: int, properties: dict[str, str] | None = None) -> None:
    table.write({"id": [identifier]}, commit_user=USER, identifier=identifier, properties=properties)


def expire(table: paimon.Table, writes: int = 3) -> None:
    """Let another writer commit and expire what was there before."""
    for number in range(writes):
        table.write({"id": [100 + number]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert len(table.snapshots()) == 1


def rows_below(table: paimon.Table, limit: int = 100) -> list[int]:
    return sorted(table.scan(where=f"id < {limit}").to_arrow()["id"].to_pylist())


def list_records(table: paimon.Table) -> list[Path]:
    return sorted((Path(table.location) / "last-commit").glob("*"))


def prepare_and_commit(table: paimon.Table, identifier: int, is_stream: bool) -> None:
    if is_stream:
        stream = table.new_stream_write_builder(USER)
        with stream.new_write() as writer:
            writer.write({"id": [identifier]})
            stream.new_commit().commit(identifier, writer.prepare_commit(identifier))
        return
    batch = table.new_batch_write_builder(USER)
    with batch.new_write() as writer:
        writer.write({"id": [identifier]})
        batch.new_commit().commit(writer.prepare_commit(), identifier=identifier)


def filter_and_commit(table: paimon.Table, identifier: int) -> None:
    if table.new_stream_write_builder(USER).new_commit().filter_committed([identifier]):
        write(table, identifier)


def capture(table: paimon.Table, identifier: int) -> None:
    paimon.cdc([f'{{"op": "c", "after": {{"id": {identifier}}}}}'], table, "debezium-json",
               commit_user=USER, identifier=identifier)  # fmt: skip


@pytest.mark.parametrize(
    "repeat",
    [
        write,
        lambda table, identifier: prepare_and_commit(table, identifier, is_stream=True),
        lambda table, identifier: prepare_and_commit(table, identifier, is_stream=False),
        filter_and_commit,
        capture,
    ],
)
def test_a_repeated_commit_is_recognized_after_its_snapshot_expired(table: paimon.Table, repeat: Repeat) -> None:
    write(table, 6)
    write(table, 7)
    expire(table)
    snapshots = len(table.snapshots())
    repeat(table, 7)
    assert rows_below(table) == [6, 7] and len(table.snapshots()) == snapshots
    assert table.outcome(USER, 7).status is CommitStatus.COMMITTED
    with pytest.raises(InvalidRequest, match="must be larger than 7"):
        write(table, 5)
    repeat(table, 8)
    assert rows_below(table) == [6, 7, 8]
    expire(table)
    repeat(table, 8)
    assert rows_below(table) == [6, 7, 8]
    assert len(list_records(table)) == 1


def test_expiry_after_a_commit_by_sql_and_of_a_branch_records_too(table: paimon.Table, tmp_path: Path) -> None:
    options = {"snapshot.num-retained.min": 1, "snapshot.num-retained.max": 1, "snapshot.time-retained": "1 ms"}
    write(table, 1)
    table.with_options(options).write({"id": [100]})
    table.with_options(options).write({"id": [100]})
    write(table, 1)
    assert rows_below(table) == [1]
    write(table, 2)
    table.write({"id": [100]})
    paimon.connect(tmp_path).sql("CALL sys.expire_snapshots('db.t', retain_max => 1)")
    write(table, 2)
    assert rows_below(table) == [1, 2]
    table.tags.create("start")
    table.branches.create("dev", "start")
    branch = paimon.connect(tmp_path).table("db.t$branch_dev")
    assert isinstance(branch, paimon.Table)
    write(branch, 3)
    expire(branch)
    write(branch, 3)
    assert rows_below(branch) == [1, 2, 3]
    write(table, 3)  # the branches have histories of their own
    assert rows_below(table) == [1, 2, 3]
    table.branches.fast_forward("dev")
    write(table, 3)
    assert rows_below(table) == [1, 2, 3]


def test_only_users_without_a_later_snapshot_are_recorded(table: paimon.Table) -> None:
    table.write({"id": [1]})
    write(table, 1)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert list_records(table) == []
    for number in range(3):
        table.write({"id": [2]}, commit_user=f"other {number}", identifier=0)
    expire(table)
    records = list_records(table)
    assert len(records) == 4
    table.write({"id": [3]}, commit_user="new", identifier=0)  # a new job has no record
    assert table.scan(where="id = 3").count() == 1
    table.maintain.remove_orphans(timedelta(0), dry_run=False, allow_young=True)
    assert list_records(table) == records
    assert not table.maintain.check(deep=True).faults


def test_a_record_has_the_plan_of_a_batch_of_a_stream(table: paimon.Table) -> None:
    write(table, 4, {PLAN_HASH: "a"})
    expire(table)
    assert check_stream_batch(table.context, USER, StreamBatch(4, plan_hash="a"))
    assert not check_stream_batch(table.context, USER, StreamBatch(5, plan_hash="b"))
    for plan in (lambda: write(table, 4, {PLAN_HASH: "b"}),
                 lambda: check_stream_batch(table.context, USER, StreamBatch(4, plan_hash="b"))):  # fmt: skip
        with pytest.raises(InvalidRequest, match="Batch 4 of the stream has another plan"):
            plan()


def test_a_rollback_to_an_expired_tag_deletes_the_records_after_it(table: paimon.Table) -> None:
    write(table, 1)
    table.tags.create("first")
    write(table, 2)
    expire(table)
    table.maintain.rollback_to(tag="first")
    write(table, 2)
    assert rows_below(table) == [1, 2]
    expire(table)
    write(table, 2)
    assert rows_below(table) == [1, 2]


@pytest.mark.parametrize("writes_before", [0, 2])
def test_an_expiry_that_cannot_record_a_commit_keeps_its_snapshot(table: paimon.Table, writes_before: int) -> None:
    """On a full disk, the snapshots before are expired, which frees space; then the record is tried again."""
    for _ in range(writes_before):
        table.write({"id": [200]})
    write(table, 1)
    for _ in range(3):
        table.write({"id": [300]})

    def fail(operation: str, path: str) -> Fault | None:
        return Fault.FAIL_BEFORE if operation == "close" and "/last-commit/" in path else None

    failing: FileIO = FaultyFiles(table.engine.files, fail)
    full = table.with_engine(evolve(table.engine, files=failing))
    with pytest.raises(StorageError, match=f"user 'job' cannot be recorded, so snapshot {writes_before + 1} stays"):
        full.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert [s.id for s in table.snapshots()] == list(range(writes_before + 1, writes_before + 5))
    assert not table.maintain.check(deep=True).faults
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    write(table, 1)
    assert rows_below(table) == [1]


def test_a_power_loss_after_an_expiry_does_not_take_the_record(table: paimon.Table) -> None:
    """The disk then lacks the files that were not flushed, which are hints."""
    lost: list[str] = []

    def note_unflushed(operation: str, path: str) -> None:
        if operation == "replace":
            lost.append(path)

    watched: FileIO = FaultyFiles(table.engine.files, note_unflushed)
    write(table, 1)
    expire(table.with_engine(evolve(table.engine, files=watched)))
    assert lost
    table.engine.files.delete(lost)
    write(table, 1)
    assert rows_below(table) == [1]


@pytest.mark.parametrize("call", [
    lambda table: table.write({"id": [1]}, identifier=1),
    lambda table: paimon.cdc(['{"op": "c", "after": {"id": 1}}'], table, "debezium-json", identifier=1),
])  # fmt: skip
def test_an_identifier_without_a_user_is_refused(table: paimon.Table, call: Callable[[paimon.Table], object]) -> None:
    with pytest.raises(InvalidRequest, match="'identifier' has no effect without a commit user"):
        call(table)
    assert table.snapshots() == []
