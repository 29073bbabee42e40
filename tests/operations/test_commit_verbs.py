"""Callbacks, lost commits and commits in doubt as users meet them: on tables of a catalog on disk, and in the shell."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
from attrs import evolve
from command_line import run

import paimon
from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.domain.errors import CommitOverwritten, CommitUncertain, InvalidRequest, Unsupported
from paimon.domain.options.validate import check_options
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


def test_every_verb_that_commits_tells_the_callbacks(tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []

    def note(event: paimon.CommitEvent) -> None:
        assert event.snapshot is not None
        told.append((event.snapshot.id, event.snapshot.commit_kind.value))

    table = table_in(tmp_path).with_callbacks(note)
    table.write([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    table.delete("id = 1")
    table.overwrite([{"id": 3, "day": "tue"}])
    table.compact(full=True)
    assert told == [(s.id, s.commit_kind.value) for s in table.snapshots()]
    assert len(told) >= 4


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
    with pytest.raises(InvalidRequest, match="cannot be called"):
        paimon.connect(tmp_path, callbacks=["module:function"])  # type: ignore[list-item]


def test_a_table_that_wants_callbacks_is_written_where_they_are_bound(tmp_path: Path) -> None:
    wanted = {"commit.callbacks": "org.example.Notify", "commit.callback.org.example.Notify.param": "queue-1"}
    table = table_in(tmp_path, **wanted)
    with pytest.raises(Unsupported, match=r"org\.example\.Notify"):
        table.write([{"id": 1, "day": "mon"}])
    assert (table.snapshots(), data_files(table)) == ([], [])
    heard: list[str] = []

    def notify(event: paimon.CommitEvent) -> None:
        heard.append(event.table.options.values["commit.callback.org.example.Notify.param"])

    table.with_callbacks({"org.example.Notify": notify}).write([{"id": 1, "day": "mon"}])
    table.with_options({"commit.callbacks": ""}).write([{"id": 2, "day": "mon"}])
    assert heard == ["queue-1"]
    check_options(wanted)
    with pytest.raises(InvalidRequest, match="unknown"):
        check_options({"commit.callback.x": "1"})


def test_a_streams_callbacks_hear_of_what_a_dead_process_committed(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "day": "mon"}], commit_user="job", identifier=1)
    heard: list[tuple[int, bool, int | None]] = []

    def note(event: paimon.CommitEvent) -> None:
        heard.append((event.identifier, event.repeated, event.snapshot.id if event.snapshot else None))

    commit = table.with_callbacks(note).new_stream_write_builder("job").new_commit()
    assert commit.filter_committed([1, 2]) == [2]
    assert commit.commit(1, []).already_committed
    assert heard == [(1, True, 1), (1, True, 1)]


def test_a_failing_callback_warns_and_the_rows_are_there(tmp_path: Path) -> None:
    def broken(event: paimon.CommitEvent) -> None:
        raise OSError("no route to the metastore")

    table = table_in(tmp_path).with_callbacks(broken)
    with pytest.warns(RuntimeWarning, match="snapshot 1 of d.t stands, but callback .*no route to the metastore"):
        assert table.write([{"id": 1, "day": "mon"}]).snapshot_ids == (1,)
    assert table.scan().count() == 1


def test_a_write_whose_snapshot_was_overwritten_is_told_and_made_again(tmp_path: Path) -> None:
    table = table_in(tmp_path, **{"write-only": True})
    table.write([{"id": 1, "day": "mon"}])
    other = tmp_path / "other"
    shutil.copytree(table.location, other)
    table.write([{"id": 2, "day": "mon"}])
    theirs = paimon.open_table(other)
    theirs.write([{"id": 3, "day": "mon"}], commit_user="java")
    shutil.copytree(other, table.location, dirs_exist_ok=True)  # check, then rename: whatever is there is replaced
    before = data_files(table)
    with pytest.raises(CommitOverwritten, match="'java'") as lost:
        table.write([{"id": 4, "day": "mon"}])
    assert data_files(table) == before
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    table.resolve(lost.value)
    table.write([{"id": 4, "day": "mon"}])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


def test_a_write_in_doubt_is_resolved_by_the_table_or_asked_for_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "day": "mon"}])
    tried: list[str] = []

    def strike(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path.endswith("/snapshot-2"):
            tried.append(path)
        return Fault.FAILS if path in tried else None

    files = FaultyFiles(table.engine.files, strike)
    shaky = evolve(table, engine=evolve(table.engine, files=files, snapshots=FileSnapshotCommit(files)))
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
