"""A table that is created together with its rows is never seen without them, also after a death at any operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.simulated_engines import assemble

import paimon
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

IDS = SequentialIds()
KEYED = {"bucket": "1", "num-sorted-run.compaction-trigger": "1"}
CASES: dict[str, dict[str, Any]] = {"append": {}, "keyed": {"primary_keys": ["id"], "options": KEYED}}
WRITES = ("put_if_absent", "replace", "close", "delete")


def catalog_on(files: Any) -> paimon.Catalog:
    engine = assemble(files, SimulatedClock(Interleaving()), IDS, ConstantRandom())
    return paimon.Catalog(engine, FileSystemCatalogStore(files, "/lake"), {"table-default.file.format": "avro"})


def write(table: paimon.Table) -> paimon.WriteResult:
    return table.write({"id": [1, 2], "v": [1, 2]})


def create(files: Any, fill: Callable[[paimon.Table], Any] = write, **declared: Any) -> Any:
    return catalog_on(files).create_filled_table("d.t", "id INT NOT NULL, v INT", fill, **declared)


def start() -> MemoryFiles:
    files = MemoryFiles()
    catalog_on(files).create_database("d")
    return files


def check_whole(files: MemoryFiles) -> None:
    table = catalog_on(files).table("d.t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert list(table.branches) == []
    assert table.maintain.check(deep=True).is_whole
    table.write({"id": [3], "v": [3]})
    assert table.scan().count() == 3


@pytest.mark.parametrize("name", ["snapshot/snapshot-7", "last-commit/commit-0f", "tag/tag-a"])
def test_a_filled_table_takes_over_no_history(name: str) -> None:
    files, path = start(), f"/lake/d.db/t/{name}"
    files.replace(path, b"{}")
    with pytest.raises(paimon.AlreadyExists, match=name):
        create(files)
    files.delete([path])
    create(files)
    check_whole(files)


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_there_with_its_rows_or_not_at_all(case: str) -> None:
    operations: list[str] = []
    create(FaultyFiles(start(), lambda operation, path: operations.append(operation)), **CASES[case])
    visible = set()
    for number in [n for n, operation in enumerate(operations) if operation in WRITES]:
        for fault in (Fault.DIE_BEFORE, Fault.DIE_AFTER):
            files = start()
            with contextlib.suppress(ProcessDied):
                create(FaultyFiles(files, plan_numbered_faults({number: fault})), **CASES[case])
            is_visible = catalog_on(files).tables("d") == ["t"]
            visible.add(is_visible)
            if is_visible:
                assert catalog_on(files).table("d.t").scan().count() == 2
            with contextlib.suppress(paimon.AlreadyExists) if is_visible else contextlib.nullcontext():
                create(files, **CASES[case])
            check_whole(files)
    assert visible == {True, False}


def test_a_failed_creation_leaves_no_table() -> None:
    files = start()

    def fail(table: paimon.Table) -> None:
        raise paimon.InvalidRequest("no rows")

    with pytest.raises(paimon.InvalidRequest, match="no rows"):
        create(files, fail)
    assert catalog_on(files).tables("d") == []
    assert not [path for path in files.contents if "/t/" in path]
    create(files)
    check_whole(files)


def test_one_of_two_creators_creates_the_table() -> None:
    files = start()

    def create_then_write(table: paimon.Table) -> None:
        create(files)
        write(table)

    def write_then_create(table: paimon.Table) -> None:
        write(table)
        catalog_on(files).create_table("d.t", "x INT")

    with pytest.raises((paimon.AlreadyExists, paimon.NotFound)):
        create(files, create_then_write)
    check_whole(files)
    files = start()
    with pytest.raises(paimon.AlreadyExists):
        create(files, write_then_create)
    assert catalog_on(files).table("d.t").schema.names == ["x"]
    assert catalog_on(files).table("d.t").snapshots() == []


def test_the_creation_of_another_table_is_completed_before_the_name_is_refused() -> None:
    files = start()
    with contextlib.suppress(ProcessDied):
        create(FaultyFiles(files, _die_before_the_schema))
    assert catalog_on(files).tables("d") == []
    with pytest.raises(paimon.AlreadyExists, match="CREATE TABLE AS"):
        catalog_on(files).create_table("d.t", "x INT")
    with pytest.raises(paimon.AlreadyExists, match="complete now"):
        catalog_on(files).create_filled_table("d.t", "x INT", write)
    check_whole(files)


def _die_before_the_schema(operation: str, path: str) -> Fault | None:
    return Fault.DIE_BEFORE if operation == "put_if_absent" and path == "/lake/d.db/t/schema/schema-0" else None


def test_a_clone_that_completes_an_earlier_call_describes_its_own_rows_or_fails() -> None:
    for change, error in ((0, None), (1, "drop the table and call again")):
        files = start()
        source = catalog_on(files).create_table("d.s", "id INT, v INT")
        write(source)
        with contextlib.suppress(ProcessDied):
            catalog_on(FaultyFiles(files, _die_before_the_schema)).clone_table("d.s", "d.t")
        if change:
            write(source)
        expected = pytest.raises(paimon.AlreadyExists, match=error) if error else contextlib.nullcontext()
        with expected:
            assert catalog_on(files).clone_table("d.s", "d.t").rows == 2
        check_whole(files)


def test_a_migration_that_completes_an_earlier_call_fails() -> None:
    files = start()
    write(catalog_on(files).create_table("d.s", "id INT, v INT"))
    migrate = ("/lake/d.db/s/bucket-0", "d.t")
    with contextlib.suppress(ProcessDied):
        catalog_on(FaultyFiles(files, _die_before_the_schema)).migrate_table(*migrate)
    with pytest.raises(paimon.AlreadyExists, match="drop the table and call again"):
        catalog_on(files).migrate_table(*migrate, delete_origin=True)
    assert catalog_on(files).table("d.s").scan().count() == 2
    check_whole(files)


class _FaultyDisk(FaultyFiles):
    """A local disk of which a process dies."""

    def __init__(self, plan: Callable[[str, str], Fault | None]) -> None:
        super().__init__(LocalFiles(), plan)


@pytest.mark.parametrize("metastore", ["filesystem", "jdbc"])
def test_create_table_as_is_completed_by_the_repeated_statement(tmp_path: Path, metastore: str) -> None:
    def die(place: str) -> Callable[[str, str], Fault | None]:
        def plan(operation: str, path: str) -> Fault | None:
            return Fault.DIE_AFTER if operation == "put_if_absent" and path.endswith(place) else None

        return plan

    places = ("/schema/schema-0", "/snapshot/snapshot-1", "/t/snapshot/snapshot-1", "/t/schema/schema-0")
    for number, place in enumerate(places):
        catalog = paimon.connect(str(tmp_path / str(number)), metastore=metastore)
        catalog.create_database("d")
        catalog.create_table("d.s", "id INT, v INT").write({"id": [1, 2], "v": [1, 2]})
        files = _FaultyDisk(die(place))
        engine = evolve(catalog.engine, files=files, snapshots=PutIfAbsentSnapshotCommit(files))
        statement = "CREATE TABLE d.t AS SELECT * FROM d.s"
        with pytest.raises(ProcessDied):
            evolve(catalog, engine=engine).sql(statement)
        is_last = place == places[-1]
        assert ("t" in catalog.tables("d")) == (metastore == "filesystem" and is_last)
        assert catalog.sql(statement).to_arrow()["rows"].to_pylist() == [2]
        assert sorted(catalog.table("d.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
        assert list(catalog.table("d.t").branches) == []
        with pytest.raises(paimon.AlreadyExists, match="IF NOT EXISTS"):
            catalog.sql(statement)
