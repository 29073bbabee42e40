"""Tables with VECTOR columns: inside data files, and in files of their own."""

from __future__ import annotations

from typing import Any

import pytest

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported

EVOLVING = {"row-tracking.enabled": True, "data-evolution.enabled": True}
ROWS: list[dict[str, Any]] = [
    {
        "id": i,
        "v": None if i % 3 == 1 else [i, 0.5],
        "w": [1, None, i],
        "n": None if i == 2 else [{"x": [float(i)]}, {"x": None}],
    }
    for i in range(6)
]
DDL = "id INT, v VECTOR<FLOAT, 2>, w VECTOR<BIGINT, 3> NOT NULL, n ARRAY<ROW<x VECTOR<DOUBLE, 1>>>"


def list_files(table: paimon.Table) -> list[tuple[str, int, int, list[str] | None]]:
    columns = ["file_path", "first_row_id", "record_count", "write_cols"]
    rows = table.system_table("files").scan(columns).to_arrow().to_pylist()
    return [(r["file_path"].partition(".db/")[2].partition(".")[2], *list(r.values())[1:]) for r in rows]


@pytest.mark.parametrize("format_name", ["parquet", "avro"])
def test_vectors_in_data_files(catalog: paimon.Catalog, format_name: str) -> None:
    table = catalog.create_table("d.t", DDL, options={"file.format": format_name, "bucket": "1", "bucket-key": "id"})
    table.write(ROWS[:4])
    table.write(ROWS[4:])
    assert table.scan().to_arrow().to_pylist() == ROWS
    table.compact(full=True)
    assert table.scan(where="id > 1", columns=["v"]).to_arrow()["v"].to_pylist() == [row["v"] for row in ROWS[2:]]
    assert table.maintain.check(deep=True).is_whole


def test_vectors_of_a_primary_key_table(catalog: paimon.Catalog) -> None:
    ddl = "id INT NOT NULL, v VECTOR<FLOAT, 2>"
    table = catalog.create_table("d.t", ddl, primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": 1, "v": [1, 2]}, {"id": 2, "v": None}])
    table.write([{"id": 2, "v": [3, 4]}])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": [1, 2]}, {"id": 2, "v": [3, 4]}]


@pytest.mark.parametrize("format_name", ["parquet", "avro"])
def test_vectors_in_files_of_their_own(catalog: paimon.Catalog, format_name: str) -> None:
    options = {**EVOLVING, "vector.file.format": format_name, "target-file-row-num": 4}
    table = catalog.create_table("d.t", DDL, options=options)
    table.write(ROWS)
    kind = f"vector.{format_name}"
    parts = [("parquet", ["id", "n"]), (kind, ["v"]), (kind, ["w"])]
    assert list_files(table) == [(k, first, n, c) for first, n in ((0, 4), (4, 2)) for k, c in parts]
    assert table.scan().to_arrow().to_pylist() == ROWS
    assert table.scan(columns=["w", "_ROW_ID"], where="id = 5").to_arrow().to_pylist() == [
        {"w": [1, None, 5], "_ROW_ID": 5}
    ]
    builder = table.new_batch_write_builder()
    messages = builder.new_update().update_by_row_id({"_ROW_ID": [0, 5], "w": [[7, 7, 7], [8, 8, 8]]})
    builder.new_commit().commit(messages)
    assert list_files(table)[6:] == [(kind, 0, 4, ["w"]), (kind, 4, 2, ["w"])]
    expected = [dict(row) for row in ROWS]
    expected[0]["w"], expected[5]["w"] = [7, 7, 7], [8, 8, 8]
    assert table.scan().to_arrow().to_pylist() == expected


def test_the_newest_file_of_a_vector_is_read(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "id INT, v VECTOR<FLOAT, 2>", options=EVOLVING)
    table.write([{"id": 1, "v": [1, 1]}, {"id": 2, "v": [2, 2]}])
    for value, change in enumerate(["SET ('vector.file.format' = 'avro')", "RESET ('vector.file.format')"], 5):
        table = table.alter(change)
        builder = table.new_batch_write_builder()
        messages = builder.new_update().update_by_row_id({"_ROW_ID": [0], "v": [[value, value]]})
        builder.new_commit().commit(messages)
        rows = [{"id": 1, "v": [value, value]}, {"id": 2, "v": [2, 2]}]
        assert table.scan().to_arrow().to_pylist() == rows
        assert table.scan(columns=["v"]).to_arrow().to_pylist() == [{"v": row["v"]} for row in rows]
    kinds = [("parquet", None), ("vector.avro", ["v"]), ("parquet", ["v"])]
    assert [(kind, columns) for kind, _, _, columns in list_files(table)] == kinds


def test_vector_files_end_by_their_size(catalog: paimon.Catalog) -> None:
    options = {**EVOLVING, "vector.file.format": "avro", "vector.target-file-size": "1 kb"}
    table = catalog.create_table("d.t", "id INT, v VECTOR<FLOAT, 2> NOT NULL", options=options)
    rows = [{"id": i, "v": [i, i]} for i in range(3000)]
    table.write(rows)
    files = list_files(table)
    assert [f[2] for f in files if f[0] == "parquet"] == [3000] and len(files) > 2
    assert table.scan().to_arrow().to_pylist() == rows


def test_formats_without_vectors_are_refused(catalog: paimon.Catalog) -> None:
    ddl = "id INT, v VECTOR<FLOAT, 2>"
    with pytest.raises(InvalidRequest, match="which orc files cannot store"):
        catalog.create_table("d.t", ddl, options={"file.format": "orc"})
    with pytest.raises(InvalidRequest, match="which orc files cannot store"):
        catalog.create_table("d.t", ddl, options={**EVOLVING, "vector.file.format": "orc"})
    with pytest.raises(Unsupported, match=r"file format 'lance' of option 'vector.file.format'"):
        catalog.create_table("d.t", ddl, options={**EVOLVING, "vector.file.format": "lance"})
    with pytest.raises(InvalidRequest, match=r"'vector.file.format' needs data evolution"):
        catalog.create_table("d.t", ddl, options={"vector.file.format": "avro"})
    table = catalog.create_table("d.t", ddl, options={**EVOLVING, "file.format": "orc", "vector.file.format": "avro"})
    table.write([{"id": 1, "v": [1, 2]}])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": [1, 2]}]
