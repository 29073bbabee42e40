"""Updates by row id write new columns next to the old files, and no update is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.domain.commit.message_codec import decode, encode
from paimon.operations.row_level import row_id_changes


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    made = catalog.create_table("shop.stock", "a BIGINT, b STRING, p STRING", partition_keys=["p"], options=options)
    made.write({"a": [1, 2, 3], "b": ["x", "y", "z"], "p": ["m", "m", "n"]})
    made.write({"a": [4, 5], "b": ["u", "v"], "p": ["m", "n"]})
    return made


def read(table: paimon.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.scan(columns=["_ROW_ID", *columns]).to_arrow().sort_by("_ROW_ID").drop_columns(["_ROW_ID"])
    return [tuple(row.values()) for row in rows.to_pylist()]


def update(table: paimon.Table, rows: Any, columns: list[str] | None = None) -> None:
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().update_by_row_id(rows, columns))


def test_row_ids_are_read_and_filtered(table: paimon.Table) -> None:
    assert table.scan(columns=["_ROW_ID"]).to_arrow().schema.field("_ROW_ID").type == pa.int64()
    assert sorted(table.scan(columns=["a", "_ROW_ID"], where="_ROW_ID >= 3").to_arrow().to_pylist(), key=str) == [
        {"a": 4, "_ROW_ID": 3},
        {"a": 5, "_ROW_ID": 4},
    ]
    assert table.scan(where="_ROW_ID = 1").to_arrow().to_pylist() == [{"a": 2, "b": "y", "p": "m"}]
    assert "_ROW_ID" not in table.scan().arrow_schema.names


def test_a_table_without_row_tracking_has_no_row_ids(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    plain = catalog.create_table("shop.plain", "a INT")
    with pytest.raises(paimon.InvalidRequest, match="Column '_ROW_ID' does not exist"):
        plain.scan(columns=["_ROW_ID"]).to_arrow()
    with pytest.raises(paimon.InvalidRequest, match="has no updates by row id"):
        plain.new_batch_write_builder().new_update()


def test_columns_are_set_by_row_id(table: paimon.Table) -> None:
    update(table, {"_ROW_ID": [3, 1], "b": ["U", "Y"]})
    assert read(table, "a", "b") == [(1, "x"), (2, "Y"), (3, "z"), (4, "U"), (5, "v")]
    update(table, {"_ROW_ID": [0], "a": [10], "b": ["left out"]}, ["a"])
    assert read(table, "a", "b")[0] == (10, "x")
    files = table.system_table("files").scan(["first_row_id", "record_count", "write_cols"]).to_arrow().to_pylist()
    assert [tuple(f.values()) for f in files if f["write_cols"]] == [(0, 2, ["b"]), (3, 1, ["b"]), (0, 2, ["a"])]


def test_a_column_that_was_added_later_is_set(table: paimon.Table) -> None:
    table.alter("ADD COLUMN c INT")
    newest = paimon.open_table(table.location)
    update(newest, {"_ROW_ID": [2, 1], "c": [30, 20]})
    assert read(newest, "c") == [(None,), (20,), (30,), (None,), (None,)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"_ROW_ID": [99], "b": ["q"]}, "Row id 99 is not in table"),
        ({"_ROW_ID": [1, 1], "b": ["q", "r"]}, "Row id 1 is given twice"),
        ({"b": ["q"]}, "need the column '_ROW_ID'"),
        ({"_ROW_ID": [1]}, "must set at least one column"),
        ({"_ROW_ID": [1], "nope": ["q"]}, "Column 'nope' does not exist"),
        ({"_ROW_ID": [1], "p": ["n"]}, "part of the partition keys"),
        ({"_ROW_ID": [1], "a": ["text"]}, "a "),
    ],
)
def test_wrong_rows_are_refused(table: paimon.Table, rows: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(paimon.InvalidRequest, match=message):
        table.new_batch_write_builder().new_update().update_by_row_id(rows)
    assert table.snapshot().id == 2  # type: ignore[union-attr]


def test_an_update_that_another_commit_made_old_is_refused(table: paimon.Table) -> None:
    first, second = table.new_batch_write_builder(), table.new_batch_write_builder()
    mine = first.new_update().update_by_row_id({"_ROW_ID": [0], "b": ["1"]})
    same_column = second.new_update().update_by_row_id({"_ROW_ID": [1], "b": ["2"]})
    other_column = second.new_update().update_by_row_id({"_ROW_ID": [1], "a": [20]})
    first.new_commit().commit(decode(encode(mine)))
    table.write({"a": [6], "b": ["w"], "p": ["m"]})
    with pytest.raises(paimon.CommitConflict, match="Another commit set the same columns"):
        second.new_commit().commit(same_column)
    second.new_commit().commit(other_column)
    assert read(table, "a", "b")[:2] == [(1, "1"), (20, "y")]


def test_an_update_of_rows_that_were_replaced_is_refused(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    messages = builder.new_update().update_by_row_id({"_ROW_ID": [0], "b": ["1"]})
    table.overwrite({"a": [7], "b": ["new"], "p": ["m"]}, {"p": "m"})
    with pytest.raises(paimon.CommitConflict, match="no longer in the table"):
        builder.new_commit().commit(messages)


def test_one_commit_sets_a_column_once(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    change = builder.new_update()
    twice = [change.update_by_row_id({"_ROW_ID": [number], "b": ["q"]}) for number in (0, 1)]
    with pytest.raises(paimon.InvalidRequest, match="sets the same column"):
        builder.new_commit().commit([*twice[0], *twice[1]])


@pytest.mark.parametrize("part", [1, 1_000_000])
def test_keys_update_rows_and_append_the_others(
    table: paimon.Table, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(row_id_changes, "_MATCHED_ROWS", part)
    builder = table.new_batch_write_builder()
    rows = {"a": [2, 9, 9, 3, None], "b": ["k2", "first", "last", "other", "null"], "p": ["m", "m", "m", "m", "n"]}
    builder.new_commit().commit(builder.new_update().upsert_by_keys(rows, ["a"]))
    assert sorted(read(table, "a", "b", "p")[5:], key=str) == [(3, "other", "m"), (9, "last", "m"), (None, "null", "n")]
    assert read(table, "a", "b")[:3] == [(1, "x"), (2, "k2"), (3, "z")]  # 3 is in another partition
    builder = table.new_batch_write_builder()
    change = builder.new_update().upsert_by_keys({"a": [None], "b": ["again"], "p": ["n"]}, ["a"], ["b"])
    builder.new_commit().commit(change)
    assert (None, "again") in read(table, "a", "b") and len(read(table, "a")) == 8
    assert table.new_batch_write_builder().new_update().upsert_by_keys({"a": [], "b": [], "p": []}, ["a"]) == []


def test_conditions_select_the_rows_of_an_update(table: paimon.Table) -> None:
    done = table.update({"b": "upper(b) || a"}, "a >= 3")
    assert done.rows == 3 and read(table, "b") == [("x",), ("y",), ("Z3",), ("U4",), ("V5",)]
    assert table.update({"b": "'none'"}, "a > 100").rows == 0
    with pytest.raises(paimon.Unsupported, match="Delete whole partitions, or create the table"):
        table.delete("a = 1")
    query = "UPDATE shop.stock SET b = (SELECT max(x.b) FROM shop.stock x WHERE x.a = stock.a) WHERE a = 1"
    with pytest.raises(paimon.Unsupported, match="by a subquery"):
        paimon.connect(Path(table.location).parents[1]).sql(query)


def test_changes_show_the_files_of_an_update_as_java_does(table: paimon.Table) -> None:
    update(table, {"_ROW_ID": [1], "b": ["Y"]})
    table.write({"a": [9], "b": ["new"], "p": ["m"]})
    between = table.with_options({"incremental-between": "2,4"}).scan().to_arrow().to_pylist()
    updated = [{"a": None, "b": "x", "p": "m"}, {"a": None, "b": "Y", "p": "m"}]  # the columns of all rows of the file
    assert sorted(between, key=str) == sorted([*updated, {"a": 9, "b": "new", "p": "m"}], key=str)
    changes = table.changes().to_arrow().to_pylist()
    assert [(row["a"], row["b"]) for row in changes if row["_snapshot_id"] == 3] == [(None, "x"), (None, "Y")]


def test_parts_of_the_rows_get_new_columns(table: paimon.Table) -> None:
    builder = table.new_batch_write_builder()
    change, messages = builder.new_update(), []
    for number in range(3):
        part = change.shard(number, 3, ["a"])
        values = part.to_arrow_batch_reader().read_all()["a"].to_pylist()
        messages += part.update(pa.table({"b": [f"s{value}" for value in values]}))
    builder.new_commit().commit(messages)
    assert read(table, "b") == [("s1",), ("s2",), ("s3",), ("s4",), ("s5",)]
    with pytest.raises(paimon.InvalidRequest, match="were given"):
        change.shard(0, 1, ["a"]).update(pa.table({"b": ["x"]}))
    with pytest.raises(paimon.InvalidRequest, match="no part 3"):
        change.shard(3, 3, ["a"])
