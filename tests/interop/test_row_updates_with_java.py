"""Updates by row id with Java: it reads the new columns next to the old files, and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.java_paimon import JavaPaimon, canonical
from support.shared_java_table import create_shared_table, read_rows

import paimon

pytestmark = pytest.mark.interop


def test_java_reads_columns_that_are_updated_by_row_id(java: JavaPaimon, tmp_path: Path) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table, directory = create_shared_table(tmp_path, partition_keys=["p"], options=options)
    expected: dict[int, dict[str, Any]] = {}
    for step in range(3):
        rows = [{"id": step * 10 + i, "p": "ab"[i % 2], "s": i, "v": f"v{i}"} for i in range(10)]
        if step == 1:
            java.write(directory, rows, identifier=step)
        else:
            table.write(rows)
        expected |= {row["id"]: row for row in rows}
        change(table, expected, step)
        table.compact(full=True)
        assert read_rows(directory) == canonical(expected.values()), f"ours after step {step}"
        assert java.read(directory) == canonical(expected.values()), f"Java after step {step}"


def test_java_reads_compacted_rows_with_their_ids(java: JavaPaimon, tmp_path: Path) -> None:
    table, directory = create_shared_table(tmp_path, partition_keys=["p"], options={"row-tracking.enabled": "true"})
    expected = []
    for step in range(4):
        rows = [{"id": step * 4 + i, "p": "ab"[i % 2], "s": i, "v": f"v{i}"} for i in range(4)]
        if step == 3:
            java.write(directory, rows, identifier=step)
        else:
            table.write(rows)
        expected += rows
        table.compact(full=True)
        assert java.read(directory) == canonical(expected), f"after step {step}"
    tracked = table.scan(columns=["_ROW_ID", "_SEQUENCE_NUMBER"]).to_arrow().sort_by("_ROW_ID").to_pylist()
    assert [row["_ROW_ID"] for row in tracked] == list(range(16))
    assert [row["_SEQUENCE_NUMBER"] for row in tracked[::4]] == [1, 2, 4, 6]


def change(table: paimon.Table, expected: dict[int, dict[str, Any]], step: int) -> None:
    """Update rows by their ids, by a condition and by their keys, in three commits."""
    found = table.scan(columns=["_ROW_ID", "id"], where=f"id >= {step * 10 - 3} AND s < 8").to_arrow()
    ids = found["id"].to_pylist()
    rows = {"_ROW_ID": found["_ROW_ID"].to_pylist(), "v": [f"{step}:{i}" for i in ids]}
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().update_by_row_id(rows))
    for number in ids:
        expected[number]["v"] = f"{step}:{number}"
    table.update({"s": "s + 100"}, "id % 3 = 0")
    for number in [n for n in expected if n % 3 == 0]:
        expected[number]["s"] += 100
    given = [{**expected[step * 10 + 4], "s": -1}, {"id": 1000 + step, "p": "a", "s": None, "v": "new"}]
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().upsert_by_keys(given, ["id"]))
    expected |= {row["id"]: row for row in given}


def test_blob_columns_of_both_sides(java: JavaPaimon, tmp_path: Path) -> None:
    """Files of several blobs, rows without a value, and a blob that an update replaces."""
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob.target-file-size": "60 b"}
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.blobs", "id INT, pic BLOB, s STRING, doc BLOB", options=options)
    rows = [{"id": i, "pic": b"p" * i, "s": f"s{i}", "doc": None if i % 3 else b"d"} for i in range(20)]
    table.write(rows[:8])
    java.write(Path(table.location), show_blobs(rows[8:15]))
    table.write(rows[15:])
    table.update({"pic": b"new", "s": "'changed'"}, "id in (3, 9)")
    for row in (rows[3], rows[9]):
        row["pic"], row["s"] = b"new", "changed"
    table.compact(full=True)
    assert canonical(show_blobs(table.scan().to_arrow().to_pylist())) == canonical(show_blobs(rows))
    assert java.read(Path(table.location)) == canonical(show_blobs(rows))


def show_blobs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as Java's driver shows and takes them: with bytes in hexadecimal digits."""
    return [{name: v.hex() if isinstance(v, bytes) else v for name, v in row.items()} for row in rows]
