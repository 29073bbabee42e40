"""Rows of append tables by their numbers: what is read, what is changed, and what is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.domain.errors import CommitConflict, InvalidRequest, ReadConflict, SnapshotExpired, Unsupported
from paimon.domain.predicate.build import col
from paimon.domain.predicate.expression import Predicate
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.row_level.numbered_rows import (
    NumberedChange,
    NumberedRows,
    change_numbered_rows,
    check_numbered_change,
    plan_numbered_rows,
    write_numbered_changes,
)
from paimon.table import Table

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])
MARKED = {"deletion-vectors.enabled": "true"}


def make(place: Path, **options: str) -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, options=options)
    for first in (0, 4, 8):
        table.write([{"n": n, "s": f"s{n}"} for n in range(first, first + 4)])
    return table


def number(table: Table, where: Predicate | None = None) -> NumberedRows:
    return plan_numbered_rows(table.context, latest_snapshot(table.context), ["n"], where, "#")


def change(rows: NumberedRows, numbers: list[int], values: list[Any] | None = None) -> int:
    data = {"#": pa.array(numbers, pa.int64())} if values is None else {"#": numbers, "s": values}
    columns = () if values is None else (rows.context.schema.field_of("s"),)
    write = partial(write_numbered_changes, changes=pa.table(data).to_reader(max_chunksize=2))
    return change_numbered_rows(NumberedChange(rows, columns, "user"), write).rows


@pytest.mark.parametrize("options", [{}, MARKED], ids=["rewritten", "marked"])
def test_numbers_name_rows_of_all_files_also_after_deletes(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, **options)
    table.delete("n in (1, 6)")
    read = number(table).to_batches().read_all()
    numbers = {row["n"]: row["#"] for row in read.to_pylist()}
    assert sorted(numbers) == [0, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    wanted = sorted(numbers[n] for n in (0, 3, 5, 11))
    value_by_number = {numbers[n]: f"new {n}" for n in (0, 3, 5, 11)}
    assert change(number(table), wanted, [value_by_number[n] for n in wanted]) == 4
    expected = {n: f"new {n}" if n in (0, 3, 5, 11) else f"s{n}" for n in numbers}
    assert {row["n"]: row["s"] for row in table.scan().to_arrow().to_pylist()} == expected
    numbers = {row["n"]: row["#"] for row in number(table).to_batches().read_all().to_pylist()}
    assert change(number(table), sorted(numbers[n] for n in (0, 8, 9))) == 3
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [2, 3, 4, 5, 7, 10, 11]


def test_a_condition_leaves_rows_out_and_keeps_their_numbers(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = number(table, col("n") == 6)
    assert len(rows.files) == 1
    assert rows.to_batches().read_all().to_pylist() == [{"n": 6, "#": 2}]
    assert "n = 6" in rows.explain()
    assert change(rows, [2]) == 1
    assert table.scan().count() == 11


def test_an_empty_table_has_no_numbered_rows(tmp_path: Path) -> None:
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA)
    assert number(table).to_batches().read_all().num_rows == 0
    assert change(number(table), []) == 0


def test_a_commit_after_the_read_refuses_the_change(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = number(table)
    table.write([{"n": 99, "s": "other"}])
    with pytest.raises(CommitConflict):
        change(rows, [0])
    assert table.scan().count() == 13


def test_another_commit_with_the_id_of_the_snapshot_refuses_the_change(tmp_path: Path) -> None:
    table = make(tmp_path)
    read_id = table.snapshots()[-1].id
    table.write([{"n": 99, "s": "rolled back"}])
    rows = number(table)
    table.maintain.rollback_to(read_id)
    table.write([{"n": 99, "s": "other"}])
    assert rows.snapshot is not None and table.snapshots()[-1].id == rows.snapshot.id
    with pytest.raises(ReadConflict, match="expired or was rolled back"):
        change(rows, [0])
    assert table.scan().count() == 13


def test_a_snapshot_that_expires_during_the_change_is_a_conflict(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = number(table)
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpired, match="Run the statement again"):
        change(rows, [0], ["new"])
    assert table.scan().count() == 12


def test_numbers_in_another_order_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    for wrong in ([3, 2], [2, 2], [0, 1, 1]):
        with pytest.raises(InvalidRequest, match="wrong order"):
            change(number(table), wrong)
    assert table.scan().count() == 12


def test_a_value_of_another_kind_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidRequest, match="cannot be set to a value of type int64"):
        change(number(table), [1], [5])
    assert table.scan().count() == 12


def test_tables_that_cannot_be_changed_are_refused(tmp_path: Path) -> None:
    tracked = make(tmp_path, **{"row-tracking.enabled": "true"})
    with pytest.raises(Unsupported, match=r"row-tracking\.enabled"):
        check_numbered_change(tracked.context, None)
    with pytest.raises(InvalidRequest, match="Column 't' does not exist"):
        check_numbered_change(make(tmp_path / "b").context, ["t"])
