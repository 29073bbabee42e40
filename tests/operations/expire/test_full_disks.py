"""Expiry and rollback free a full disk. A full temporary disk and an expired snapshot are named."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import duckdb
import pyarrow as pa
import pytest
from attrs import evolve

import paimon
from paimon.adapters.queries.duckdb_queries import to_paimon_error
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import CorruptTable, SnapshotExpired, StorageError
from paimon.ports.files import FileIO

RETAINED = {
    "snapshot.num-retained.min": "9",
    "snapshot.num-retained.max": "9",
    "num-sorted-run.compaction-trigger": "99",
}


class FullDisk:
    """A storage that accepts a number of writes; reads and deletions work."""

    def __init__(self, inner: FileIO, free_writes: int = 0) -> None:
        self._inner, self.free_writes = inner, free_writes
        self.calls: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def _write(self, path: str) -> None:
        self.calls.append(("write", path))
        self.free_writes -= 1
        if self.free_writes < 0:
            raise StorageError(path, "No space left on device")

    def put_if_absent(self, path: str, data: bytes) -> object:
        self._write(path)
        return self._inner.put_if_absent(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._write(path)
        self._inner.replace(path, data)

    def create(self, path: str) -> object:
        self._write(path)
        return self._inner.create(path)

    def create_all(self, files: object) -> NoReturn:
        raise StorageError("manifest", "No space left on device")

    def delete(self, paths: list[str]) -> None:
        self.calls += [("delete", path) for path in paths]
        self._inner.delete(paths)


def create_table(tmp_path: Path, commits: int = 5, **options: str) -> paimon.Table:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("d", exist_ok=True)
    texts = {name.replace("__", "."): value for name, value in options.items()}
    table = catalog.create_table(
        "d.t", "id BIGINT NOT NULL, v INT", primary_keys=["id"], options={"bucket": "1"} | RETAINED | texts
    )
    for number in range(commits):
        table.write([{"id": number % 2, "v": number}])
    return table


def fill_disk(table: paimon.Table, free_writes: int = 0) -> tuple[paimon.Table, FullDisk]:
    disk = FullDisk(table.engine.files, free_writes)
    return table.with_engine(evolve(table.engine, files=disk)), disk


def list_ids(table: paimon.Table) -> list[int]:
    return [s.id for s in paimon.open_table(table.location).snapshots()]


@pytest.mark.parametrize("with_hint", [True, False])
def test_expiry_frees_a_full_disk(tmp_path: Path, with_hint: bool) -> None:
    table = create_table(tmp_path)
    if with_hint:
        table.maintain.expire_snapshots(retain_min=1, retain_max=4)
    full, disk = fill_disk(table)
    rows = table.scan().to_arrow()
    expired = full.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert expired.files > 0 and list_ids(table) == [5]
    kinds = [kind for kind, _ in disk.calls]
    assert kinds.index("write") > kinds.index("delete")
    assert table.scan().to_arrow().equals(rows) and table.maintain.check(deep=True).is_whole
    table.write([{"id": 9, "v": 9}])
    assert table.maintain.expire_snapshots(retain_min=1, retain_max=1).snapshots == 1


@pytest.mark.parametrize("free_writes", [0, 1, 2])
def test_a_snapshot_whose_changelog_cannot_be_written_stays(tmp_path: Path, free_writes: int) -> None:
    options = {"changelog-producer": "input", "changelog.num-retained.min": "20", "changelog.num-retained.max": "20"}
    table = create_table(tmp_path, **options)
    full, _ = fill_disk(table, free_writes)
    with pytest.raises(StorageError, match=rf"Snapshot {free_writes + 1} stays") as refused:
        full.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert "No space left" in str(refused.value)
    assert list_ids(table) == list(range(1 + free_writes, 6))
    changelogs = sorted(p.name for p in Path(table.location, "changelog").glob("changelog-*"))
    assert changelogs == [f"changelog-{n}" for n in range(1, free_writes + 1)]
    assert table.maintain.check(deep=True).is_whole
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert list_ids(table) == [5] and table.changes(after=0).to_arrow().num_rows >= 5


@pytest.mark.parametrize("producer", ["none", "input"])
def test_rollback_and_changelog_expiry_free_a_full_disk(tmp_path: Path, producer: str) -> None:
    options = {"changelog-producer": producer, "changelog.num-retained.min": "1", "changelog.num-retained.max": "99"}
    table = create_table(tmp_path, 6, **options)
    table.maintain.expire_snapshots(retain_min=1, retain_max=3)
    table.tags.create("late", 6)
    full, disk = fill_disk(table)
    if producer == "input":
        assert full.maintain.expire_changelogs(retain_min=1, retain_max=4).snapshots == 2
    rolled_back = full.maintain.rollback_to(5)
    assert rolled_back.snapshots == 1 and rolled_back.tags == ("late",)
    assert list_ids(table) == [4, 5]
    latest = Path(table.location, "snapshot", "LATEST")
    assert not latest.exists() or latest.read_text() == "5", "Java trusts a hint whose next snapshot is missing"
    deletions = [path for kind, path in disk.calls if kind == "delete" and "/snapshot/" in path]
    assert deletions.index(str(latest)) < deletions.index(f"{table.location}/snapshot/snapshot-6")
    table.write([{"id": 7, "v": 7}])
    assert list_ids(table) == [4, 5, 6] and table.maintain.check(deep=True).is_whole


def test_orphans_tags_branches_and_consumers_are_deleted_on_a_full_disk(tmp_path: Path) -> None:
    table = create_table(tmp_path)
    table.tags.create("a", 1)
    table.branches.create("b", tag="a")
    table.consumers.reset("c", 2)
    orphan = Path(table.location, "bucket-0", "data-orphan.parquet")
    orphan.write_bytes(b"x")
    for path in (orphan, Path(table.location, "consumer", "consumer-c")):
        os.utime(path, (1, 1))
    full, _ = fill_disk(table)
    full.maintain.expire_snapshots(retain_min=1, retain_max=1)
    full.branches.delete("b")
    assert full.tags.delete("a") >= 0
    full.maintain.remove_orphans(dry_run=False)
    assert not orphan.exists() and table.maintain.check(deep=True).is_whole


def test_a_full_temporary_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = LocalTempStore(str(tmp_path))
    rows = pa.table({"a": [1]})
    calls: list[Callable[[], object]] = [
        lambda: store.spill(rows),
        lambda: store.store(rows.to_batches(), rows.schema, 10_000),
        lambda: store.store_joined(rows.to_batches()),
    ]
    calls[0]()
    with monkeypatch.context() as patched:
        patched.setattr(pa, "OSFile", fail)
        for call in calls:
            with pytest.raises(StorageError, match=r"the disk of temporary files is full.*TMPDIR") as refused:
                call()
            assert "memory-budget" not in str(refused.value)
    with pytest.raises(StorageError, match="temporary directory cannot be created"):
        LocalTempStore(str(tmp_path / "missing")).spill(rows)


def test_a_query_that_cannot_spill_names_the_temporary_disk() -> None:
    connection = duckdb.connect(":memory:", config={"memory_limit": "20MB", "max_temp_directory_size": "0B"})
    with pytest.raises(duckdb.OutOfMemoryException) as refused:
        connection.sql("SELECT i, md5(i::VARCHAR) AS m FROM range(2000000) r(i) ORDER BY m").fetchall()
    assert "max_temp_directory_size" in str(refused.value)
    error = to_paimon_error(refused.value)
    assert isinstance(error, StorageError) and "the disk of temporary files is full" in str(error)
    assert "memory-budget" not in str(error)


@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_a_scan_whose_snapshot_expired_says_so(tmp_path: Path, format_name: str) -> None:
    table = create_table(tmp_path, **{"file.format": format_name})
    table.compact(full=True)
    planned = paimon.open_table(table.location).scan(snapshot=3)
    planned.plan()
    tagged = paimon.open_table(table.location).scan(snapshot=2)
    tagged.plan()
    table.tags.create("kept", 2)
    unplanned_table = paimon.open_table(table.location)
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert unplanned_table.scan().count() == 2
    with pytest.raises(SnapshotExpired, match=r"Snapshot 3 of table .* expired while it was read"):
        planned.to_arrow()
    assert tagged.to_arrow().num_rows == 2
    data = sorted(Path(table.location, "bucket-0").iterdir())
    for path in data:
        path.unlink()
    for scan in (tagged, unplanned_table.scan()):
        with pytest.raises(CorruptTable, match="does not exist"):
            scan.to_arrow()
