"""A commit into a table that another process dropped, renamed or created again is refused, and leaves nothing there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.case_lists import mark_nightly, mark_products

import paimon
from paimon import AlreadyExists, Catalog, CommitUncertain, StorageError, Table, TableDropped, TableReplaced
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.files import WHOLE_BYTES
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit

KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "fixed": {"primary_keys": ["id"], "options": {"bucket": 1}},
    "dynamic": {"primary_keys": ["id"]},
    "postponed": {"primary_keys": ["id"], "options": {"bucket": -2}},
    "hidden level 0": {"primary_keys": ["id"], "options": {"bucket": 1, "deletion-vectors.enabled": "true"}},
}


def row(number: int) -> list[dict[str, int]]:
    return [{"id": number, "v": number}]


def make(catalog: Catalog, name: str = "d.t", **declared: Any) -> Table:
    return catalog.create_table(name, "id BIGINT NOT NULL, v BIGINT", **declared)


@pytest.fixture(params=["local", "memory", "jdbc"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    options = {"metastore": "jdbc"} if request.param == "jdbc" else {}
    opened = paimon.connect("memory://gone-tables" if request.param == "memory" else str(tmp_path), **options)
    if "d" in opened.databases():
        opened.drop_database("d", cascade=True)
    opened.create_database("d")
    return opened


def rows_of(catalog: Catalog, name: str = "d.t") -> list[int]:
    return sorted(catalog.table(name).scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", mark_nightly(KINDS, always=["append", "dynamic"]))
def test_a_write_into_a_dropped_or_renamed_table_is_refused(catalog: Catalog, kind: str) -> None:
    for is_renamed in (False, True):
        table = make(catalog, **KINDS[kind])
        table.write(row(1))
        expected = rows_of(catalog)
        catalog.rename_table("d.t", "d.u") if is_renamed else catalog.drop_table("d.t")
        with pytest.raises(TableDropped):
            table.write(row(2))
        with pytest.raises(TableDropped):
            table.overwrite(row(2), {})
        assert catalog.engine.files.status(table.location) is None
    assert rows_of(catalog, "d.u") == expected
    make(catalog, **KINDS[kind])
    assert rows_of(catalog) == []


@pytest.mark.parametrize(
    ("kind", "is_written"), mark_products(KINDS, [False, True], always=["fixed", "hidden level 0"])
)
def test_messages_of_a_dropped_table_are_not_committed_into_a_new_one(
    catalog: Catalog, kind: str, is_written: bool
) -> None:
    table = make(catalog, **KINDS[kind])
    table.write(row(1), commit_user="job", identifier=1)
    builder = table.new_stream_write_builder("job")
    messages = [(n, builder.new_write(), builder.new_commit()) for n in (1, 2)]
    prepared = []
    for number, writer, _ in messages:
        writer.write(row(number))
        prepared.append(writer.prepare_commit(number))
    catalog.drop_table("d.t")
    make(catalog, **KINDS[kind])
    if is_written:
        catalog.table("d.t").write(row(9), commit_user="job", identifier=1)
    before, expected = catalog.table("d.t").snapshots(), rows_of(catalog)
    for (number, _, commit), files in zip(messages, prepared, strict=True):
        with pytest.raises(TableReplaced) as raised:
            commit.commit(number, files)
        assert raised.value.snapshot_id is None
    with pytest.raises(TableReplaced):
        messages[0][2].filter_committed([1, 2])
    assert catalog.table("d.t").snapshots() == before
    assert rows_of(catalog) == expected
    assert not catalog.table("d.t").maintain.check(deep=True).faults


class _BeforePublish:
    """Acts once before a snapshot is published, and once after."""

    def __init__(self, inner: SnapshotCommit, before: Callable[[], object], after: Callable[[], object]) -> None:
        self._inner, self._before, self._after = inner, before, after

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        return self._inner.lock(paths)

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        before, self._before = self._before, lambda: None
        before()
        outcome = self._inner.publish(paths, snapshot, base)
        after, self._after = self._after, lambda: None
        after()
        return outcome


def race(table: Table, before: Callable[[], object], after: Callable[[], object] = lambda: None) -> Table:
    """Return the table with another process that acts just before and just after its next snapshot."""
    return table.with_engine(evolve(table.engine, snapshots=_BeforePublish(table.engine.snapshots, before, after)))


def replace(catalog: Catalog, rows: int, **declared: Any) -> None:
    catalog.drop_table("d.t")
    made = make(catalog, **declared)
    for number in range(rows):
        made.write(row(100 + number))


@pytest.mark.parametrize("kind", ["append", "fixed"])
def test_a_snapshot_in_a_table_that_is_created_again_is_taken_back(catalog: Catalog, kind: str) -> None:
    table = make(catalog, **KINDS[kind])
    for number in (1, 2):
        table.write(row(number))
    for rows in (0, 2):  # snapshot 3 is published with a gap, and as the next one
        with pytest.raises(TableReplaced) as raised:
            race(catalog.table("d.t"), lambda n=rows: replace(catalog, n, **KINDS[kind])).write(row(3))
        assert raised.value.snapshot_id is None
        opened = catalog.table("d.t")
        assert len(opened.snapshots()) == rows
        assert rows_of(catalog) == [100, 101][:rows]
        assert not opened.maintain.check(deep=True).faults
        opened.write(row(4))
        opened.write(row(5))
        assert rows_of(catalog) == [4, 5, 100, 101][: rows + 2]
        replace(catalog, 2, **KINDS[kind])


def test_a_snapshot_in_a_dropped_table_is_taken_back(catalog: Catalog) -> None:
    table = make(catalog)
    table.write(row(1))
    with pytest.raises(TableDropped) as raised:
        race(table, lambda: catalog.drop_table("d.t")).write(row(2))
    assert raised.value.snapshot_id is None
    make(catalog)
    assert rows_of(catalog) == []


def test_a_snapshot_that_was_renamed_with_its_table_is_named(catalog: Catalog) -> None:
    table = make(catalog)
    table.write(row(1))
    with pytest.raises(TableDropped) as raised:
        race(table, lambda: None, lambda: catalog.rename_table("d.t", "d.u")).write(row(2))
    assert raised.value.snapshot_id == 2
    assert rows_of(catalog, "d.u") == [1, 2]


def test_a_table_that_is_renamed_there_and_back_is_another_one_if_its_files_are_copied(catalog: Catalog) -> None:
    make(catalog).write(row(1))

    def rename() -> None:
        catalog.rename_table("d.t", "d.u")
        catalog.rename_table("d.u", "d.t")

    writer = race(catalog.table("d.t"), rename)
    if not catalog.warehouse.startswith("memory:"):  # the directory moves, with the files of the commit
        writer.write(row(2))
    else:
        with pytest.raises(TableReplaced) as raised:
            writer.write(row(2))
        assert raised.value.snapshot_id is None
    catalog.table("d.t").write(row(3))
    assert rows_of(catalog) in ([1, 2, 3], [1, 3])
    assert not catalog.table("d.t").maintain.check(deep=True).faults


@pytest.mark.parametrize("use", ["write", "tag", "branch"])
def test_a_snapshot_that_is_used_already_is_named(catalog: Catalog, use: str) -> None:
    table = make(catalog)
    table.write(row(1))

    def use_snapshot() -> None:
        opened = catalog.table("d.t")
        if use == "write":
            opened.write(row(200))
            return
        opened.tags.create("kept")
        if use == "branch":
            opened.branches.create("b", tag="kept")
            opened.tags.delete("kept")

    with pytest.raises(TableReplaced) as raised:
        race(table, lambda: replace(catalog, 1), use_snapshot).write(row(2))
    assert raised.value.snapshot_id == 2
    assert "roll the new table back" in str(raised.value).lower()
    catalog.table("d.t").maintain.rollback_to(1)
    assert rows_of(catalog) == [100]


def test_create_refuses_a_directory_with_snapshots(catalog: Catalog) -> None:
    for branch in ("main", "b"):
        paths = TablePaths(f"{catalog.warehouse}/d.db/t", branch)
        catalog.engine.files.put_if_absent(paths.snapshot(1), b"{}")
        with pytest.raises(AlreadyExists, match=r"belongs to no table"):
            make(catalog)
        catalog.engine.files.delete([paths.snapshot(1)])
    tag = TablePaths(f"{catalog.warehouse}/d.db/t").tag("made-during-the-drop")
    catalog.engine.files.put_if_absent(tag, b"{}")
    with pytest.raises(AlreadyExists, match=r"belongs to no table"):
        make(catalog)
    catalog.engine.files.delete([tag])
    make(catalog)


@pytest.mark.parametrize("catalog", ["jdbc"], indirect=True)
def test_a_table_without_an_entry_in_the_catalog_is_dropped(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog)
    table.write(row(1))
    with monkeypatch.context() as patch:  # the process dies after it deleted the rows of the catalog
        patch.setattr("paimon.adapters.catalogs.jdbc.drop_directory", lambda *_: None)
        catalog.drop_table("d.t")
    with pytest.raises(TableDropped):
        table.write(row(2))
    assert len(table.snapshots()) == 1


class _CountingFiles:
    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.reads: list[str] = []
        self.is_broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        self.reads.append(path.rpartition("/")[2])
        if self.is_broken and path.endswith("/schema-0"):
            raise StorageError(path, "no reply")
        return self._inner.read(path, max_bytes)  # type: ignore[no-any-return]


def test_a_commit_reads_the_first_schema_once(catalog: Catalog) -> None:
    table = make(catalog, options={"write-only": "true"})
    files = _CountingFiles(table.engine.files)
    table = table.with_engine(evolve(table.engine, files=files))
    for number in (1, 2, 3):
        files.reads.clear()
        table.write(row(number))
        assert files.reads.count("schema-0") == 1


def test_a_commit_is_uncertain_while_the_first_schema_cannot_be_read(catalog: Catalog) -> None:
    table = make(catalog)
    files = _CountingFiles(table.engine.files)
    broken = table.with_engine(evolve(table.engine, files=files))
    files.is_broken = True
    with pytest.raises(CommitUncertain) as raised:
        broken.write(row(1))
    files.is_broken = False
    assert broken.resolve(raised.value).already_committed
    assert rows_of(catalog) == [1]


def test_a_restored_table_is_the_same_one(tmp_path: Path) -> None:
    catalog = paimon.connect(str(tmp_path / "lake"))
    catalog.create_database("d")
    table = make(catalog).add_column("w", "INT")
    root = Path(table.location)
    (root / "schema" / "schema-0").touch()
    table.write([{"id": 1, "v": 1, "w": 1}])
    catalog.rename_table("d.t", "d.u")
    catalog.rename_table("d.u", "d.t")
    table.write([{"id": 2, "v": 1, "w": 1}])
    assert rows_of(catalog) == [1, 2]
