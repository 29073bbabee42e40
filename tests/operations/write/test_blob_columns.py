"""Tables with BLOB columns: how rows are divided into files, and what changes of rows do to these files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import BlobType
from paimon.domain.types.type_text import format_type

EVOLVING = {"row-tracking.enabled": True, "data-evolution.enabled": True}
ROWS = [
    {"id": i, "pic": None if i % 5 == 3 else b"p" * i, "s": f"s{i}", "doc": b"" if i % 2 else b"d%d" % i}
    for i in range(12)
]


def create(catalog: paimon.Catalog, **options: object) -> paimon.Table:
    return catalog.create_table("d.t", "id INT, pic BLOB, s STRING, doc BLOB", options={**EVOLVING, **options})


def list_files(table: paimon.Table) -> list[tuple[str, int, int, list[str] | None]]:
    columns = ["file_path", "first_row_id", "record_count", "write_cols"]
    rows = table.system_table("files").scan(columns).to_arrow().to_pylist()
    return [(r["file_path"].rsplit(".")[-1], r["first_row_id"], r["record_count"], r["write_cols"]) for r in rows]


def read(table: paimon.Table) -> list[dict[str, object]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_each_blob_column_has_a_file_next_to_that_of_the_other_columns(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    table.write(ROWS[:7])
    table.write(ROWS[7:])
    kinds = [("parquet", ["id", "s"]), ("blob", ["pic"]), ("blob", ["doc"])]
    assert list_files(table) == [(kind, first, n, c) for first, n in ((0, 7), (7, 5)) for kind, c in kinds]
    assert read(table) == ROWS and table.scan().count() == 12
    assert table.maintain.check(deep=True).is_whole


def test_blob_files_end_by_their_size_and_with_the_other_columns(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"target-file-row-num": 5, "blob.target-file-size": "60 b"})
    table.write(ROWS)
    files = list_files(table)
    assert [f[1:3] for f in files if f[0] == "parquet"] == [(0, 5), (5, 5), (10, 2)]
    assert [f[1:3] for f in files if f[3] == ["pic"]] == [(0, 5), (5, 3), (8, 2), (10, 2)]
    assert [f[1:3] for f in files if f[3] == ["doc"]] == [(0, 4), (4, 1), (5, 4), (9, 1), (10, 2)]
    assert read(table) == ROWS
    for column in ("pic", "doc"):
        chosen = table.scan(columns=[column, "id"], where="id IN (2, 8, 11)").to_arrow().to_pylist()
        assert chosen == [{column: ROWS[i][column], "id": i} for i in (2, 8, 11)]
    builder = table.new_read_builder()
    shards = [builder.new_read().to_arrow(builder.new_scan().with_shard(i, 7).plan().splits()) for i in range(7)]
    assert pa.concat_tables(shards).to_pylist() == ROWS


def test_updates_write_new_files_of_the_columns_that_are_set(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"blob.target-file-size": "60 b"})
    table.write(ROWS)
    before = len(list_files(table))
    table.update({"doc": b"new"}, "id = 4")
    table.update({"s": "'S'", "pic": b"n"}, "id > 9")
    assert list_files(table)[before:] == [
        ("blob", 0, 12, ["doc"]),
        ("parquet", 0, 12, ["s"]),
        ("blob", 0, 12, ["pic"]),
    ]
    expected = [dict(row) for row in ROWS]
    expected[4]["doc"] = b"new"
    for row in expected[10:]:
        row["s"], row["pic"] = "S", b"n"
    assert read(table) == expected


def test_some_columns_are_written_alone(catalog: paimon.Catalog) -> None:
    table = create(catalog)
    builder = table.new_batch_write_builder()
    with builder.new_write().with_write_type(["id", "doc"]) as writer:
        writer.write([{"id": 1, "doc": b"x"}])
        builder.new_commit().commit(writer.prepare_commit())
    assert [f[3] for f in list_files(table)] == [["id"], ["doc"]]
    assert read(table) == [{"id": 1, "pic": None, "s": None, "doc": b"x"}]


def test_a_blob_column_that_is_added_later(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.u", "id INT", options=EVOLVING)
    table.write([{"id": 1}])
    widened = table.alter(AddColumn("pic", BlobType()))
    widened.write([{"id": 2, "pic": b"x"}])
    widened.update({"pic": b"y"}, "id = 1")
    assert read(widened) == [{"id": 1, "pic": b"y"}, {"id": 2, "pic": b"x"}]


def test_rows_that_are_deleted_are_left_out_of_each_file(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"blob.target-file-size": "60 b", "deletion-vectors.enabled": True})
    table.write(ROWS)
    table.delete("id IN (0, 5, 6, 11)")
    assert read(table) == [row for row in ROWS if row["id"] not in (0, 5, 6, 11)]


def test_an_abort_deletes_the_files_of_blobs(catalog: paimon.Catalog) -> None:
    table = create(catalog, **{"target-file-row-num": 5})
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(ROWS)
        writer.flush()
        assert len(list(Path(table.location).rglob("*.blob"))) == 6
        writer.abort()
    assert not list(Path(table.location).rglob("data-*"))


def test_an_update_is_newer_than_each_file_of_a_larger_write(catalog: paimon.Catalog) -> None:
    """The sequence number of each file is its snapshot, also of the second file of one write."""
    table = create(catalog, **{"target-file-row-num": 4})
    table.write(ROWS)
    table.update({"s": "'S'"}, "id = 9")
    assert [row["s"] for row in read(table)] == ["S" if i == 9 else f"s{i}" for i in range(12)]


def test_columns_of_bytes_become_blobs(catalog: paimon.Catalog) -> None:
    options = {**EVOLVING, "blob-field": "pic, doc"}
    table = catalog.create_table("d.b", "id INT, pic BYTES NOT NULL, raw BYTES, doc BLOB", options=options)
    assert [format_type(f.type) for f in table.table_schema.fields][1:] == ["BLOB NOT NULL", "BYTES", "BLOB"]
    table.write([{"id": 1, "pic": b"x", "raw": b"y", "doc": None}])
    assert [f[3] for f in list_files(table)] == [["id", "raw"], ["pic"], ["doc"]]


@pytest.mark.parametrize(
    ("names", "message"), [("pick", "'pick', which does not exist"), ("id", "names 'id' of type INT")]
)
def test_columns_that_cannot_become_blobs(catalog: paimon.Catalog, names: str, message: str) -> None:
    with pytest.raises(paimon.InvalidRequest, match=message):
        catalog.create_table("d.b", "id INT, pic BYTES", options={**EVOLVING, "blob-field": names})
