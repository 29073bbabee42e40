"""Compactions of tables with row tracking keep the ids of rows; those with data evolution join the columns of rows."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import CommitConflict
from paimon.operations.commit import commit as commit_module

TRACKING: dict[str, object] = {"row-tracking.enabled": True}
EVOLVING: dict[str, object] = {**TRACKING, "data-evolution.enabled": True}


def make_table(path: Path | str, options: dict[str, object], **layout: Any) -> paimon.Table:
    catalog = paimon.connect(path)
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table("d.t", "a INT, b STRING, p INT", options=options, **layout)


def read(table: paimon.Table, *names: str) -> list[tuple[Any, ...]]:
    found = table.scan(columns=["_ROW_ID", *names, *table.schema.names]).to_arrow().sort_by("_ROW_ID")
    return [tuple(row.values()) for row in found.to_pylist()]


def list_files(table: paimon.Table) -> list[dict[str, Any]]:
    return table.system_table("files").scan().to_arrow().to_pylist()


def write(table: paimon.Table, start: int, commits: int, rows: int = 2, partitions: int = 1) -> None:
    for number in range(start, start + commits):
        values = [number * rows + i for i in range(rows)]
        table.write({"a": values, "b": [f"b{v}" for v in values], "p": [v % partitions for v in values]})


@pytest.mark.parametrize("marks", [False, True])
def test_tracked_rows_keep_their_ids_and_numbers(tmp_path: Path, marks: bool) -> None:
    options = {**TRACKING, "deletion-vectors.enabled": marks, "file.format": "avro" if marks else "parquet"}
    table = make_table(tmp_path, options, partition_keys=["p"])
    for start in (0, 5):
        write(table, start, 5, rows=3, partitions=2)
        if marks:
            table.delete(f"a IN ({start}, {3 * start + 1})")
        before = read(table, "_SEQUENCE_NUMBER")
        assert table.compact(full=True).files_before > 4
        assert read(table, "_SEQUENCE_NUMBER") == before
    added = table.alter("ADD COLUMN c INT")
    write(added, 10, 5, partitions=2)
    before = read(added, "_SEQUENCE_NUMBER")
    added.compact(full=True)
    assert read(added, "_SEQUENCE_NUMBER") == before and added.maintain.check().is_whole


def test_sorted_rows_keep_their_ids(tmp_path: Path) -> None:
    table = make_table(tmp_path, TRACKING)
    write(table, 0, 3, rows=4)
    before = read(table, "_SEQUENCE_NUMBER")
    table.compact(order_strategy="order", order_by=["b"])
    assert read(table, "_SEQUENCE_NUMBER") == before
    assert table.scan().to_arrow()["b"].to_pylist() == sorted(row[3] for row in before)


def test_a_writer_of_tracked_rows_neither_compacts_nor_warns(tmp_path: Path) -> None:
    table = make_table(tmp_path, EVOLVING)
    write(table, 0, 6)
    assert len(table.snapshots()) == 6
    assert table.compact(full=True).files_after == 1 and table.compact(full=True).files_after == 0


def test_columns_of_rows_become_one_file(tmp_path: Path) -> None:
    table = make_table(tmp_path, EVOLVING)
    write(table, 0, 3, rows=4)
    table.update({"b": "upper(b)"}, "a > 2")
    before = read(table)
    assert len(list_files(table)) == 6
    table.compact(full=True)
    [file] = list_files(table)
    assert (file["first_row_id"], file["record_count"], file["write_cols"]) == (0, 12, None)
    assert read(table) == before
    table.update({"p": "a + 1"}, "a = 7")
    assert read(table) == [(*row[:3], 8 if row[0] == 7 else row[3]) for row in before]


def test_deleted_rows_of_joined_files_stay_deleted(tmp_path: Path) -> None:
    table = make_table(tmp_path, {**EVOLVING, "deletion-vectors.enabled": True})
    write(table, 0, 6, rows=4)
    table.delete("a IN (0, 5, 6, 22)")
    table.update({"b": "'new'"}, "a IN (4, 9)")
    before = read(table)
    assert table.compact().files_after == 1
    assert read(table) == before
    table.delete("a = 7")
    write(table, 6, 2)
    before = [row for row in before if row[0] != 7] + read(table)[-4:]
    table.compact(full=True)
    assert read(table) == before and table.scan().count() == len(before)
    assert table.maintain.check().is_whole


def test_files_of_rows_that_are_not_neighbours_stay(tmp_path: Path) -> None:
    table = make_table(tmp_path, EVOLVING, partition_keys=["p"])
    write(table, 0, 2, rows=4, partitions=2)
    table.update({"b": "'new'"}, "p = 1")
    before = read(table)
    assert table.compact(full=True).files_after == 2, "the two columns files of each group of p = 1"
    assert read(table) == before and len(list_files(table)) == 4


def test_large_files_are_not_written_again(tmp_path: Path) -> None:
    table = make_table(tmp_path, {**EVOLVING, "target-file-size": "10 kb", "file.compression": "none"})
    for start in (0, 1):
        values = list(range(start * 300, start * 300 + 300))
        table.write({"a": values, "b": [f"{v:030}" for v in values], "p": values})
    write(table, 400, 2)
    assert table.compact(full=True).files_before == 2
    assert table.compact(full=True).files_before == 0
    assert table.with_options({"compaction.force-rewrite-all-files": True}).compact(full=True).files_before == 3


def test_blobs_stay_next_to_the_joined_files(tmp_path: Path) -> None:
    table = paimon.open_table(shutil.copytree(golden_directory() / "blob" / "table", tmp_path / "t"))
    assert isinstance(table, paimon.Table)
    blobs = {f["file_path"] for f in list_files(table) if f["file_format"] == "blob"}
    name = next(f.name for f in table.arrow_schema if f.name != "id" and "blob" not in str(f.metadata).lower())
    table.update({name: f"{name}"}, "true")
    before = table.scan(columns=["_ROW_ID", *table.schema.names]).to_arrow().sort_by("_ROW_ID")
    assert table.compact(full=True).files_after
    assert table.scan(columns=["_ROW_ID", *table.schema.names]).to_arrow().sort_by("_ROW_ID") == before
    assert {f["file_path"] for f in list_files(table) if f["file_format"] == "blob"} == blobs


def test_vectors_in_files_of_other_columns_are_not_lost(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    columns = "a INT, v VECTOR<FLOAT, 2>"
    table = catalog.create_table("d.t", columns, options={**EVOLVING, "file.format": "avro"})
    table.write({"a": [1], "v": [[1.0, 2.0]]})
    apart = table.alter(paimon.SetOption("vector.file.format", "avro"))
    apart.write({"a": [2], "v": [[3.0, 4.0]]})
    apart.write({"a": [3], "v": [[5.0, 6.0]]})
    before = apart.scan().to_arrow().sort_by("a")
    assert apart.compact(full=True).files_before == 2
    assert apart.scan().to_arrow().sort_by("a") == before


CHANGES: dict[str, Callable[[paimon.Table], object]] = {
    "update": lambda table: table.update({"b": "'new'"}, "a = 3"),
    "delete": lambda table: table.delete("a = 3"),
    "compaction": lambda table: table.compact(full=True),
    "write": lambda table: table.write({"a": [9], "b": ["x"], "p": [9]}),
    "overwrite": lambda table: table.overwrite({"a": [9], "b": ["x"], "p": [9]}),
}


@pytest.mark.parametrize("other", CHANGES)
@pytest.mark.parametrize("this", ["update", "delete", "compaction"])
def test_concurrent_changes_are_both_there_or_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, this: str, other: str
) -> None:
    """`other` commits between the plan of `this` and its publication."""
    table = make_table(f"memory://{uuid.uuid4().hex}", {**EVOLVING, "deletion-vectors.enabled": True})
    write(table, 0, 3)
    inner, state = commit_module.publish_change, {"is_first": True}

    def publish(*given: Any, **named: Any) -> Any:
        if state.pop("is_first", False):
            CHANGES[other](table)
        return inner(*given, **named)

    monkeypatch.setattr(commit_module, "publish_change", publish)
    done = True
    try:
        CHANGES[this](table)
    except CommitConflict:
        done = False
    changes = {other, this} if done else {other}
    rows = {i: (i, f"b{i}", 0) for i in range(6)}
    if "update" in changes and 3 in rows:
        rows[3] = (3, "new", 0)
    if "delete" in changes:
        rows.pop(3)
    if other == "overwrite":
        rows = {}
    if other in ("write", "overwrite"):
        rows[6] = (9, "x", 9)
    assert read(table) == [(i, *row) for i, row in sorted(rows.items())]
    assert table.maintain.check().is_whole


STEPS = st.sampled_from(["write", "update", "update p", "delete", "compact", "compact fully", "add column"])


@given(steps=st.lists(STEPS, min_size=4, max_size=12), marks=st.booleans(), seed=st.integers(0, 1_000))
def test_a_compaction_changes_no_row(steps: list[str], marks: bool, seed: int) -> None:
    catalog = paimon.connect(f"memory://{uuid.uuid4().hex}")
    catalog.create_database("d")
    options = {**EVOLVING, "deletion-vectors.enabled": marks, "compaction.min.file-num": 2}
    table = catalog.create_table("d.t", "a INT, b STRING, p INT", options=options)
    rows: dict[int, list[Any]] = {}
    for number, step in enumerate(steps):
        chosen = [i for i in rows if (i * 7 + seed) % 3 == number % 3]
        condition = f"a IN ({', '.join(str(rows[i][0]) for i in chosen) or '-1'})"
        if step == "write":
            values = list(range(number * 10, number * 10 + 1 + (seed + number) % 4))
            table.write({"a": values, "b": [f"b{v}" for v in values], "p": values})
            rows |= {i: row[:3] for i, *row in read(table) if row[0] in values}
        elif step.startswith("update"):
            name, place = ("p", 2) if step == "update p" else ("b", 1)
            table.update({name: f"{number}" if place == 2 else f"'{number}'"}, condition)
            for i in chosen:
                rows[i][place] = number if place == 2 else f"{number}"
        elif step == "delete" and marks:
            table.delete(condition)
            rows = {i: row for i, row in rows.items() if i not in chosen}
        elif step.startswith("compact"):
            table.compact(full=step == "compact fully")
        elif step == "add column" and "c" not in table.schema.names:
            table = table.alter("ADD COLUMN c INT")
        expected = [(i, *row, *[None] * (len(table.schema.names) - 3)) for i, row in sorted(rows.items())]
        assert read(table) == expected, step


def make_blob_table() -> paimon.Table:
    table = make_table(f"memory://{uuid.uuid4().hex}", EVOLVING).alter("ADD COLUMN pic BLOB")
    for value in (0, 2):
        table.write({"a": [value, value + 1], "b": ["x", "y"], "p": [0, 0], "pic": [b"1", b"2"]})
    return table


def test_rows_without_blobs_are_not_joined_with_rows_with_blobs() -> None:
    table = make_blob_table().alter("ADD COLUMN c BLOB")
    table.write({"a": [4], "b": ["x"], "p": [0], "pic": [b"3"], "c": [b"4"]})
    before = read(table)
    assert table.compact(full=True).files_after == 1 and read(table) == before


@pytest.mark.parametrize("column", ["b", "pic", "c"])
@pytest.mark.parametrize("is_between", [True, False])
def test_an_update_and_a_compaction_of_rows_with_blobs(
    monkeypatch: pytest.MonkeyPatch, column: str, is_between: bool
) -> None:
    """The update was prepared before the compaction, and is committed before its publication, or after it."""
    table = make_blob_table().alter("ADD COLUMN c BLOB")
    value = pa.array([b"new"]).cast(pa.string() if column == "b" else pa.binary())
    builder, inner = table.new_batch_write_builder(), commit_module.publish_change
    messages = builder.new_update().update_by_row_id(pa.table({"_ROW_ID": pa.array([2]), column: value}))

    def publish(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(commit_module, "publish_change", inner)
        builder.new_commit().commit(messages)
        return inner(*given, **named)

    if is_between:
        monkeypatch.setattr(commit_module, "publish_change", publish)
    with contextlib.suppress(CommitConflict):
        table.compact(full=True)
        if not is_between:
            builder.new_commit().commit(messages)
    changed = [row[0] for row in read(table) if "new" in row or b"new" in row]
    assert changed == ([2] if is_between or column == "pic" else [])
    assert table.maintain.check(deep=True).is_whole


def test_health_proposes_only_compactions_that_change_something(tmp_path: Path) -> None:
    table = make_table(tmp_path, {**EVOLVING, "deletion-vectors.enabled": True}, partition_keys=["p"])
    write(table, 0, 6)
    table.delete("a < 9")
    assert [finding.kind.value for finding in table.maintain.health().findings] == ["small_files"]
    table.maintain.run_due()
    assert table.maintain.health().findings == () and len(list_files(table)) == 1
    write(table, 6, 6, partitions=2)
    assert table.maintain.health().findings == ()
