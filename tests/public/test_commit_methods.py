"""Callbacks, lost commits and commits in doubt, as users see them: in catalog tables on disk and in the shell."""

from __future__ import annotations

import json
import pickle
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn

import pytest
from attrs import evolve
from support.command_line import run

import paimon
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitOverwritten, CommitUncertain, InvalidRequest, ReadConflict, Unsupported
from paimon.domain.options.validate import check_options
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit
from paimon.testing.faulty_files import Fault, FaultyFiles

COLUMNS = "id BIGINT NOT NULL, day STRING NOT NULL"


def table_in(path: Path, **options: object) -> paimon.Table:
    catalog = paimon.connect(path)
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table(
        "d.t", COLUMNS, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": 1, **options}
    )


def data_files(table: paimon.Table) -> list[Path]:
    return sorted(Path(table.location).rglob("*.parquet"))


def test_every_committing_method_calls_the_callbacks(tmp_path: Path) -> None:
    reported: list[tuple[int, str]] = []

    def note(event: paimon.CommitEvent) -> None:
        assert event.snapshot is not None
        reported.append((event.snapshot.id, event.snapshot.commit_kind.value))

    table = table_in(tmp_path).with_callbacks(note)
    table.write([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    table.delete("id = 1")
    table.overwrite([{"id": 3, "day": "tue"}])
    table.compact(full=True)
    assert reported == [(s.id, s.commit_kind.value) for s in table.snapshots()]
    assert len(reported) >= 4


@pytest.mark.parametrize("given", ["connect", "open_table"])
def test_callbacks_are_given_when_a_table_is_opened(tmp_path: Path, given: str) -> None:
    location = table_in(tmp_path).location
    events: list[paimon.CommitEvent] = []
    if given == "connect":
        table = paimon.connect(tmp_path, callbacks=[events.append]).table("d.t")
    else:
        table = paimon.open_table(location, callbacks={"note": events.append})
    table.write([{"id": 1, "day": "mon"}])
    assert [e.partitions for e in events] == [({"day": "mon"},)]
    assert pickle.loads(pickle.dumps(table)).engine.callbacks == {}
    with pytest.raises(InvalidRequest, match="is not callable"):
        paimon.connect(tmp_path, callbacks=["module:function"])  # type: ignore[list-item]


def test_a_table_that_wants_callbacks_is_written_where_they_are_bound(tmp_path: Path) -> None:
    wanted = {"commit.callbacks": "org.example.Notify", "commit.callback.org.example.Notify.param": "queue-1"}
    table = table_in(tmp_path, **wanted)
    with pytest.raises(Unsupported, match=r"org\.example\.Notify"):
        table.write([{"id": 1, "day": "mon"}])
    assert (table.snapshots(), data_files(table)) == ([], [])
    events: list[str] = []

    def notify(event: paimon.CommitEvent) -> None:
        events.append(event.table.options.values["commit.callback.org.example.Notify.param"])

    table.with_callbacks({"org.example.Notify": notify}).write([{"id": 1, "day": "mon"}])
    table.with_options({"commit.callbacks": ""}).write([{"id": 2, "day": "mon"}])
    assert events == ["queue-1"]
    check_options(wanted)
    with pytest.raises(InvalidRequest, match="unknown"):
        check_options({"commit.callback.x": "1"})


def test_callbacks_of_a_stream_receive_the_commits_of_a_dead_process(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "day": "mon"}], commit_user="job", identifier=1)
    events: list[tuple[int, bool, int | None]] = []

    def note(event: paimon.CommitEvent) -> None:
        events.append((event.identifier, event.repeated, event.snapshot.id if event.snapshot else None))

    commit = table.with_callbacks(note).new_stream_write_builder("job").new_commit()
    assert commit.filter_committed([1, 2]) == [2]
    assert commit.commit(1, []).already_committed
    assert events == [(1, True, 1), (1, True, 1)]


