"""What is taken back after a failure: nothing that a snapshot names, and without reading a long history again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commit_world import create, data_file, engine_on, memory_table, message, table_at

from paimon.builders import TableCommit
from paimon.domain.commit.message import CompactIncrement
from paimon.domain.errors import CommitConflict, CommitNotVisible, CommitOverwritten, CommitUncertain
from paimon.operations.commit.abort import abort, aborted_on_failure, aborted_on_refusal
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.maintain.refs.rollback import roll_back
from paimon.operations.read.snapshots import load_snapshot
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles

SHORT, LONG = 12, 40


def counted(history: int, act: Callable[[FaultyFiles], None]) -> int:
    """How many snapshots are read by an act behind so many of them."""
    memory, reads = MemoryFiles(), list[str]()
    table = table_at("/lake/t", keyed=True, options={"manifest.merge-min-count": "1000"})
    calm = engine_on(memory)
    create(calm, table)
    for number in range(history):
        commit(calm, table, CommitRequest((message(table, [f"f{number}"]),), "others"))

    def note(operation: str, path: str) -> Fault | None:
        if operation == "read" and "/snapshot/snapshot-" in path:
            reads.append(path)
        return None

    act(FaultyFiles(memory, note))
    return len(reads)


def test_a_lost_compaction_is_taken_back_without_reading_all_of_history() -> None:
    def lose_one(files: FaultyFiles) -> None:
        engine, table = engine_on(files), table_at("/lake/t", keyed=True)
        stale = CompactIncrement((data_file("gone"),), (data_file("x", 5),))
        files.replace(f"{table.location}/bucket-0/x", b"")
        done = TableCommit(engine, table, "u").commit([message(table, ["new"], compact=stale)])
        assert done.lost_compaction is not None
        assert files.status(f"{table.location}/bucket-0/x") is None

    assert counted(LONG, lose_one) == counted(SHORT, lose_one)


def test_who_fails_takes_back_its_own_files_without_reading_all_of_history() -> None:
    def fail(files: FaultyFiles) -> None:
        engine, table = engine_on(files), table_at("/lake/t", keyed=True)
        files.replace(f"{table.location}/bucket-0/x", b"")
        latest = max(int(s.name.removeprefix("snapshot-")) for s in files.list(table.paths.snapshots) if "-" in s.name)
        seen = load_snapshot(engine, table.paths, latest)
        with pytest.raises(CommitConflict), aborted_on_failure(engine, table, [message(table, ["x"])], "u", seen):
            raise CommitConflict("others were faster")
        assert files.status(f"{table.location}/bucket-0/x") is None

    assert counted(LONG, fail) == counted(SHORT, fail)


def test_what_was_committed_at_a_number_that_a_rollback_set_free_is_kept() -> None:
    """The snapshot that was seen first is gone, so nothing tells how far back one must look."""
    engine, table = memory_table(keyed=True)
    for name in ("a", "b", "c"):
        commit(engine, table, CommitRequest((message(table, [name]),), "u"))
    seen = load_snapshot(engine, table.paths, 3)
    roll_back(engine, table, 1)
    named, unnamed = message(table, ["named"]), message(table, ["unnamed"])
    for name in ("named", "unnamed"):
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    with pytest.raises(KeyboardInterrupt), aborted_on_failure(engine, table, [named, unnamed], "u", seen):
        commit(engine, table, CommitRequest((named,), "u"))
        replaced = CompactIncrement((data_file("named"),), (data_file("other", 5),))
        commit(engine, table, CommitRequest((message(table, [], compact=replaced),), "others"))
        raise KeyboardInterrupt
    assert engine.files.status(f"{table.location}/bucket-0/named") is not None
    assert engine.files.status(f"{table.location}/bucket-0/unnamed") is None


def test_without_a_bound_every_snapshot_of_the_user_is_asked() -> None:
    engine, table = memory_table(keyed=True)
    commit(engine, table, CommitRequest((message(table, ["old"]),), "u"))
    replaced = CompactIncrement((data_file("old"),), (data_file("new", 5),))
    commit(engine, table, CommitRequest((message(table, [], compact=replaced),), "others"))
    for name in ("old", "new"):
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    assert abort(engine, table, [message(table, ["old", "new"])], "u") == ()


def overwritten(names: list[str]) -> CommitOverwritten:
    _, table = memory_table(keyed=True)
    error = CommitOverwritten(1, "u", 1, "java")
    error.request = CommitRequest((message(table, names),), "u")
    return error


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (CommitConflict("others were faster"), False),
        (overwritten(["earlier"]), False),
        (overwritten(["x"]), True),
        (CommitUncertain("u", 1, "the connection broke"), True),
        (CommitNotVisible("u", 1, (1,), CommitConflict("others were faster")), True),
        (KeyboardInterrupt(), True),
        (RuntimeError("an adapter broke"), True),
    ],
    ids=["refused", "an earlier one overwritten", "overwritten", "uncertain", "hidden", "interrupt", "other"],
)
def test_files_go_only_where_no_snapshot_can_need_them(error: BaseException, stays: bool) -> None:
    """An interrupt may strike while the snapshot is on its way to the storage, where it arrives later."""
    engine, table = memory_table(keyed=True)
    commit(engine, table, CommitRequest((message(table, ["a"]),), "u"))
    seen = load_snapshot(engine, table.paths, 1)
    engine.files.replace(f"{table.location}/bucket-0/x", b"")
    with pytest.raises(type(error)), aborted_on_refusal(engine, table, [message(table, ["x"])], "u", seen):
        raise error
    assert (engine.files.status(f"{table.location}/bucket-0/x") is not None) == stays
