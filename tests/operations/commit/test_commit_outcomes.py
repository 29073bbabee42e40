"""The commit status after overwritten commits and commits in doubt, and calls of callbacks."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable

import pytest
from attrs import evolve
from support.commit_tables import (
    as_another_process,
    create,
    data_file,
    engine_on,
    live_names,
    memory_table,
    message,
    table_at,
)

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.publishing import CommitStatus
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    CommitUncertain,
    InvalidRequest,
    NotFound,
    StorageError,
    Unsupported,
)
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.refs.rollback import roll_back
from paimon.operations.table_context import TableContext
from paimon.operations.write.resolve_commit import find_outcome, resolve_commit
from paimon.ports.callbacks import CommitEvent
from paimon.ports.engine import Engine
from paimon.ports.files import PutOutcome
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles


def put(
    engine: Engine, table: TableDefinition, *messages: CommitMessage, user: str = "u", **request: object
) -> CommitResult:
    return commit(TableContext(engine, table), CommitRequest(messages, user, **request))  # type: ignore[arg-type]


def with_file(engine: Engine, table: TableDefinition, *names: str) -> CommitMessage:
    """A message whose files exist."""
    for name in names:
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    return message(table, names)


class CheckThenRename:
    """Another client without put-if-absent: it checks that the snapshot is absent, then overwrites."""

    def __init__(self, engine: Engine, table: TableDefinition) -> None:
        self._seen = as_another_process(engine, copy_files(engine.files))
        self._engine = engine
        self._table = table

    def publish(self, *names: str) -> int:
        """Publish a commit that is built on the table as it was at the check."""
        before = set(contents(self._seen))
        (made,) = put(self._seen, self._table, message(self._table, names), user="java").snapshot_ids
        for path in sorted(set(contents(self._seen)) - before):
            self._engine.files.replace(path, contents(self._seen)[path])
        return made


def contents(engine: Engine) -> dict[str, bytes]:
    assert isinstance(engine.files, MemoryFiles)
    return engine.files.contents


def copy_files(files: object) -> MemoryFiles:
    assert isinstance(files, MemoryFiles)
    copy = MemoryFiles()
    for path, data in files.contents.items():
        copy.replace(path, data)
    return copy


def test_an_overwritten_commit_is_reported_by_the_next_commit() -> None:
    engine, table = memory_table()
    put(engine, table, with_file(engine, table, "a"))
    other = CheckThenRename(engine, table)
    mine = put(engine, table, with_file(engine, table, "mine"), user="me", commit_identifier=7)
    assert other.publish("theirs") == mine.snapshot_ids[0] == 2
    with pytest.raises(CommitOverwritten, match="Snapshot 2 of user 'me' was replaced by one of user 'java'") as lost:
        put(engine, table, message(table, ["next"]))
    assert (lost.value.snapshot_id, lost.value.identifier, lost.value.other_user) == (2, 7, "java")
    assert live_names(engine, table) == ["a", "theirs"]
    assert resolve_commit(TableContext(engine, table), lost.value).snapshot_ids == (3,)
    put(engine, table, message(table, ["next"]))
    assert live_names(engine, table) == ["a", "mine", "next", "theirs"]
    snapshot = latest_snapshot(TableContext(engine, table))
    assert snapshot is not None and snapshot.id == 4


def test_it_is_reported_once_and_the_new_commit_can_be_repeated() -> None:
    engine, table = memory_table()
    other = CheckThenRename(engine, table)
    put(engine, table, message(table, ["mine"]))
    other.publish("theirs")
    with pytest.raises(CommitOverwritten):
        put(engine, table, message(table, ["next"]))
    put(engine, table, message(table, ["next"]))
    assert live_names(engine, table) == ["next", "theirs"]


def test_it_is_found_below_the_head_too() -> None:
    engine, table = memory_table()
    other = CheckThenRename(engine, table)
    put(engine, table, message(table, ["mine"]))
    other.publish("theirs")
    put(as_another_process(engine), table, message(table, ["later"]), user="third")
    with pytest.raises(CommitOverwritten, match="'java'"):
        put(engine, table, message(table, ["next"]))


def test_a_snapshot_that_others_built_on_before_it_was_replaced_is_not_lost() -> None:
    engine, table = memory_table()
    other = CheckThenRename(engine, table)
    put(engine, table, message(table, ["mine"]))
    put(as_another_process(engine), table, message(table, ["later"]), user="third")
    other.publish("theirs")
    put(engine, table, message(table, ["next"]))
    assert live_names(engine, table) == ["later", "mine", "next"]


@pytest.mark.parametrize("then", ["expired", "rolled back by hand", "rolled back by another"])
def test_an_expired_or_rolled_back_snapshot_is_not_reported_as_overwritten(then: str) -> None:
    engine, table = memory_table()
    for name in ("a", "mine"):
        put(engine, table, message(table, [name]))
    if then == "expired":
        for name in ("b", "c"):
            put(as_another_process(engine), table, message(table, [name]), user="third")
        engine.files.delete([table.paths.snapshot(i) for i in (1, 2, 3)])
    else:
        roll_back(TableContext(engine if "hand" in then else as_another_process(engine), table), snapshot_id=1)
        if "hand" in then:
            put(as_another_process(engine), table, message(table, ["b"]), user="third")
    put(engine, table, message(table, ["next"]))
    assert "next" in live_names(engine, table)


def test_a_compaction_that_was_overwritten_loses_no_row() -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a"]), user="third")
    other = CheckThenRename(engine, table)
    upgraded = CompactIncrement((data_file("a"),), (data_file("a", 5),))
    put(engine, table, message(table, compact=upgraded))
    other.publish("theirs")
    put(engine, table, message(table, ["next"]))
    assert live_names(engine, table) == ["a", "next", "theirs"]


def test_the_check_of_earlier_commits_reads_one_snapshot_with_concurrent_commits_and_none_without() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t")
    read_ids: list[str] = []

    def note(operation: str, path: str) -> Fault | None:
        if operation == "read" and "/snapshot/snapshot-" in path:
            read_ids.append(path.rpartition("-")[2])
        return None

    create(engine_on(memory), table)
    engine = engine_on(FaultyFiles(memory, note))
    put(engine, table, message(table, ["a"]))
    read_ids.clear()
    put(engine, table, message(table, ["b"]))
    # The latest, the absence of the next one, and the base again at the end.
    assert read_ids == ["1", "2", "1"]
    put(engine_on(memory), table, message(table, ["c"]), user="other")
    read_ids.clear()
    put(engine, table, message(table, ["d"]))
    assert read_ids == ["3", "4", "2", "3"]


# --- in doubt


def create_commit_in_doubt(lands: str, batch: bool = False) -> tuple[MemoryFiles, TableDefinition, CommitUncertain]:
    """A commit of unknown status: its put succeeds or not, and its snapshot cannot be read for a while."""
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, with_file(faultless, table, "a"))
    path = table.paths.snapshot(2)

    def plan_fault(operation: str, where: str) -> Fault | None:
        if where != path or operation not in ("put_if_absent", "read"):
            return None
        if operation == "put_if_absent":
            return Fault.FAIL_AFTER if lands == "lands" else Fault.FAIL_BEFORE
        return Fault.FAIL_BEFORE if path in memory.contents or stuck else None

    stuck: list[str] = []

    def late(operation: str, where: str) -> Fault | None:
        if operation == "put_if_absent" and where == path:
            stuck.append(where)
        return plan_fault(operation, where)

    request = {} if batch else {"commit_identifier": 4}
    with pytest.raises(CommitUncertain) as doubt:
        put(engine_on(FaultyFiles(memory, late)), table, with_file(faultless, table, "mine"), user="me", **request)
    return memory, table, doubt.value


@pytest.mark.parametrize("batch", [True, False], ids=["batch", "identifier"])
@pytest.mark.parametrize("lands", ["lands", "does not"])
def test_a_commit_in_doubt_is_resolved_once(lands: str, batch: bool) -> None:
    memory, table, doubt = create_commit_in_doubt(lands, batch)
    engine = engine_on(memory)
    outcome = find_outcome(
        TableContext(engine, table), doubt.commit_user, doubt.identifier, doubt.snapshot_id, doubt.identity
    )
    assert outcome.status is (CommitStatus.COMMITTED if lands == "lands" else CommitStatus.OPEN)
    assert outcome.committed is (True if lands == "lands" else None)
    done = resolve_commit(TableContext(engine, table), doubt)
    assert done.snapshot_ids == (2,)
    assert done.already_committed is (lands == "lands")
    assert resolve_commit(TableContext(engine, table), doubt).already_committed
    assert live_names(engine, table) == ["a", "mine"]


@pytest.mark.parametrize("batch", [True, False], ids=["batch", "identifier"])
def test_a_late_put_during_a_retry_does_not_duplicate_the_commit(batch: bool) -> None:
    """The old request was still on its way, and arrives just before the new one."""
    memory, table, doubt = create_commit_in_doubt("lands", batch)
    path = table.paths.snapshot(2)
    first = memory.read(path)
    memory.delete([path])

    def land(operation: str, where: str) -> Fault | None:
        if operation == "put_if_absent" and where == path:
            memory.put_if_absent(path, first)
        return None

    done = resolve_commit(TableContext(engine_on(FaultyFiles(memory, land)), table), doubt)
    assert done.snapshot_ids == (2,)
    assert live_names(engine_on(memory), table) == ["a", "mine"]
    assert latest_snapshot(TableContext(engine_on(memory), table)).id == 2  # type: ignore[union-attr]


def test_a_commit_is_not_committed_if_another_snapshot_has_its_id() -> None:
    memory, table, doubt = create_commit_in_doubt("does not")
    engine = engine_on(memory)
    put(engine, table, message(table, ["other"]), user="other")
    assert (
        find_outcome(TableContext(engine, table), "me", 4, doubt.snapshot_id, doubt.identity).status
        is CommitStatus.NOT_COMMITTED
    )
    assert resolve_commit(TableContext(engine, table), doubt).snapshot_ids == (3,)
    assert live_names(engine, table) == ["a", "mine", "other"]


def test_an_expired_commit_stays_unknown_and_is_not_repeated() -> None:
    memory, table, doubt = create_commit_in_doubt("lands", batch=True)
    engine = engine_on(memory)
    for name in ("b", "c"):
        put(engine, table, message(table, [name]), user="other")
    memory.delete([table.paths.snapshot(i) for i in (1, 2, 3)])
    assert (
        find_outcome(TableContext(engine, table), "me", doubt.identifier, 2, doubt.identity).status
        is CommitStatus.UNKNOWN
    )
    with pytest.raises(CommitUncertain):
        resolve_commit(TableContext(engine, table), doubt)
    assert live_names(engine, table) == ["a", "b", "c", "mine"]


def test_missing_files_are_not_committed_again() -> None:
    memory, table, doubt = create_commit_in_doubt("does not")
    memory.delete([f"{table.location}/bucket-0/mine"])
    with pytest.raises(NotFound, match="bucket-0/mine"):
        resolve_commit(TableContext(engine_on(memory), table), doubt)


def test_the_commit_status_is_found_by_user_and_identifier_only() -> None:
    engine, table = memory_table()
    for number in (1, 3):
        put(engine, table, message(table, [f"f{number}"]), user="me", commit_identifier=number)
    put(engine, table, message(table, ["batch"]), user="job")
    statuses = {n: find_outcome(TableContext(engine, table), "me", n).status for n in (0, 1, 2, 3, 4)}
    assert statuses == {
        0: CommitStatus.UNKNOWN,
        1: CommitStatus.COMMITTED,
        2: CommitStatus.NOT_COMMITTED,
        3: CommitStatus.COMMITTED,
        4: CommitStatus.OPEN,
    }
    assert find_outcome(TableContext(engine, table), "job").snapshot_ids == (3,)
    assert find_outcome(TableContext(engine, table), "absent").status is CommitStatus.OPEN
    put(engine, table, message(table, ["again"]), user="job")
    with pytest.raises(InvalidRequest, match="several"):
        find_outcome(TableContext(engine, table), "job")


def test_a_doubt_about_the_compaction_is_no_doubt_about_the_rows() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t", keyed=True)
    create(engine_on(memory), table)
    tried: list[str] = []

    def plan_fault(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path == table.paths.snapshot(2):
            tried.append(path)
        return Fault.FAIL_BEFORE if path in tried else None

    engine = engine_on(FaultyFiles(memory, plan_fault))
    compact = CompactIncrement((data_file("a"),), (data_file("a", 5),))
    done = put(engine, table, message(table, ["a"], compact=compact))
    assert done.snapshot_ids == (1,)
    assert isinstance(done.lost_compaction, CommitUncertain)


def test_errors_are_picklable() -> None:
    doubt = CommitUncertain("u", 3, "the reply got lost", snapshot_id=7, identity="x")
    for error in (
        doubt, CommitOverwritten(3, "me", 1, "java"), NotFound("table", "t"), StorageError("p", "full"),
        CommitConflict("no", files=["f"]), InvalidRequest("no", subject="s", hint="h"),
    ):  # fmt: skip
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error) and str(back) == str(error)
        assert vars(back) == vars(error)


# --- callbacks


def calls_of(engine: Engine, *more: Callable[[CommitEvent], None]) -> tuple[Engine, list[CommitEvent]]:
    events: list[CommitEvent] = []
    callbacks = {"first": events.append, **{f"more{i}": callback for i, callback in enumerate(more)}}
    return evolve(engine, callbacks=callbacks), events


def test_callbacks_are_called_after_each_snapshot() -> None:
    engine, table = memory_table(partitioned=True, keyed=True)
    seen: list[int | None] = []

    def look(event: CommitEvent) -> None:
        latest = latest_snapshot(TableContext(engine, table))
        seen.append(latest.id if latest else None)

    calling, events = calls_of(engine, look)
    compact = CompactIncrement((data_file("a"),), (data_file("a", 5),))
    put(calling, table, message(table, ["a"], part=7, compact=compact), user="me", commit_identifier=3)
    assert [(e.commit_user, e.identifier, e.repeated) for e in events] == [("me", 3, False)] * 2
    assert [e.snapshot.commit_kind for e in events if e.snapshot] == [CommitKind.APPEND, CommitKind.COMPACT]
    assert [e.snapshot.id for e in events if e.snapshot] == seen == [1, 2]
    assert [e.partitions for e in events] == [({"p": 7},)] * 2
    assert events[0].change is not None and events[0].change.added_files == 1


def test_callbacks_are_called_again_for_an_already_committed_commit() -> None:
    engine, table = memory_table()
    prepared = message(table, ["a"])
    put(engine, table, prepared, commit_identifier=3)  # its process died before it called the callbacks
    calling, events = calls_of(engine)
    assert put(calling, table, prepared, commit_identifier=3).already_committed
    ((event,),) = (events,)
    assert event.repeated and event.messages == (prepared,)
    assert event.snapshot is not None and event.snapshot.id == 1


def test_callbacks_are_not_called_without_a_snapshot() -> None:
    engine, table = memory_table(keyed=True)
    calling, events = calls_of(engine)
    put(calling, table)
    with pytest.raises(CommitConflict):
        put(calling, table, message(table, compact=CompactIncrement((data_file("gone"),), (data_file("x", 5),))))
    assert events == []


@pytest.mark.parametrize("strict_warnings", [False, True])
def test_a_callback_that_fails_leaves_the_commit_and_the_other_callbacks(strict_warnings: bool) -> None:
    engine, table = memory_table()

    def fail(event: CommitEvent) -> None:
        raise ValueError("metastore is away")

    events: list[CommitEvent] = []
    calling = evolve(engine, callbacks={"broken": fail, "after": events.append})
    with warnings.catch_warnings(record=not strict_warnings) as caught:
        warnings.simplefilter("error" if strict_warnings else "always")
        done = put(calling, table, message(table, ["a"]))
    assert done.snapshot_ids == (1,)
    (failure,) = done.failed_callbacks
    assert (
        "Snapshot 1 of table 'd.t' is committed" in failure and "'broken'" in failure and "metastore is away" in failure
    )
    assert len(events) == 1
    if caught is not None:
        assert [str(w.message) for w in caught] == [failure]


def test_names_in_the_option_must_be_bound_and_are_never_loaded() -> None:
    engine, table = memory_table()
    wanting = evolve(table, options=TableOptions.of({"commit.callbacks": "org.example.Notify, os.system"}))
    with pytest.raises(Unsupported, match=r"'org\.example\.Notify', 'os\.system'") as refused:
        put(engine, wanting, message(table, ["a"]))
    assert "with_callbacks" in str(refused.value.hint)
    assert latest_snapshot(TableContext(engine, table)) is None
    events: list[CommitEvent] = []
    bound = evolve(engine, callbacks={"org.example.Notify": events.append, "os.system": events.append})
    put(bound, wanting, message(table, ["a"]))
    assert len(events) == 2
    assert json.dumps(dict(events[0].table.options.values)) == json.dumps(dict(wanting.options.values))


@pytest.mark.parametrize("first", [Fault.FAIL_BEFORE, Fault.REPLY_UNKNOWN])
def test_a_commit_whose_puts_were_all_refused_is_not_in_doubt(first: Fault) -> None:
    """A put without a reply may have succeeded, even if all later puts fail."""
    memory, table = MemoryFiles(), table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, with_file(faultless, table, "a"))
    before = set(memory.contents)
    path = table.paths.snapshot(2)
    tries: list[Fault] = []

    def plan_fault(operation: str, where: str) -> Fault | None:
        if operation != "put_if_absent" or where != path:
            return None
        tries.append(Fault.FAIL_BEFORE if tries else first)
        return tries[-1]

    files = Lost(memory, path) if first is Fault.REPLY_UNKNOWN else memory
    with pytest.raises(StorageError if first is Fault.FAIL_BEFORE else CommitUncertain):
        put(engine_on(FaultyFiles(files, plan_fault)), table, with_file(faultless, table, "mine"), user="me")
    assert len(tries) > 1
    left = {name.rpartition("/")[2] for name in set(memory.contents) - before} - {"mine"}
    assert not left if first is Fault.FAIL_BEFORE else left, "manifests of a commit in doubt stay"


class Lost(MemoryFiles):
    """The put of one path writes nothing and has an unknown outcome."""

    def __init__(self, inner: MemoryFiles, path: str) -> None:
        super().__init__()
        self.contents = inner.contents
        self._path = path

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        return PutOutcome.UNKNOWN if path == self._path else super().put_if_absent(path, data)