def test_a_failing_callback_warns_and_the_rows_are_committed(tmp_path: Path) -> None:
    def fail(event: paimon.CommitEvent) -> None:
        raise OSError("no route to the metastore")

    table = table_in(tmp_path).with_callbacks(fail)
    failure = "Snapshot 1 of table 'd.t' is committed, but callback .*no route to the metastore"
    with pytest.warns(RuntimeWarning, match=failure):
        assert table.write([{"id": 1, "day": "mon"}]).snapshot_ids == (1,)
    assert table.scan().count() == 1


def test_an_overwritten_write_is_reported_and_repeated(tmp_path: Path) -> None:
    table = table_in(tmp_path, **{"write-only": True})
    table.write([{"id": 1, "day": "mon"}])
    other = tmp_path / "other"
    shutil.copytree(table.location, other)
    table.write([{"id": 2, "day": "mon"}])
    theirs = paimon.open_table(other)
    theirs.write([{"id": 3, "day": "mon"}], commit_user="java")
    shutil.copytree(other, table.location, dirs_exist_ok=True)  # check, then rename: overwrites an existing file
    before = data_files(table)
    with pytest.raises(CommitOverwritten, match="'java'") as lost:
        table.write([{"id": 4, "day": "mon"}])
    assert data_files(table) == before
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    table.resolve(lost.value)
    table.write([{"id": 4, "day": "mon"}])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


