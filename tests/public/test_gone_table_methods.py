"""The methods of a table that another process dropped, or dropped and created again, change nothing in the new one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon import Catalog, Table, TableDropped, TableReplaced

ROW = [{"id": 2, "v": 2, "p": 1}]


def commit_with_builder(table: Table) -> Any:
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write(ROW)
    messages = writer.prepare_commit()
    try:
        return builder.new_commit().commit(messages)
    except paimon.PaimonError:
        builder.new_commit().abort(messages)
        raise


METHODS: dict[str, Callable[[Table], Any]] = {
    "write": lambda t: t.write(ROW),
    "write nothing": lambda t: t.write([]),
    "write with new columns": lambda t: t.write([{**ROW[0], "x": 3}], merge_schema=True),
    "overwrite": lambda t: t.overwrite(ROW, {}),
    "builder": commit_with_builder,
    "delete": lambda t: t.delete("id = 1"),
    "delete nothing": lambda t: t.delete("id = 77"),
    "update": lambda t: t.update({"v": "v + 1"}, where="id = 1"),
    "update nothing": lambda t: t.update({"v": "v + 1"}, where="id = 77"),
    "merge": lambda t: t.merge(ROW, on=["id", "p"]).when_matched_update_all().execute(),
    "drop partition": lambda t: t.drop_partitions({"p": 1}),
    "compact": lambda t: t.compact(),
    "full compaction": lambda t: t.compact(full=True),
    "rescale": lambda t: t.rescale(2),
    "rescale dry": lambda t: t.rescale(2, dry_run=True),
    "follow": lambda t: list(t.follow(idle_timeout=0)),
    "stream": lambda t: list(t.new_stream_read_builder().new_scan(idle_timeout=0)),
    "create tag": lambda t: t.tags.create("n"),
    "create tag of snapshot": lambda t: t.tags.create("n", snapshot=1),
    "replace tag": lambda t: t.tags.replace("old"),
    "rename tag": lambda t: t.tags.rename("old", "new"),
    "delete tag": lambda t: t.tags.delete("old"),
    "create branch": lambda t: t.branches.create("n"),
    "create branch of tag": lambda t: t.branches.create("n", tag="old"),
    "delete branch": lambda t: t.branches.delete("b"),
    "rename branch": lambda t: t.branches.rename("b", "c"),
    "fast-forward": lambda t: t.branches.fast_forward("b"),
    "reset consumer": lambda t: t.consumers.reset("c", 1),
    "delete consumer": lambda t: t.consumers.delete("c"),
    "clear consumers": lambda t: t.consumers.clear(),
    "expire consumers": lambda t: t.consumers.expire(timedelta(days=1)),
    "expire snapshots": lambda t: t.maintain.expire_snapshots(retain_min=1, retain_max=1),
    "expire snapshots dry": lambda t: t.maintain.expire_snapshots(dry_run=True),
    "expire changelogs": lambda t: t.maintain.expire_changelogs(),
    "expire tags": lambda t: t.maintain.expire_tags(),
    "expire partitions": lambda t: t.maintain.expire_partitions(1),
    "remove orphans": lambda t: t.maintain.remove_orphans(dry_run=False),
    "list orphans": lambda t: t.maintain.remove_orphans(),
    "roll back": lambda t: t.maintain.rollback_to(1),
    "check": lambda t: t.maintain.check(),
    "due maintenance": lambda t: t.maintain.run_due(),
    "add column": lambda t: t.add_column("z", "INT"),
    "set option": lambda t: t.set_options({"write-only": "true"}),
    "outcome": lambda t: t.outcome("job", 1),
}


def make(catalog: Catalog) -> Table:
    columns = "id BIGINT NOT NULL, v BIGINT, p INT NOT NULL"
    options = {"bucket": 1, "changelog-producer": "input"}
    table = catalog.create_table(
        "d.t", columns, primary_keys=["id", "p"], partition_keys=["p"], options=options, exist_ok=True
    )
    table.write([{"id": 1, "v": 1, "p": 1}], commit_user="job", identifier=1)
    table.write([{"id": 1, "v": 2, "p": 1}])
    table.tags.create("old")
    table.branches.create("b", tag="old")
    table.consumers.reset("c", 1)
    return table


def read_files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_a_table_that_is_gone_is_refused(tmp_path: Path, name: str) -> None:
    catalog, other = (paimon.connect(str(tmp_path)) for _ in range(2))
    catalog.create_database("d")
    table = make(catalog)
    other.drop_table("d.t")
    with pytest.raises(TableDropped):
        METHODS[name](table)
    assert not [*(tmp_path / "d.db").iterdir()]
    make(other)
    before = read_files(tmp_path)
    with pytest.raises(TableReplaced):
        METHODS[name](table)
    assert read_files(tmp_path) == before


def test_a_scan_of_a_dropped_table_is_not_empty(tmp_path: Path) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d")
    table = make(catalog)
    branch = catalog.table("d.t$branch_b")
    catalog.drop_table("d.t")
    for read in (
        lambda: table.scan().to_arrow(),
        lambda: table.scan().count(),
        lambda: table.changes().to_arrow(),
        lambda: table.snapshots(),
        lambda: table.system_table("files").scan().to_arrow(),
        lambda: branch.scan().to_arrow(),
    ):
        with pytest.raises(TableDropped):
            read()


@pytest.mark.parametrize("rows", [[], [{"id": 2, "price": 5}]], ids=["empty", "filled"])
def test_a_scan_never_shows_another_table(tmp_path: Path, rows: list[dict[str, int]]) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d")
    table = make(catalog)
    assert table.count() == 1
    catalog.drop_table("d.t")
    new = catalog.create_table("d.t", "id BIGINT NOT NULL, price INT", primary_keys=["id"], options={"bucket": 1})
    new.write(rows)
    for read in (
        lambda: table.scan().to_arrow(),
        lambda: table.scan(snapshot=1).to_arrow(),
        lambda: table.scan(tag="old").to_arrow(),
        lambda: table.count(),
        lambda: table.lookup([(1, 1)]),
        lambda: table.changes().to_arrow(),
        lambda: table.system_table("files").to_arrow(),
    ):
        assert new.to_arrow().to_pylist() == rows
        with pytest.raises(TableReplaced):
            read()


def test_statements_on_a_table_that_is_gone_are_refused(tmp_path: Path) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d")
    view = make(catalog)
    paimon.connect(str(tmp_path)).drop_table("d.t")
    with pytest.raises(TableDropped):
        view.call("sys.create_tag", "n")
    with pytest.raises(paimon.NotFound):
        catalog.sql("INSERT INTO d.t VALUES (1, 1, 1)")
