"""Tables whose rows this library would store in another form than Java: every way to write them is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_tables import golden_directory

import paimon
from paimon.domain.errors import Unsupported
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import BlobType

EVOLVING = {"row-tracking.enabled": True, "data-evolution.enabled": True}
ROWS = [{"id": 1, "pic": b"x"}]


def batch_builder(table: paimon.Table) -> None:
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(ROWS)
        writer.prepare_commit()


def stream_builder(table: paimon.Table) -> None:
    with table.new_stream_write_builder("u").new_write() as writer:
        writer.write(ROWS)
        writer.prepare_commit(1)


WRITES: dict[str, Callable[[paimon.Table], Any]] = {
    "write": lambda table: table.write(ROWS),
    "merge_schema": lambda table: table.write(ROWS, merge_schema=True),
    "overwrite": lambda table: table.overwrite(ROWS, partition={}),
    "batch builder": batch_builder,
    "stream builder": stream_builder,
    "compact": lambda table: table.compact(full=True),
}


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    return catalog


def data_files(table: paimon.Table) -> list[Path]:
    return [p for p in Path(table.location).rglob("*") if p.is_file() and p.parent.name.startswith("bucket-")]


@pytest.mark.parametrize("way", [way for way in WRITES if way != "compact"])
def test_no_rows_with_a_blob_column_are_written(catalog: paimon.Catalog, way: str) -> None:
    table = catalog.create_table("d.t", "id INT, pic BLOB", options=EVOLVING)
    with pytest.raises(Unsupported, match="BLOB column 'pic'"):
        WRITES[way](table)
    assert table.snapshots() == [] and data_files(table) == []


@pytest.mark.parametrize("way", WRITES)
def test_a_blob_table_of_java_is_read_and_not_written(tmp_path: Path, way: str) -> None:
    table = paimon.open_table(shutil.copytree(golden_directory() / "blob" / "table", tmp_path / "t"))
    assert isinstance(table, paimon.Table)
    before, files = table.scan(columns=["id", "name"]).to_arrow(), data_files(table)
    with pytest.raises(Unsupported, match="BLOB column 'pic'"):
        WRITES[way](table)
    assert table.scan(columns=["id", "name"]).to_arrow() == before and data_files(table) == files


def test_a_blob_column_that_is_added_later_ends_the_writing(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "id INT", options=EVOLVING)
    table.write([{"id": 1}])
    widened = table.alter(AddColumn("pic", BlobType()))
    with pytest.raises(Unsupported, match="BLOB column 'pic'"):
        widened.write(ROWS)
    assert widened.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


def test_a_blob_inside_a_row_is_refused_too(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "id INT, r ROW<pic BLOB>", options=EVOLVING)
    with pytest.raises(Unsupported, match="BLOB column 'r'"):
        table.write([{"id": 1, "r": {"pic": b"x"}}])


def test_descriptors_are_not_read_as_values(tmp_path: Path) -> None:
    table = paimon.open_table(golden_directory() / "data_evolution" / "table")
    assert isinstance(table, paimon.Table)
    described = table.with_options({"blob-descriptor-field": "b"})
    with pytest.raises(Unsupported, match="column 'b' through BLOB descriptors"):
        described.scan().to_arrow()
    assert described.scan(columns=["id"]).count() == table.scan().count()