def test_a_write_in_doubt_is_resolved_by_the_table_or_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "day": "mon"}])
    tried: list[str] = []

    def plan_fault(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path.endswith("/snapshot-2"):
            tried.append(path)
        return Fault.FAIL_BEFORE if path in tried else None

    files = FaultyFiles(table.engine.files, plan_fault)
    shaky = table.with_engine(evolve(table.engine, files=files, snapshots=PutIfAbsentSnapshotCommit(files)))
    with pytest.raises(CommitUncertain) as doubt:
        shaky.write([{"id": 2, "day": "mon"}])
    asked = ["outcome", table.location, "--user", doubt.value.commit_user, "--output", "json"]
    named = ["--snapshot", str(doubt.value.snapshot_id), "--uuid", str(doubt.value.identity)]
    assert str(doubt.value.identity) in str(doubt.value)
    assert json.loads(run(capsys, *asked, *named)) == {"outcome": "open", "snapshots": ""}
    assert table.resolve(doubt.value).snapshot_ids == (2,)
    assert json.loads(run(capsys, *asked, *named)) == {"outcome": "not committed", "snapshots": ""}
    assert json.loads(run(capsys, *asked)) == {"outcome": "committed", "snapshots": "2"}
    assert table.outcome(doubt.value.commit_user).committed
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def replaced_before_the_compaction(table: paimon.Table, theirs: paimon.Table) -> paimon.Table:
    """Another client puts its snapshot in the place of an APPEND of this process before the COMPACT is tried."""

    class Replaced:
        def __init__(self, other: SnapshotCommit) -> None:
            self.other = other
            self.times = 1

        def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
            return nullcontext()

        def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
            outcome = self.other.publish(paths, snapshot, base)
            if self.times:
                self.times -= 1
                theirs.write([{"id": 3, "day": "mon"}], commit_user="java")
                shutil.copytree(theirs.location, table.location, dirs_exist_ok=True)
            return outcome

    return table.with_engine(evolve(table.engine, snapshots=Replaced(table.engine.snapshots)))


COMPACTING = [
    {"bucket": "1", "compaction.force-up-level-0": "true"},
    {"bucket": "1", "deletion-vectors.enabled": "true"},
]


@pytest.mark.parametrize("verb", ["write", "overwrite", "update", "delete"])
@pytest.mark.parametrize("options", COMPACTING, ids=["plain", "vectors"])
def test_files_of_rows_stay_until_an_overwritten_write_is_resolved(
    tmp_path: Path, options: dict[str, str], verb: str
) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    columns = "id INT NOT NULL, day STRING"
    table = catalog.create_table("d.t", columns, primary_keys=["id"], options=options)
    table.write([{"id": 1, "day": "mon"}])
    other = tmp_path / "other"
    shutil.copytree(table.location, other)
    theirs = paimon.open_table(other, {"write-only": "true"})
    assert isinstance(theirs, paimon.Table)
    mine = replaced_before_the_compaction(table, theirs)

    def call(changed: paimon.Table) -> None:
        if verb == "write":
            changed.write([{"id": 2, "day": "tue"}])
        elif verb == "overwrite":
            changed.overwrite([{"id": 2, "day": "tue"}])
        elif verb == "update":
            changed.update({"day": "'tue'"}, "id = 1")
        else:
            changed.delete("id = 1")

    with pytest.raises(CommitOverwritten, match="commit this write again; do not repeat the call") as lost:
        call(mine)
    assert lost.value.is_this_commit
    fresh = paimon.open_table(table.location)
    assert isinstance(fresh, paimon.Table)
    if verb in ("write", "overwrite"):
        assert fresh.resolve(lost.value).snapshot_ids
    else:  # the other client changed rows after those that were read
        with pytest.raises(ReadConflict, match="changed rows after snapshot"):
            fresh.resolve(lost.value)
        call(fresh)
    days = {row["id"]: row["day"] for row in fresh.scan().to_arrow().to_pylist()}
    found = {"write": {1: "mon", 2: "tue"}, "overwrite": {2: "tue"}, "update": {1: "tue"}, "delete": {}}[verb]
    fresh.compact(full=True)  # rows of the other client may wait on level 0
    after = {row["id"]: row["day"] for row in fresh.scan().to_arrow().to_pylist()}
    assert {k: v for k, v in days.items() if k != 3} == found
    assert after == {**found, **({} if verb == "overwrite" else {3: "mon"})}
    assert not fresh.maintain.check(deep=True).faults


def test_a_commit_is_repeated_after_its_compaction_was_lost(tmp_path: Path) -> None:
    """The files of the lost compaction are deleted. The files with the rows must exist."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT NOT NULL, day STRING", primary_keys=["id"],
                                 options={"bucket": "1", "num-sorted-run.compaction-trigger": "2"})  # fmt: skip
    table.write([{"id": 1, "day": "mon"}])
    other = tmp_path / "other"
    shutil.copytree(table.location, other)
    builder = table.new_batch_write_builder("me")
    with builder.new_write() as writer:
        writer.write([{"id": 2, "day": "tue"}])
        messages = writer.prepare_commit()
    apart = paimon.open_table(table.location)
    theirs = paimon.open_table(other, {"write-only": "true"})
    assert isinstance(apart, paimon.Table) and isinstance(theirs, paimon.Table)
    apart.compact(full=True)
    theirs.compact(full=True)
    assert builder.new_commit().commit(messages).lost_compaction is not None
    theirs.write([{"id": 3, "day": "mon"}], commit_user="java")
    shutil.copytree(other, table.location, dirs_exist_ok=True)
    with pytest.raises(CommitOverwritten) as lost:
        table.write([{"id": 4, "day": "wed"}])
    assert not lost.value.is_this_commit
    fresh = paimon.open_table(table.location)
    assert isinstance(fresh, paimon.Table)
    fresh.resolve(lost.value)
    assert 2 in fresh.scan().to_arrow()["id"].to_pylist()
    assert not fresh.maintain.check(deep=True).faults


def test_published_files_stay_if_the_compaction_finds_another_replaced_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "changelog-producer": "input", "num-sorted-run.compaction-trigger": "2"}
    table = catalog.create_table("d.t", "id INT NOT NULL", primary_keys=["id"], options=options)
    table.write([{"id": 1}])
    other = CommitOverwritten(1, "someone", 7, "java")
    other.request = CommitRequest([], "someone")

    def find_other(*_: object) -> NoReturn:
        raise other

    monkeypatch.setattr("paimon.operations.commit.commit.publish_change", find_other)
    # The snapshot of the rows may be shared, so its user does not protect its files.
    with pytest.raises(CommitOverwritten) as lost:
        table.write([{"id": 2}])
    monkeypatch.undo()
    assert lost.value.published_id == 2
    assert sorted(table.changes().to_arrow()["id"].to_pylist()) == [1, 2]
    assert not table.maintain.check(deep=True).faults
