"""Processes that die at any operation on a disk: everything listed can be opened, and a repeated call completes.

A disk creates directories before files, so a process may die between the two (`TORN_WRITE`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.case_lists import mark_nightly

import paimon
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.domain.errors import AlreadyExists, NotFound
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults

COLUMNS = "id INT NOT NULL"
FAULTS = [Fault.DIE_BEFORE, Fault.DIE_AFTER, Fault.TORN_WRITE]
WRITES = ("put_if_absent", "replace", "close", "delete", "make_directory", "move_directory", "delete_directory")


class FaultyDisk(FaultyFiles):
    """A local disk with its verbs for directories, of which a process dies."""

    def __init__(self, plan: Callable[[str, str], Fault | None]) -> None:
        self._disk = LocalFiles()
        super().__init__(self._disk, plan)

    def make_directory(self, path: str) -> None:
        self._run_operation("make_directory", path, lambda: self._disk.make_directory(path))

    def move_directory(self, source: str, target: str) -> None:
        self._run_operation("move_directory", source, lambda: self._disk.move_directory(source, target))

    def delete_directory(self, path: str) -> None:
        fault = self._fault_of("delete_directory", path)
        if fault is Fault.TORN_WRITE:  # a part of it is deleted
            for name in sorted(Path(path).rglob("*"))[:1]:
                shutil.rmtree(name) if name.is_dir() else name.unlink()
        self._apply_fault(fault, path, lambda: self._disk.delete_directory(path))

    def _leave_torn_write(self, operation: str, path: str, data: bytes) -> None:
        parent = Path(path).parent
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f".{Path(path).name}.1.tmp").write_bytes(data[: len(data) // 2])


def create_history(home: Path) -> Path:
    """A table with two schemas, tags and a branch with a commit of its own."""
    catalog = paimon.connect(home)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, primary_keys=["id"], options={"bucket": "1"})
    table.write({"id": [1]})
    table = table.alter(paimon.AddColumn("v", "INT"))
    table.write({"id": [2], "v": [2]})
    table.tags.create("early", 1)
    table.tags.create("late", 2)
    table.branches.create("side", "late")
    branch: Any = paimon.open_table(f"{table.location}$branch_side")
    branch.write({"id": [70], "v": [7]})
    table.write({"id": [3], "v": [3]})
    catalog.create_database("empty")
    return home


def catalog_on(home: Path, plan: Callable[[str, str], Fault | None]) -> paimon.Catalog:
    catalog, files = paimon.connect(home), FaultyDisk(plan)
    engine = evolve(catalog.engine, files=files, snapshots=PutIfAbsentSnapshotCommit(files))
    return evolve(catalog, engine=engine, store=FileSystemCatalogStore(files, catalog.warehouse))


CALLS: dict[str, Callable[[paimon.Catalog], object]] = {
    "create branch": lambda c: c.table("d.t").branches.create("new"),
    "create branch at a tag": lambda c: c.table("d.t").branches.create("new", "early"),
    "delete branch": lambda c: c.table("d.t").branches.delete("side"),
    "rename branch": lambda c: c.table("d.t").branches.rename("side", "aside"),
    "fast-forward": lambda c: c.table("d.t").branches.fast_forward("side"),
    "create tag": lambda c: c.table("d.t").tags.create("new", 1),
    "replace tag": lambda c: c.table("d.t").tags.replace("early", 2),
    "rename tag": lambda c: c.table("d.t").tags.rename("early", "earlier"),
    "delete tag": lambda c: c.table("d.t").tags.delete("early"),
    "reset consumer": lambda c: c.table("d.t").consumers.reset("app", 2),
    "delete consumer": lambda c: c.table("d.t").consumers.delete("app"),
    "roll back": lambda c: c.table("d.t").maintain.rollback_to(1),
    "create table": lambda c: c.create_table("d.new", COLUMNS, primary_keys=["id"], options={"bucket": "1"}),
    "rename table": lambda c: c.rename_table("d.t", "d.moved"),
    "drop table": lambda c: c.drop_table("d.t"),
    "create database": lambda c: c.create_database("new"),
    "drop database": lambda c: c.drop_database("d", cascade=True),
}


def check_all_can_be_read(home: Path) -> None:
    """Everything that is listed exists."""
    catalog = paimon.connect(home)
    for database in catalog.databases():
        for name in catalog.tables(database):
            table = catalog.table(f"{database}.{name}")
            table.scan().to_arrow()
            assert all(isinstance(tag.snapshot, Snapshot) for tag in table.tags.values())
            assert all(following > 0 for following in table.consumers.values())
            for tag in table.tags:
                table.scan(tag=tag).to_arrow()
            listed = table.system_table("branches").scan().to_arrow()["branch_name"].to_pylist()
            assert listed == list(table.branches)
            for branch in table.branches:
                catalog.table(f"{database}.{name}$branch_{branch}").scan().to_arrow()
            assert table.maintain.check().is_whole


def check_nothing_is_left(home: Path) -> None:
    """Orphan removal deletes the branch files of a dead process."""
    catalog = paimon.connect(home)
    for name in catalog.tables("d") if "d" in catalog.databases() else ():
        table = catalog.table(f"d.{name}")
        folder = Path(table.location, "branch")
        for path in sorted(folder.rglob("*"), reverse=True):
            os.utime(path, (1, 1))
        table.maintain.remove_orphans(dry_run=False)
        assert {p.name.removeprefix("branch-") for p in folder.glob("*")} | {p.name for p in folder.glob(".*")} == {
            *table.branches
        }
        check_all_can_be_read(home)


@pytest.mark.parametrize("name", mark_nightly(CALLS, always=["create branch", "rename branch", "fast-forward",
    "create tag", "reset consumer", "roll back", "rename table", "drop table"]))  # fmt: skip
def test_listed_objects_can_be_opened_after_a_death(tmp_path: Path, name: str) -> None:
    start, call_method = create_history(tmp_path / "start"), CALLS[name]
    if name == "delete consumer":
        paimon.connect(start).table("d.t").consumers.reset("app", 2)
    operations: list[str] = []
    home = tmp_path / "faultless"
    shutil.copytree(start, home)
    call_method(catalog_on(home, lambda operation, path: operations.append(operation)))
    points = [n for n, operation in enumerate(operations) if operation in WRITES]
    assert points
    for number in points:
        for fault in FAULTS:
            home = tmp_path / f"{number}-{fault.name}"
            shutil.copytree(start, home)
            with contextlib.suppress(ProcessDied):
                call_method(catalog_on(home, plan_numbered_faults({number: fault})))
            check_all_can_be_read(home)
            if "branch" in name:
                cleaned = tmp_path / "cleaned"
                shutil.copytree(home, cleaned)
                check_nothing_is_left(cleaned)
                shutil.rmtree(cleaned)
            with contextlib.suppress(AlreadyExists, NotFound):  # it succeeded, but its reply was lost
                call_method(paimon.connect(home))
            check_all_can_be_read(home)
            shutil.rmtree(home)


def test_a_branch_without_a_schema_is_not_listed_and_can_be_created_or_deleted(tmp_path: Path) -> None:
    table = paimon.connect(create_history(tmp_path)).table("d.t")
    for act in (lambda: table.branches.create("torn", "early"), lambda: None):
        Path(table.location, "branch", "branch-torn", "schema").mkdir(parents=True)
        assert list(table.branches) == ["side"]
        with pytest.raises(KeyError):
            table.branches["torn"]
        act()
        table.branches.delete("torn")
        assert [p.name for p in Path(table.location, "branch").iterdir()] == ["branch-side"]


def test_two_that_make_one_branch_make_it_once(tmp_path: Path) -> None:
    home = create_history(tmp_path)

    def other(operation: str, path: str) -> None:
        if operation == "move_directory":
            paimon.connect(home).table("d.t").branches.create("new", "early")

    with pytest.raises(AlreadyExists, match="nother process created it during the call"):
        catalog_on(home, other).table("d.t").branches.create("new", "late")
    table = paimon.connect(home).table("d.t")
    assert sorted(p.name for p in Path(table.location, "branch").iterdir()) == ["branch-new", "branch-side"]
    assert table.branches["new"] is not None
