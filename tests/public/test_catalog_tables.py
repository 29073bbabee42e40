"""The database sys: system tables about all tables of a catalog, and the row ids of one table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.cli.main import main
from paimon.domain.errors import InvalidRequest, NotFound


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path_factory.mktemp("sys") / "lake", **{"table-default.file.format": "orc"})
    catalog.create_database("db")
    keyed = catalog.create_table(
        "db.keyed", "id INT NOT NULL, day STRING NOT NULL", primary_keys=["id", "day"], partition_keys=["day"],
        options={"bucket": "1"},
    )  # fmt: skip
    keyed.write([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    ids = catalog.create_table("db.ids", "id INT, name STRING", options={"row-tracking.enabled": "true"})
    ids.write([{"id": 7, "name": "x"}])
    ids.write([{"id": 8, "name": "y"}])
    return catalog


def test_all_tables_are_listed_with_their_sizes(catalog: paimon.Catalog) -> None:
    rows = {row["table_name"]: row for row in catalog.system_table("sys.tables").scan().to_arrow().to_pylist()}
    assert rows.keys() == {"keyed", "ids"}
    keyed = rows["keyed"]
    assert (keyed["table_type"], keyed["partitioned"], keyed["primary_key"]) == ("table", True, True)
    assert (keyed["record_count"], keyed["file_count"]) == (2, 2) and keyed["file_size_in_bytes"] > 0
    assert keyed["created_at"] <= keyed["updated_at"] and keyed["owner"] is None
    assert not rows["ids"]["partitioned"] and not rows["ids"]["primary_key"]
    assert catalog.table("sys.all_tables").scan(columns=["table_name"], where="partitioned").to_arrow().to_pylist() == [
        {"table_name": "keyed"}
    ]


def test_a_table_that_cannot_be_read_has_only_its_names(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    table = catalog.create_table("db.broken", "id INT")
    (Path(table.location) / "schema" / "schema-0").write_text("{")
    [row] = catalog.table("sys.tables").scan().to_arrow().to_pylist()
    assert (row["table_name"], row["table_type"], row["record_count"]) == ("broken", None, None)
    assert catalog.table("sys.all_table_options").scan().count() == 0


def test_options_of_tables_and_of_the_catalog(catalog: paimon.Catalog) -> None:
    found = catalog.sql("SELECT key, value FROM sys.all_table_options WHERE table_name = 'keyed'").to_arrow()
    assert {"key": "bucket", "value": "1"} in found.to_pylist()
    options = catalog.sql("SELECT * FROM sys.catalog_options ORDER BY key").to_arrow()
    assert options.to_pylist()[-1] == {"key": "warehouse", "value": catalog.warehouse}
    assert {"key": "table-default.file.format", "value": "orc"} in options.to_pylist()


def test_types_are_those_of_java(catalog: paimon.Catalog) -> None:
    assert catalog.table("sys.all_table_options").columns == ["database_name", "table_name", "key", "value"]
    schema = catalog.table("sys.tables").arrow_schema
    assert schema.names[5:10] == ["owner", "created_at", "created_by", "updated_at", "updated_by"]
    assert {schema.field(n).type for n in ("created_at", "record_count", "last_file_creation_time")} == {pa.int64()}
    assert not catalog.table("sys.catalog_options").arrow_schema.field("key").nullable


def test_the_database_is_read_only_and_listed_on_request(catalog: paimon.Catalog) -> None:
    assert catalog.tables("sys") == ["all_table_options", "all_tables", "catalog_options", "tables"]
    assert "sys" not in catalog.databases()
    with pytest.raises(NotFound, match="tables"):
        catalog.table("sys.tabels")
    with pytest.raises(InvalidRequest, match=r"no part after \$"):
        catalog.table("sys.tables$files")
    with pytest.raises(InvalidRequest, match="no options"):
        catalog.table("sys.tables", {"scan.snapshot-id": 1})
    with pytest.raises(InvalidRequest, match="reserved"):
        catalog.create_table("sys.mine", "id INT")
    with pytest.raises(InvalidRequest):
        catalog.sql("INSERT INTO sys.tables VALUES (1)")


def test_the_terminal_prints_them(catalog: paimon.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", "sys.tables", "--warehouse", catalog.warehouse, "--output", "json"]) == 0
    names = [json.loads(line)["table_name"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(names) == ["ids", "keyed"]


def test_row_ids_follow_the_columns(catalog: paimon.Catalog) -> None:
    tracked = catalog.system_table("db.ids$row_tracking")
    rows = tracked.scan().to_arrow()
    assert rows.schema.names == ["id", "name", "_ROW_ID", "_SEQUENCE_NUMBER"]
    assert not rows.schema.field("_ROW_ID").nullable
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(7, "x", 0, 1), (8, "y", 1, 2)]
    assert tracked.scan(columns=["name"], where="_ROW_ID = 1").to_arrow().to_pylist() == [{"name": "y"}]
    assert tracked.scan(snapshot=1).count() == 1
    found = catalog.sql("SELECT name, _ROW_ID FROM db.`ids$row_tracking` WHERE _SEQUENCE_NUMBER = 2").to_arrow()
    assert found.to_pylist() == [{"name": "y", "_ROW_ID": 1}]
    with pytest.raises(InvalidRequest, match="row-tracking"):
        catalog.table("db.keyed$row_tracking")
