"""A merge into a table with data evolution writes the columns that it sets, and keeps row ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.operations.row_level import merge_source


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True, "deletion-vectors.enabled": True}
    made = catalog.create_table(
        "shop.stock", "a BIGINT, b STRING, n INT, p STRING", partition_keys=["p"], options=options
    )
    made.write({"a": [1, 2, 3], "b": ["x", "y", "z"], "n": [1, 2, 3], "p": ["m", "m", "n"]})
    made.write({"a": [4, 5], "b": ["u", "v"], "n": [4, 5], "p": ["m", "n"]})
    return made


def read(table: paimon.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.scan(columns=["_ROW_ID", *columns]).to_arrow().sort_by("_ROW_ID")
    return [tuple(row.values()) for row in rows.to_pylist()]


SOURCE = {"a": [2, 4, 9], "b": ["Y", "D", "new"], "n": [20, 40, 90], "p": ["m", "m", "k"]}


@pytest.mark.parametrize("is_spilled", [False, True])
def test_all_clauses_change_rows_in_one_commit(
    table: paimon.Table, is_spilled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_spilled:
        monkeypatch.setattr(merge_source, "must_spill", lambda engine, size: True)
    merge = table.merge(SOURCE, on=["a", "p"]).when_matched_delete("source.b = 'D'")
    merge = merge.when_matched_update({"b": "source.b || target.b"}).when_not_matched_insert_all()
    done = merge.when_not_matched_by_source_update({"n": "n * 100"}, "n >= 3").execute()
    assert (done.inserted, done.updated, done.deleted, len(done.snapshot_ids)) == (1, 3, 1, 1)
    expected = [(0, 1, "x", 1), (1, 2, "Yy", 2), (2, 3, "z", 300), (4, 5, "v", 500), (5, 9, "new", 90)]
    assert read(table, "a", "b", "n") == expected
    written = table.system_table("files").scan(["write_cols"]).to_arrow()["write_cols"].to_pylist()
    assert {tuple(columns) for columns in written if columns} == {("b", "n")}
    assert table.maintain.check(deep=True).faults == ()


def test_a_merge_of_all_columns_leaves_the_partition(table: paimon.Table) -> None:
    source = {"a": [3], "b": ["all"], "n": [0], "p": ["n"]}
    assert table.merge(source, on=["a", "p"]).when_matched_update_all().execute().updated == 1
    assert read(table, "b", "n", "p")[2] == (2, "all", 0, "n")
    with pytest.raises(paimon.InvalidRequest, match="part of the partition keys"):
        table.merge(source, on="a").when_matched_update({"p": "source.p"}).execute()


def test_messages_of_a_merge_are_committed_later(table: paimon.Table) -> None:
    builder, other = table.new_batch_write_builder(), table.new_batch_write_builder()
    merge = builder.new_update().merge(SOURCE, ["a", "p"], source_alias="s").when_matched_update({"b": "s.b"})
    messages = merge.prepare_commit()
    late = other.new_update().merge(SOURCE, ["a", "p"]).when_matched_update({"b": "'late'"}).prepare_commit()
    assert read(table, "b")[1] == (1, "y")
    builder.new_commit().commit(messages)
    assert read(table, "b")[1::2] == [(1, "Y"), (3, "D")]
    with pytest.raises(paimon.CommitConflict, match="set the same columns"):
        other.new_commit().commit(late)


def test_two_rows_for_one_are_refused_and_leave_no_file(table: paimon.Table) -> None:
    files = set(Path(table.location).rglob("*"))
    merge = table.new_batch_write_builder().new_update().merge({"a": [1, 5, 5], "b": ["p", "q", "r"]}, "a")
    with pytest.raises(paimon.InvalidRequest, match="match the same row"):
        merge.when_matched_update({"b": "source.b"}).prepare_commit()
    assert {path for path in Path(table.location).rglob("*") if path.is_file()} <= files


def test_a_merge_in_sql_changes_rows(table: paimon.Table) -> None:
    catalog = paimon.connect(Path(table.location).parents[1])
    catalog.sql(
        "MERGE INTO shop.stock t USING (SELECT 2 AS a, 'sql' AS b) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b"
    )
    assert read(table, "b")[1] == (1, "sql")


def test_a_table_without_deletion_vectors_deletes_no_rows(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    plain = catalog.create_table("shop.plain", "a BIGINT", options=options)
    plain.write({"a": [1]})
    with pytest.raises(paimon.Unsupported, match=r"deletion-vectors\.enabled"):
        plain.merge({"a": [1]}, on="a").when_matched_delete().execute()
    tracked = catalog.create_table("shop.tracked", "a BIGINT", options={"row-tracking.enabled": True})
    with pytest.raises(paimon.Unsupported, match="merging into table"):
        tracked.merge({"a": [1]}, on="a").when_not_matched_insert_all().execute()


def test_rows_are_matched_by_their_ids(table: paimon.Table) -> None:
    source = {"_ROW_ID": [3, 1, 99], "b": ["three", "one", "none"]}
    merge = table.merge(source, on="target._ROW_ID = source._ROW_ID")
    merge = merge.when_matched_delete("target._ROW_ID = 3").when_matched_update({"b": "source.b"})
    done = merge.when_not_matched_insert({"b": "source.b", "p": "'m'"}).execute()
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
    assert read(table, "b") == [(0, "x"), (1, "one"), (2, "z"), (4, "v"), (5, "none")]
    own = table.scan(columns=["_ROW_ID", "n"], where="n < 3")
    assert table.merge(own, on="_ROW_ID").when_matched_update({"n": "target.n + source.n"}).execute().updated == 2
    assert read(table, "n")[:3] == [(0, 2), (1, 4), (2, 3)]
    with pytest.raises(paimon.InvalidRequest, match="'_ROW_ID'"):
        table.merge(source, on="_ROW_ID").when_matched_update({"_ROW_ID": "7"}).execute()


def test_row_ids_that_can_change_match_nothing(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.tracked", "a INT", options={"row-tracking.enabled": True})
    table.write({"a": [1]})
    with pytest.raises(paimon.PaimonError):
        table.merge({"_ROW_ID": [0]}, on="_ROW_ID").when_matched_update({"a": "2"}).execute()
