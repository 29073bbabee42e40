"""Managers are made of a storage and a path, as in pypaimon; handles keep the schema of the state that they read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon.compat

COLUMNS = pa.schema([("id", pa.int64()), ("item", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    paimon.compat.install()
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("d", True)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(COLUMNS), False)
    yield catalog.get_table("d.t")
    paimon.compat.uninstall()


def write(table: Any, ids: list[int]) -> None:
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"id": ids, "item": ["x"] * len(ids)}, schema=COLUMNS))
    builder.new_commit().commit(writer.prepare_commit())


def read(table: Any, **named: Any) -> pa.Table:
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits(), **named)


def test_managers_are_made_of_a_path(table: Any) -> None:
    from pypaimon import TagManager
    from pypaimon.branch import FileSystemBranchManager
    from pypaimon.branch.branch_manager import DEFAULT_MAIN_BRANCH, BranchManager
    from pypaimon.changelog import ChangelogManager
    from pypaimon.common.file_io import FileIO
    from pypaimon.snapshot.snapshot_manager import SnapshotManager

    write(table, [1])
    table.create_tag("one")
    place = (FileIO.get(table.table_path), table.table_path)
    assert [snapshot.id for snapshot in SnapshotManager(*place).list_snapshots()] == [1]
    assert TagManager(*place).list_tags() == ["one"]
    assert ChangelogManager(*place, branch="b").changelog_directory() == f"{table.table_path}/branch/branch-b/changelog"
    branches = FileSystemBranchManager(*place)
    branches.create_branch("b", "one")
    assert (branches.branches(), branches.branch_path("b")) == (["b"], f"{table.table_path}/branch/branch-b")
    copied = SnapshotManager(*place).copy_with_branch("b")
    assert (copied.branch, copied.get_latest_snapshot().id) == ("b", 1)
    assert (table.snapshot_manager().branch, table.snapshot_manager().latest_file) == (
        DEFAULT_MAIN_BRANCH,
        f"{table.table_path}/snapshot/LATEST",
    )
    assert BranchManager().normalize_branch(" b ") == "b"
    with pytest.raises(NotImplementedError, match="belongs to no table"):
        BranchManager().branches()
    assert table.copy({"branch": "b"}).identifier.get_full_name() == "d.t$branch_b"


def test_schemas_are_listed_written_and_changed(table: Any) -> None:
    from pypaimon.schema.schema_change import SchemaChange
    from pypaimon.schema.schema_manager import SchemaManager

    manager = table.schema_manager
    assert manager.commit_changes([SchemaChange.set_option("write-only", "true")]).id == 1
    assert [schema.id for schema in manager.list_all()] == [0, 1]
    assert not manager.commit(manager.latest())
    with pytest.raises(RuntimeError, match="Failed to commit schema changes: Column 'no' does not exist"):
        manager.commit_changes([SchemaChange.drop_column("no")])
    with pytest.raises(RuntimeError, match="target-file-row-num should be at least 1"):
        manager.commit_changes([SchemaChange.set_option("target-file-row-num", "0")])
    with pytest.raises(RuntimeError, match="Schema in filesystem exists"):
        manager.create_table(manager.latest().to_schema())
    other = SchemaManager(table.file_io, f"{table.table_path}2")
    assert (other.latest(), other.list_all(), other.get_schema(0)) == (None, [], None)
    with pytest.raises(RuntimeError, match="Table schema does not exist"):
        other.commit_changes([])
    assert other.create_table(manager.latest().to_schema()).options == other.latest().options == {"write-only": "true"}
    bad = manager.latest()
    bad.id, bad.primary_keys = 2, ["nowhere"]
    with pytest.raises(ValueError, match="nowhere"):
        manager.commit(bad)


def test_a_handle_keeps_the_schema_of_the_state_that_it_reads(table: Any) -> None:
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    write(table, [1])
    table.create_tag("one")
    table.schema_manager.commit_changes([SchemaChange.add_column("more", AtomicType("INT"))])
    newest = type(table).from_path(table.table_path)
    assert newest.field_names == ["id", "item", "more"]
    old = newest.copy({"scan.tag-name": "one"})
    for handle in (old, old.copy({"write-only": "true"}), newest.copy({"scan.snapshot-id": "1"})):
        assert (handle.field_names, read(handle).column_names) == (["id", "item"], ["id", "item"])
    assert old.copy_without_time_travel({"scan.tag-name": None}).field_names == ["id", "item"]
    assert newest.copy_without_time_travel({"scan.tag-name": "one"}).field_names == ["id", "item", "more"]
    assert newest.copy({"scan.tag-name": "no"}).field_names == ["id", "item", "more"]


def test_splits_are_read_at_the_same_time_as_far_as_threads_are_allowed(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paimon.compat import read as reads

    for number in range(3):
        write(table, [number])
    split = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
    chosen: list[int] = []
    ahead = reads._read_ahead
    monkeypatch.setattr(
        reads, "_read_ahead", lambda read, splits, count: chosen.append(count) or ahead(read, splits, count)
    )
    threads = table.inner.engine.memory.tasks
    for options, named, expected in [
        ({"read.parallelism": "2"}, {}, 2),
        ({"read.parallelism": "999"}, {}, 3),
        ({"read.parallelism": "1"}, {}, None),
        ({"read.parallelism": "1"}, {"parallelism": 3}, 3),
    ]:
        chosen.clear()
        rows = read(table.copy({**split, **options}), **named)
        assert rows["id"].to_pylist() == [0, 1, 2]
        assert chosen == ([] if expected is None or threads == 1 else [min(expected, threads)])
    with pytest.raises(ValueError, match=r"read\.parallelism must be >= 1, got 0"):
        read(table.copy({"read.parallelism": "0"}))
