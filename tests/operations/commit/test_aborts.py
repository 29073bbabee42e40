"""A failed commit deletes only files that no snapshot references, and does not read a long history again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.commit_tables import create, data_file, engine_on, memory_table, message, table_at

from paimon.builders.write_builder import TableCommit
from paimon.domain.commit.message import CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict, CommitNotVisible, CommitOverwritten, CommitUncertain
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort, abort_on_failure, abort_on_refusal
from paimon.operations.metadata.snapshots import load_snapshot
from paimon.operations.refs.rollback import roll_back
from paimon.operations.table_context import TableContext
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles

SHORT, LONG = 12, 40


def count_snapshot_reads(history: int, act: Callable[[FaultyFiles], None]) -> int:
    """The number of snapshots that an action reads behind a history of this length."""
    memory, reads = MemoryFiles(), list[str]()
    table = table_at("/lake/t", keyed=True, options={"manifest.merge-min-count": "1000"})
    faultless = engine_on(memory)
    create(faultless, table)
    for number in range(history):
        commit(TableContext(faultless, table), CommitRequest((message(table, [f"f{number}"]),), "others"))

    def note(operation: str, path: str) -> Fault | None:
        if operation == "read" and "/snapshot/snapshot-" in path:
            reads.append(path)
        return None

    act(FaultyFiles(memory, note))
    return len(reads)


def test_a_lost_compaction_is_undone_without_reading_the_whole_history() -> None:
    def lose_one(files: FaultyFiles) -> None:
        engine, table = engine_on(files), table_at("/lake/t", keyed=True)
        stale = CompactIncrement((data_file("gone"),), (data_file("x", 5),))
        files.replace(f"{table.location}/bucket-0/x", b"")
        done = TableCommit(TableContext(engine, table), "u").commit([message(table, ["new"], compact=stale)])
        assert done.lost_compaction is not None
        assert files.status(f"{table.location}/bucket-0/x") is None

    assert count_snapshot_reads(LONG, lose_one) == count_snapshot_reads(SHORT, lose_one)


def test_a_failed_commit_deletes_its_files_without_reading_the_whole_history() -> None:
    def fail(files: FaultyFiles) -> None:
        engine, table = engine_on(files), table_at("/lake/t", keyed=True)
        files.replace(f"{table.location}/bucket-0/x", b"")
        latest = max(int(s.name.removeprefix("snapshot-")) for s in files.list(table.paths.snapshots) if "-" in s.name)
        seen = load_snapshot(TableContext(engine, table), latest)
        with (
            pytest.raises(CommitConflict),
            abort_on_failure(TableContext(engine, table), [message(table, ["x"])], "u", seen),
        ):
            raise CommitConflict("others were faster")
        assert files.status(f"{table.location}/bucket-0/x") is None

    assert count_snapshot_reads(LONG, fail) == count_snapshot_reads(SHORT, fail)


def test_a_commit_at_an_id_that_a_rollback_freed_is_not_aborted() -> None:
    """The snapshot that the writer read first is gone, so no bound for the search is known."""
    engine, table = memory_table(keyed=True)
    for name in ("a", "b", "c"):
        commit(TableContext(engine, table), CommitRequest((message(table, [name]),), "u"))
    seen = load_snapshot(TableContext(engine, table), 3)
    roll_back(TableContext(engine, table), 1)
    named, unnamed = message(table, ["named"]), message(table, ["unnamed"])
    for name in ("named", "unnamed"):
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    with pytest.raises(KeyboardInterrupt), abort_on_failure(TableContext(engine, table), [named, unnamed], "u", seen):
        commit(TableContext(engine, table), CommitRequest((named,), "u"))
        replaced = CompactIncrement((data_file("named"),), (data_file("other", 5),))
        commit(TableContext(engine, table), CommitRequest((message(table, [], compact=replaced),), "others"))
        raise KeyboardInterrupt
    assert engine.files.status(f"{table.location}/bucket-0/named") is not None
    assert engine.files.status(f"{table.location}/bucket-0/unnamed") is None


def test_without_a_bound_every_snapshot_of_the_user_is_checked() -> None:
    engine, table = memory_table(keyed=True)
    commit(TableContext(engine, table), CommitRequest((message(table, ["old"]),), "u"))
    replaced = CompactIncrement((data_file("old"),), (data_file("new", 5),))
    commit(TableContext(engine, table), CommitRequest((message(table, [], compact=replaced),), "others"))
    for name in ("old", "new"):
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    assert abort(TableContext(engine, table), [message(table, ["old", "new"])], "u") == ()


def create_overwritten_error(names: list[str]) -> CommitOverwritten:
    _, table = memory_table(keyed=True)
    error = CommitOverwritten(1, "u", 1, "java")
    error.request = CommitRequest((message(table, names),), "u")
    return error


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (CommitConflict("others were faster"), False),
        (create_overwritten_error(["earlier"]), False),
        (create_overwritten_error(["x"]), True),
        (CommitUncertain("u", 1, "the connection broke"), True),
        (CommitNotVisible("u", 1, (1,), CommitConflict("others were faster")), True),
        (KeyboardInterrupt(), True),
        (RuntimeError("an adapter broke"), True),
    ],
    ids=["refused", "an earlier one overwritten", "overwritten", "uncertain", "hidden", "interrupt", "other"],
)
def test_files_go_only_where_no_snapshot_can_need_them(error: BaseException, stays: bool) -> None:
    """An interrupt may occur while the storage receives the snapshot, which is written later."""
    engine, table = memory_table(keyed=True)
    commit(TableContext(engine, table), CommitRequest((message(table, ["a"]),), "u"))
    seen = load_snapshot(TableContext(engine, table), 1)
    engine.files.replace(f"{table.location}/bucket-0/x", b"")
    with (
        pytest.raises(type(error)),
        abort_on_refusal(TableContext(engine, table), [message(table, ["x"])], "u", seen),
    ):
        raise error
    assert (engine.files.status(f"{table.location}/bucket-0/x") is not None) == stays


def test_the_refusal_reaches_the_caller_although_its_files_cannot_be_deleted() -> None:
    memory, table = MemoryFiles(), table_at("/lake/t", keyed=True)
    create(engine_on(memory), table)

    def refuse_deletes(operation: str, path: str) -> Fault | None:
        return Fault.FAIL_BEFORE if operation == "delete" else None

    context = TableContext(engine_on(FaultyFiles(memory, refuse_deletes)), table)
    stale = message(table, ["x"], compact=CompactIncrement((data_file("gone"),), (data_file("y", 5),)))
    with (
        pytest.raises(CommitConflict, match="others were faster") as found,
        abort_on_refusal(context, [stale], "u", None),
    ):
        raise CommitConflict("others were faster")
    assert "clean-up failed, too" in found.value.__notes__[0]
