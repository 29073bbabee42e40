"""Tags by time and watermark, renamed branches, and files that orphan removal does not delete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import paimon
from paimon.adapters.files.local import LocalFiles
from paimon.cli.main import main
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound
from paimon.operations.metadata import snapshots

NOW = timedelta(0)


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    made = catalog.create_table("d.t", "id INT NOT NULL", primary_keys=["id"], options={"bucket": "1"})
    for i in range(1, 5):
        made.write({"id": [i]}, watermark=i * 1000 if i > 1 else None)
    return made


def ids(table: paimon.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_tag_names_the_first_state_since_a_time(table: paimon.Table) -> None:
    times = [s.time_millis for s in table.snapshots()]
    for place, millis in enumerate(times):
        first = times.index(millis) + 1
        assert table.tags.create(f"at{place}", since=millis).snapshot.id == first
    assert table.tags.create("after", since=times[1] + 1).snapshot.time_millis > times[1]
    with pytest.raises(NotFound, match="committed at or after"):
        table.tags.create("never", since=times[-1] + 1)
    with pytest.raises(InvalidRequest, match="at most one of snapshot, since and watermark"):
        table.tags.create("both", 1, since=times[0])


def test_a_tag_names_the_first_state_of_a_watermark(table: paimon.Table) -> None:
    assert table.tags.create("w", watermark=2500).snapshot.id == 3
    assert table.tags.create("w0", watermark=1).snapshot.id == 2
    with pytest.raises(NotFound, match="watermark"):
        table.tags.create("never", watermark=9000)


def test_snapshots_that_only_tags_reference_are_found(table: paimon.Table) -> None:
    table.tags.create("kept", 2)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)
    assert table.tags.create("again", watermark=1500).snapshot.id == 2
    assert table.tags.create("next", watermark=2500).snapshot.id == 4
    assert table.tags.create("first", since=1).snapshot.id == 2
    assert main(["tag", "create", table.location, "by-watermark", "--watermark", "2000"]) == 0
    assert table.tags["by-watermark"].snapshot.id == 2


def create_branches(table: paimon.Table) -> paimon.Table:
    table.tags.create("t", 2)
    table.branches.create("b", "t")
    branch: Any = paimon.open_table(f"{table.location}$branch_b")
    branch.write({"id": [70]})
    return table


def check_renamed(table: paimon.Table) -> None:
    table.branches.create("other")
    with pytest.raises(AlreadyExists):
        table.branches.rename("b", "other")
    for name, to, error in (("main", "x", InvalidRequest), ("b", "main", InvalidRequest), ("nope", "x", NotFound)):
        with pytest.raises(error):
            table.branches.rename(name, to)
    table.branches.rename("b", "c")
    assert sorted(table.branches) == ["c", "other"]
    table.branches.delete("c")
    assert list(table.branches) == ["other"]


def test_a_branch_is_renamed(table: paimon.Table) -> None:
    create_branches(table)
    table.branches.rename("b", "moved")
    renamed: Any = paimon.open_table(f"{table.location}$branch_moved")
    assert ids(renamed) == [1, 2, 70]
    assert renamed.branches.keys() == {"moved"}
    with pytest.raises(InvalidRequest, match="is open and cannot be renamed"):
        renamed.branches.rename("moved", "x")
    table.branches.rename("moved", "b")
    check_renamed(table)
    assert not Path(table.location, "branch", "branch-c").exists()


class Flat:
    """A storage without directory operations, on which a process may die."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.left = 10**9

    def __getattr__(self, name: str) -> Any:
        if name in ("make_directory", "move_directory", "delete_directory"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def create(self, path: str) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self._inner.create(path)


def test_a_branch_is_renamed_where_directories_cannot_be_moved(table: paimon.Table) -> None:
    create_branches(table)
    for left in range(12):
        files: Any = Flat(table.engine.files)
        files.left = left
        flat = table.with_engine(evolve(table.engine, files=files))
        try:
            flat.branches.rename("b", "moved")
            break
        except KeyboardInterrupt:  # the process died; the earlier state is readable
            assert ids(paimon.open_table(f"{table.location}$branch_b")) == [1, 2, 70]  # type: ignore[arg-type]
            if "moved" in table.branches:
                with pytest.raises(AlreadyExists, match="interrupted rename"):
                    flat.branches.rename("b", "moved")
                table.branches.delete("moved")
    assert left > 2
    assert list(table.branches) == ["moved"]
    assert ids(paimon.open_table(f"{table.location}$branch_moved")) == [1, 2, 70]  # type: ignore[arg-type]
    flat.branches.delete("moved")
    assert list(table.branches) == []
    assert table.maintain.check(deep=True).is_whole


class Vanishing(LocalFiles):
    """A disk from which a branch is deleted just before its schema is read."""

    def read(self, path: str, *limit: int) -> bytes:
        if "/branch-b/schema/" in path:
            shutil.rmtree(Path(path).parents[1])
        return super().read(path, *limit)


def test_a_concurrently_deleted_branch_does_not_stop_expiry(table: paimon.Table) -> None:
    create_branches(table)
    files = Vanishing()
    racing = table.with_engine(evolve(table.engine, files=files))
    racing.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)
    assert list(table.branches) == []
    assert ids(table) == [1, 2, 3, 4]
    assert table.maintain.check(deep=True).is_whole


def test_empty_directories_of_orphans_are_deleted_if_configured(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.p", "id INT, day STRING", partition_keys=["day"])
    table.write({"id": [1], "day": ["mon"]})
    orphan = Path(table.location, "day=tue", "bucket-0", "data-x-0.parquet")
    orphan.parent.mkdir(parents=True)
    for option, left in (("false", True), ("true", False)):
        orphan.write_bytes(b"left by a crash")
        os.utime(orphan, (1, 1))
        asked = table.with_options({"snapshot.clean-empty-directories": option})
        assert asked.maintain.remove_orphans(dry_run=False)["path"].to_pylist() == [str(orphan)]
        assert orphan.parent.exists() == left
    assert not orphan.parent.parent.exists()
    assert table.scan().count() == 1


class Stalled(LocalFiles):
    """A disk on which another process expires more snapshots before this process reports its own expiry."""

    def __init__(self, others: paimon.Table) -> None:
        super().__init__()
        self._others: paimon.Table | None = others

    def delete(self, paths: Sequence[str]) -> None:
        super().delete(paths)
        others, self._others = self._others, None
        if others is not None:
            others.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)


def test_an_expirer_that_stalled_does_not_take_the_hint_back(table: paimon.Table) -> None:
    stalled = table.with_engine(evolve(table.engine, files=Stalled(table)))
    stalled.maintain.expire_snapshots(retain_min=3, retain_max=3, older_than=NOW)
    assert Path(table.location, "snapshot", "EARLIEST").read_text() == "4"
    assert [s.id for s in table.snapshots()] == [4]
    assert table.maintain.check(deep=True).faults == ()


def test_a_commit_reads_only_the_tags_that_changed(table: paimon.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        table.tags.create(name)
    table.write({"id": [5]})
    read = list[str]()
    find_tag = snapshots.find_tag
    monkeypatch.setattr(snapshots, "find_tag", lambda context, name: read.append(name) or find_tag(context, name))
    table.write({"id": [6]})
    assert read == []
    other = paimon.connect(Path(table.location).parents[1]).table("d.t")
    other.tags.replace("b", time_retained=timedelta(milliseconds=1))
    os.utime(Path(table.location, "tag", "tag-b"), (0, 0))
    read.clear()
    table.write({"id": [7]})
    assert read[0] == "b"
    assert list(table.tags) == ["a", "c"]
