"""Tables whose reads hide level 0: an acknowledged row can be read at once while others write or compact.

The other client acts between the APPEND of a write and its COMPACT, or before each retry of the compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from attrs import define, evolve
from support.case_lists import mark_products
from support.tables import create_table

import paimon
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.errors import CommitNotVisible, CommitUncertain, CorruptTable, PaimonError, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.schema.changes import AddColumn
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.data_types import IntType
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit

VECTORS = {"deletion-vectors.enabled": "true"}
FIRST_ROW = {"merge-engine": "first-row"}
LOOKUP = {"changelog-producer": "lookup"}
HIDING = {
    "vectors": VECTORS, "vectors-changelog": {**VECTORS, **LOOKUP},
    "first-row": FIRST_ROW, "first-row-changelog": {**FIRST_ROW, **LOOKUP},
}  # fmt: skip
Act = Callable[[], object]


@define(eq=False)
class Interrupted:
    """Publish as another process does. Before this process publishes a COMPACT, call `act`, at most `times` times."""

    other: SnapshotCommit
    act: Act
    times: int = 1
    is_acting: bool = False

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        if snapshot.commit_kind is CommitKind.COMPACT and self.times > 0 and not self.is_acting:
            self.times -= 1
            self.is_acting = True
            try:
                self.act()
            finally:
                self.is_acting = False
        return self.other.publish(paths, snapshot, base)


def create_retrying_table(home: Path, options: Mapping[str, str], name: str = "t") -> paimon.Table:
    options = {"bucket": "1", "commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "2 ms", **options}
    return create_table(home, "k INT NOT NULL, v INT", f"db.{name}", primary_keys=["k"], options=options)


def open_again(table: paimon.Table) -> paimon.Table:
    """Return the same table as another process opens it."""
    found = paimon.open_table(table.location)
    assert isinstance(found, paimon.Table)
    return found


def interrupt_commits(table: paimon.Table, act: Act, times: int = 1) -> paimon.Table:
    mine = open_again(table)
    return mine.with_engine(evolve(mine.engine, snapshots=Interrupted(mine.engine.snapshots, act, times)))


def rows(table: paimon.Table) -> dict[int, int]:
    found = open_again(table).scan().to_arrow().to_pylist()
    assert len({row["k"] for row in found}) == len(found)
    return {row["k"]: row["v"] for row in found}


def levels(table: paimon.Table) -> list[int]:
    snapshot = latest_snapshot(table.context)
    return sorted(e.file.level for e in CommitBase(table.context, snapshot).read_live_files(lambda _: True))


def list_orphans(table: paimon.Table) -> list[str]:
    """Files that no snapshot references (all snapshots exist)."""
    gone = open_again(table).maintain.remove_orphans(table.engine.clock.now_millis(), dry_run=True)
    return sorted(gone["path"].to_pylist())


def write_one(k: int, v: int) -> list[dict[str, int]]:
    return [{"k": k, "v": v}]


def commits_what_was_prepared(table: paimon.Table) -> Act:
    """A writer whose compaction was planned before the write and is published during it: it lacks the new rows."""
    builder = open_again(table).new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(write_one(2, 20))
        messages = writer.prepare_commit()
    return lambda: builder.new_commit().commit(messages)


OTHERS: dict[str, Callable[[paimon.Table], Act]] = {
    "commits what it prepared": commits_what_was_prepared,
    "upserts another key": lambda table: lambda: open_again(table).write(write_one(2, 20)),
    "upserts twice": lambda table: lambda: [open_again(table).write(write_one(k, k)) for k in (2, 3)],
    "compacts": lambda table: lambda: open_again(table).compact(),
    "compacts all": lambda table: lambda: open_again(table).compact(full=True),
    "only appends": lambda table: lambda: open_again(table).with_options({"write-only": True}).write(write_one(2, 20)),
}


@pytest.mark.parametrize(
    ("other", "hiding"),
    mark_products(OTHERS, HIDING, always=["upserts another key", "upserts twice", "compacts", "only appends"]),
)
def test_an_acknowledged_row_is_readable_despite_concurrent_commits(tmp_path: Path, other: str, hiding: str) -> None:
    table = create_retrying_table(tmp_path, HIDING[hiding])
    table.write(write_one(0, 0))
    mine = interrupt_commits(table, OTHERS[other](table))
    mine.write(write_one(1, 10))
    assert rows(table)[1] == 10
    assert not open_again(table).maintain.check(deep=True).faults
    assert list_orphans(table) == []


@pytest.mark.parametrize(("hiding", "verb"), mark_products(HIDING, ["stream", "encoded", "overwrite"]))
def test_every_committer_makes_its_rows_readable(tmp_path: Path, hiding: str, verb: str) -> None:
    table = create_retrying_table(tmp_path, HIDING[hiding])
    table.write(write_one(0, 0))
    mine = interrupt_commits(table, commits_what_was_prepared(table))
    if verb == "overwrite":
        mine.overwrite(write_one(1, 10))
    else:
        builder = mine.new_stream_write_builder("me")
        with builder.new_write() as writer:
            writer.write(write_one(1, 10))
            messages = writer.prepare_commit(1)
        builder.new_commit().commit(1, decode(encode(messages)) if verb == "encoded" else messages)
    assert rows(table)[1] == 10
    assert list_orphans(table) == []


def test_strict_mode_refuses_no_compaction_that_was_planned_after_the_others(tmp_path: Path) -> None:
    table = create_retrying_table(tmp_path, VECTORS)
    table.write(write_one(0, 0))
    strict = interrupt_commits(table, commits_what_was_prepared(table)).with_options(
        {"commit.strict-mode.last-safe-snapshot": 2}
    )
    strict.write(write_one(1, 10))
    assert rows(table) == {0: 0, 1: 10, 2: 20}


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_a_changed_row_is_seen_changed_at_once(tmp_path: Path, verb: str) -> None:
    table = create_retrying_table(tmp_path, VECTORS)
    table.write([{"k": 0, "v": 0}, {"k": 1, "v": 1}])
    mine = interrupt_commits(table, commits_what_was_prepared(table))
    if verb == "update":
        mine.update({"v": "v + 10"}, "k = 1")
    else:
        mine.delete("k = 1")
    assert rows(table).get(1) == (11 if verb == "update" else None)
    assert list_orphans(table) == []


def test_only_conflicting_buckets_are_compacted_again(tmp_path: Path) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, "bucket": "2"})
    table.write([{"k": k, "v": 0} for k in range(8)])
    mine = interrupt_commits(table, commits_what_was_prepared(table))
    counted: list[tuple[str, int]] = []

    class Counting:
        def count(self, name: str, value: int) -> None:
            counted.append((name, value))

        def progress(self, what: str, done: int, total: int) -> None:
            pass

    mine = mine.with_engine(evolve(mine.engine, observer=Counting()))
    done = mine.write([{"k": k, "v": 1} for k in range(8)])
    assert ("commit.compaction_planned_again", 1) in counted
    assert done.lost_compaction is None and len(done.snapshot_ids) == 2
    found = rows(table)
    assert {found[k] for k in range(8) if k != 2} == {1}
    assert list_orphans(table) == []


def test_a_message_that_was_prepared_before_the_last_was_committed_is_readable_too(tmp_path: Path) -> None:
    table = create_retrying_table(tmp_path, VECTORS)
    builder = table.new_stream_write_builder("me")
    with builder.new_write() as writer:
        prepared = []
        for step in (1, 2, 3):
            writer.write(write_one(step, step))
            prepared.append(writer.prepare_commit(step))
        for step, messages in enumerate(prepared, 1):
            builder.new_commit().commit(step, messages)
            assert rows(table) == {k: k for k in range(1, step + 1)}
        writer.write(write_one(4, 4))
        builder.new_commit().commit(4, writer.prepare_commit(4))
    assert rows(table) == {k: k for k in range(1, 5)}
    identifiers = [(s.commit_identifier, s.commit_kind) for s in table.snapshots()]
    assert len(set(identifiers)) == len(identifiers) == 8, "at most one compaction for each commit"


def test_rows_of_a_writer_that_was_opened_before_a_column_was_added_are_readable(tmp_path: Path) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, "compaction.size-ratio": "900"})
    table.write(write_one(0, 0))
    newer = table.alter(AddColumn("added", IntType()))
    newer.write([{"k": 5, "v": 5, "added": 5}])
    with pytest.warns(RuntimeWarning, match="newer schema than this writer"):
        table.write(write_one(1, 10))
    found = {row["k"]: row for row in open_again(table).scan().to_arrow().to_pylist()}
    assert found[1]["v"] == 10 and found[5]["added"] == 5 and found[1]["added"] is None


@pytest.mark.parametrize(("hiding", "again"), mark_products(HIDING, ["commit", "filter", "write"]))
def test_a_repeated_commit_makes_rows_readable_after_a_death_before_compaction(
    tmp_path: Path, hiding: str, again: str
) -> None:
    table = create_retrying_table(tmp_path, HIDING[hiding])
    table.write(write_one(0, 0))

    def die() -> None:
        raise KeyboardInterrupt

    builder = interrupt_commits(table, die).new_stream_write_builder("me")
    with builder.new_write() as writer:
        writer.write(write_one(1, 10))
        messages = writer.prepare_commit(1)
    with pytest.raises(KeyboardInterrupt):
        builder.new_commit().commit(1, messages)
    assert 1 not in rows(table)
    fresh = open_again(table)
    if again == "commit":
        assert fresh.new_stream_write_builder("me").new_commit().commit(1, messages).already_committed
    elif again == "filter":
        assert fresh.new_stream_write_builder("me").new_commit().filter_committed([1, 2]) == [2]
    else:
        assert fresh.write(write_one(1, 10), commit_user="me", identifier=1).snapshot_ids == ()
    assert rows(table)[1] == 10
    made = len(table.snapshots())
    assert fresh.new_stream_write_builder("me").new_commit().filter_committed([1, 2]) == [2]
    assert len(table.snapshots()) == made, "what can be read is not compacted again"
    stream = open_again(table).new_stream_write_builder("me")
    with stream.new_write() as writer:
        writer.write(write_one(2, 20))
        stream.new_commit().commit(2, writer.prepare_commit(2))
    assert stream.new_commit().filter_committed([1, 2, 3]) == [3]
    assert rows(table)[2] == 20


def make_failing_action(error: PaimonError) -> Act:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [StorageError("s", "gone"), CorruptTable("s", "expired")], ids=["storage", "expired"])
def test_a_failed_compaction_is_retried(tmp_path: Path, error: PaimonError) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, "commit.max-retries": "3"})
    table.write(write_one(0, 0))
    done = interrupt_commits(table, make_failing_action(error), times=3).write(write_one(1, 10))
    assert rows(table)[1] == 10
    assert done.lost_compaction is None


@pytest.mark.parametrize("retries", ["0", "2"])
def test_the_error_after_all_retries_reports_that_the_rows_are_committed(tmp_path: Path, retries: str) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, "commit.max-retries": retries})
    table.write(write_one(0, 0))
    mine = interrupt_commits(table, make_failing_action(CorruptTable("manifest", "torn")), times=99)
    with pytest.raises(CommitNotVisible, match="is committed, but reads do not return its rows yet") as hidden:
        mine.write(write_one(1, 10))
    assert hidden.value.snapshot_ids == (3,)
    assert hidden.value.reason.message == "manifest: torn"
    assert "Table.compact()" in str(hidden.value)
    assert 1 not in rows(table)
    table.compact()
    assert rows(table) == {0: 0, 1: 10}


def test_rows_that_others_compact_are_no_failure_without_retries(tmp_path: Path) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, "commit.max-retries": "0"})
    table.write(write_one(0, 0))
    done = interrupt_commits(table, OTHERS["upserts twice"](table)).write(write_one(1, 10))
    assert done.lost_compaction is not None
    assert rows(table)[1] == 10


@pytest.mark.parametrize("lands", [True, False])
def test_a_compaction_in_doubt_leaves_readable_rows(tmp_path: Path, lands: bool) -> None:
    table = create_retrying_table(tmp_path, VECTORS)
    table.write(write_one(0, 0))
    mine = open_again(table)

    @define(eq=False)
    class Doubtful:
        other: SnapshotCommit
        doubts: int = 1

        def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
            return nullcontext()

        def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
            if snapshot.commit_kind is CommitKind.COMPACT and self.doubts:
                self.doubts -= 1
                if lands:
                    self.other.publish(paths, snapshot, base)
                raise CommitUncertain("me", 1, "the connection broke", snapshot_id=snapshot.id)
            return self.other.publish(paths, snapshot, base)

    mine = mine.with_engine(evolve(mine.engine, snapshots=Doubtful(mine.engine.snapshots)))
    mine.write(write_one(1, 10))
    assert rows(table) == {0: 0, 1: 10}
    assert not open_again(table).maintain.check(deep=True).faults


LATER = [{"lookup-compact": "gentle"}, {"lookup-wait": "false"}, {"write-only": "true"}]


@pytest.mark.parametrize("option", LATER, ids=["gentle", "no wait", "write-only"])
def test_options_that_allow_hidden_rows_are_respected(tmp_path: Path, option: dict[str, str]) -> None:
    table = create_retrying_table(tmp_path, {**VECTORS, **option, "commit.max-retries": "0"})
    interrupt_commits(table, make_failing_action(StorageError("s", "gone")), times=99).write(write_one(1, 10))
    assert levels(table) == [0]


@pytest.mark.parametrize("lost", [1, 3, 10])
def test_deletes_are_compacted_away_while_others_append_all_the_time(tmp_path: Path, lost: int) -> None:
    """Each of their files may need a delete that the compaction left out, so it is discarded until the last retry."""
    table = create_retrying_table(tmp_path, VECTORS)
    table.write([{"k": 0, "v": 0}, {"k": 1, "v": 1}])
    others = []
    for k in range(10, 10 + lost):
        builder = open_again(table).with_options({"write-only": True}).new_batch_write_builder()
        with builder.new_write() as writer:
            writer.write(write_one(k, k))
            others.append((builder, writer.prepare_commit()))

    def append() -> None:
        builder, messages = others.pop()
        builder.new_commit().commit(messages)

    interrupt_commits(table, append, times=lost).delete("k = 1")
    assert others == []
    assert 1 not in rows(table)
