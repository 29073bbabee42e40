"""Rows of tables with data evolution are deleted by deletion vectors of the oldest file of their group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_lists import mark_products

import paimon
from paimon.builders.row_updates import TableUpdate
from paimon.domain.commit.message_codec import decode, encode
from paimon.operations.row_level import delete_update as change_module


def make_table(tmp_path: Path, **options: object) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop", exist_ok=True)
    given = {"row-tracking.enabled": True, "data-evolution.enabled": True, "deletion-vectors.enabled": True} | options
    made = catalog.create_table("shop.stock", "a BIGINT, b STRING, p STRING", partition_keys=["p"], options=given)
    made.write({"a": [1, 2, 3], "b": ["x", "y", "z"], "p": ["m", "m", "n"]})
    made.write({"a": [4, 5], "b": ["u", "v"], "p": ["m", "n"]})
    return made


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    return make_table(tmp_path)


def read(table: paimon.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.scan(columns=["_ROW_ID", *columns]).to_arrow().sort_by("_ROW_ID")
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_rows_are_deleted_by_a_condition_and_keep_their_ids(table: paimon.Table) -> None:
    table.update({"b": "upper(b)"}, "a <= 2")
    assert table.delete("a IN (1, 3)").rows == 2
    assert read(table, "a", "b") == [(1, 2, "Y"), (3, 4, "u"), (4, 5, "v")]
    assert table.scan().count() == 3
    assert table.update({"b": "b || '!'"}, "TRUE").rows == 3
    assert read(table, "b") == [(1, "Y!"), (3, "u!"), (4, "v!")]
    assert table.delete("b = 'Y!'").rows == 1 and table.delete("a = 1").rows == 0
    table.write({"a": [6], "b": ["w"], "p": ["m"]})
    assert read(table, "a") == [(3, 4), (4, 5), (5, 6)]
    assert table.maintain.check(deep=True).faults == ()


def test_rows_are_deleted_by_their_ids(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    messages = builder.new_update().delete_by_row_id([4, 0, 4])
    assert len(messages) == 2 and not any(m.data.new_files for m in messages)
    builder.new_commit().commit(decode(encode(messages)))
    assert read(table, "a") == [(1, 2), (2, 3), (3, 4)]
    change = table.new_batch_write_builder().new_update()
    assert change.delete_by_row_id([0]) == []
    with pytest.raises(paimon.InvalidRequest, match="Row id 9 is not in table"):
        change.delete_by_row_id([9])
    with pytest.raises(paimon.InvalidRequest, match="Row id 0 is not in table"):
        change.update_by_row_id({"_ROW_ID": [0], "b": ["deleted"]})


def test_a_vector_belongs_to_the_oldest_file_of_its_rows(table: paimon.Table) -> None:
    first = {path.name for path in Path(table.location).rglob("data-*")}
    table.update({"b": "'new'"}, "TRUE")
    messages = table.new_batch_write_builder().new_update().delete_by_row_id([0, 2])
    marked = [r.data_file for m in messages for e in m.data.new_index_files for r in e.deletion_vectors or ()]
    assert len(marked) == 2 and set(marked) < first


def test_deleted_rows_are_neither_matched_nor_shown_by_changes_of_columns(table: paimon.Table) -> None:
    table.delete("a = 2")
    builder = table.new_batch_write_builder()
    change = builder.new_update()
    builder.new_commit().commit(change.upsert_by_keys({"a": [2, 1], "b": ["again", "X"], "p": ["m", "m"]}, ["a"]))
    assert read(table, "a", "b")[:1] == [(0, 1, "X")] and read(table, "a", "b")[-1] == (5, 2, "again")
    builder = table.new_batch_write_builder()
    part = builder.new_update().shard(0, 1, ["a", "_ROW_ID"])
    rows = part.to_arrow_batch_reader().read_all()
    assert rows["_ROW_ID"].to_pylist() == part.row_ids.to_pylist() == [0, 2, 3, 4, 5]
    builder.new_commit().commit(part.update(pa.table({"b": [f"s{a}" for a in rows["a"].to_pylist()]})))
    assert read(table, "b") == [(0, "s1"), (2, "s3"), (3, "s4"), (4, "s5"), (5, "s2")]


@pytest.mark.parametrize("marks", [True, False])
def test_whole_partitions_lose_their_files(tmp_path: Path, marks: bool) -> None:
    table = make_table(tmp_path, **{"deletion-vectors.enabled": marks})
    table.update({"b": "'new'"}, "a = 3")
    if marks:
        table.delete("a = 5")
    assert table.delete("p = 'n'").rows == (1 if marks else 2)
    assert read(table, "a") == [(0, 1), (1, 2), (3, 4)]
    assert {row["partition"] for row in table.system_table("files").scan().to_arrow().to_pylist()} == {"{m}"}
    assert table.maintain.check(deep=True).faults == ()


def test_a_delete_of_a_partition_conflicts_with_new_columns_of_its_rows(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    messages = builder.new_update().delete_where("p = 'n'")
    table.update({"b": "'late'"}, "a = 3")
    with pytest.raises(paimon.CommitConflict, match="Another commit set columns of rows from id 2"):
        builder.new_commit().commit(messages)
    assert read(table, "b")[2] == (2, "late")


def test_an_update_of_deleted_partitions_is_refused(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    messages = builder.new_update().update_by_row_id({"_ROW_ID": [2], "b": ["late"]})
    table.delete("p = 'n'")
    with pytest.raises(paimon.CommitConflict, match="no longer in the table"):
        builder.new_commit().commit(messages)


Prepare = Callable[[TableUpdate], list[Any]]
CHANGES: dict[str, Prepare] = {
    "delete where": lambda change: change.delete_where("a < 2"),
    "delete ids": lambda change: change.delete_by_row_id([0]),
    "update": lambda change: change.update_by_row_id({"_ROW_ID": [1], "b": ["Y"]}),
    "function": lambda change: change.update_by_function(lambda rows: {"c": ["f"] * len(rows)}, ["b"], "a = 2"),
    "condition": lambda change: change.update_by_function(lambda rows: {"c": ["f"] * len(rows)}, [], "b = 'y'"),
    "upsert": lambda change: change.upsert_by_keys({"b": ["y"], "c": ["k"], "p": ["m"]}, ["b"], ["c"]),
    "merge": lambda change: (
        change.merge({"i": [1], "t": ["y"]}, "b = t").when_matched_update({"c": "'m'"}).prepare_commit()
    ),
    "merge delete": lambda change: change.merge({"i": [1]}, "a = i").when_matched_delete().prepare_commit(),
    "shard": lambda change: change.shard(0, 4, ["b"]).update(pa.table({"c": ["s", "s"]})),
}
OTHERS: dict[str, Callable[[paimon.Table], object]] = {
    "update": lambda other: other.update({"b": "'late'"}, "a = 1"),
    "delete": lambda other: other.delete("a = 1"),
}


@pytest.fixture
def wide(table: paimon.Table) -> paimon.Table:
    return table.add_column("c", "STRING").add_column("d", "STRING")


@pytest.mark.parametrize(("name", "concurrent"), mark_products(CHANGES, OTHERS))
def test_a_change_conflicts_with_one_of_what_it_read(wide: paimon.Table, name: str, concurrent: str) -> None:
    builder = wide.new_batch_write_builder()
    messages = CHANGES[name](builder.new_update())
    OTHERS[concurrent](wide)
    after = read(wide, "a", "b", "c")
    with pytest.raises(paimon.CommitConflict, match="rows from id 0"):
        builder.new_commit().commit(decode(encode(messages)))
    assert read(wide, "a", "b", "c") == after
    assert wide.maintain.check(deep=True).faults == ()


@pytest.mark.parametrize("name", [name for name in CHANGES if "delete" not in name])
def test_updates_of_columns_that_nobody_set_are_committed(wide: paimon.Table, name: str) -> None:
    builder = wide.new_batch_write_builder()
    messages = CHANGES[name](builder.new_update())
    wide.update({"d": "'late'"}, "p = 'm'")
    wide.delete("a = 5")
    wide.update({"b": "'other rows'"}, "a IN (3, 4)")
    builder.new_commit().commit(messages)


@pytest.mark.parametrize("how", ["delete", "update"])
def test_a_statement_conflicts_with_a_change_of_its_rows(
    table: paimon.Table, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = change_module.commit_rows
    waiting: list[Callable[[], object]] = [lambda: table.with_options({}).update({"a": "a + 100"}, "a = 1")]

    def commit(*args: Any) -> Any:
        while waiting:
            waiting.pop()()
        return real(*args)

    monkeypatch.setattr(change_module, "commit_rows", commit)
    with pytest.raises(paimon.CommitConflict):
        table.delete("a < 2") if how == "delete" else table.update({"b": "'small'"}, "a < 2")
    assert read(table, "a", "b")[0] == (0, 101, "x")


def test_a_function_sets_columns_group_by_group(table: paimon.Table) -> None:
    groups = []

    def number(rows: pa.Table) -> dict[str, list[str]]:
        groups.append(rows["_ROW_ID"].to_pylist())
        return {"b": [f"{a}" for a in rows["a"].to_pylist()]}

    table.delete("a = 1")
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().update_by_function(number, ["a"], "a <> 4"))
    assert groups == [[1], [2], [4]]
    assert read(table, "b") == [(1, "2"), (2, "3"), (3, "u"), (4, "5")]
    files = list(Path(table.location).rglob("data-*"))

    def fail(rows: pa.Table) -> Any:
        return rows.select(["a"]) if rows["_ROW_ID"][0].as_py() == 1 else pa.table({"a": []})

    with pytest.raises(paimon.InvalidRequest, match="returned 0 rows for 1 rows"):
        table.new_batch_write_builder().new_update().update_by_function(fail, ["a"])
    assert list(Path(table.location).rglob("data-*")) == files


def test_changes_start_from_the_state_that_scan_options_select(table: paimon.Table) -> None:
    old = table.with_options({"scan.snapshot-id": 1})
    change = old.new_batch_write_builder().new_update()
    assert change.snapshot_id == 1
    with pytest.raises(paimon.InvalidRequest, match="Row id 3 is not in table"):
        change.update_by_row_id({"_ROW_ID": [3], "b": ["q"]})


def test_rows_show_the_snapshot_that_changed_them(table: paimon.Table) -> None:
    table.update({"b": "'new'"}, "a = 1")
    assert read(table, "_SEQUENCE_NUMBER") == [(0, 3), (1, 3), (2, 1), (3, 2), (4, 2)]
    assert table.scan(columns=["a"], where="_SEQUENCE_NUMBER = 2").to_arrow()["a"].to_pylist() == [4, 5]
    assert table.scan(columns=["_SEQUENCE_NUMBER"]).arrow_schema.field(0).nullable is False
    assert table.scan().to_arrow().column_names == ["a", "b", "p"]


def test_shards_and_slices_divide_groups_of_files_by_rows(table: paimon.Table) -> None:
    table.update({"b": "'new'"}, "a = 4")
    table.delete("a = 1")
    builder = table.new_read_builder()
    for shards in range(1, 7):
        plans = [builder.new_scan().with_shard(number, shards).plan().splits() for number in range(shards)]
        parts = [builder.new_read().to_arrow(plan)["a"].to_pylist() for plan in plans]
        assert sorted(a for part in parts for a in part) == [2, 3, 4, 5]
        assert max(map(len, parts)) <= -(-5 // shards)
    sliced = builder.new_read().to_arrow(builder.new_scan().with_slice(1, 3).plan().splits())
    assert sliced["a"].to_pylist() == [2, 4]


def test_a_writer_of_some_columns_makes_files_without_the_others(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write().with_write_type(["p", "a"]) as writer:
        writer.write({"a": [7], "p": ["m"]})
        messages = writer.prepare_commit()
    builder.new_commit().commit(messages)
    assert messages[0].data.new_files[0].write_cols == ("a", "p")
    assert read(table, "a", "b")[-1] == (5, 7, None)
    table.update({"b": "'set'"}, "a = 7")
    assert read(table, "a", "b")[-1] == (5, 7, "set")
    for columns, message in ((["a"], "partition column 'p'"), (["p", "no"], "'no' does not exist")):
        with pytest.raises(paimon.InvalidRequest, match=message):
            builder.new_write().with_write_type(columns)
