"""One database, two catalogs: we see what Java's JDBC catalog creates, and the reverse."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.java_paimon import JavaPaimon

import paimon
from paimon.domain.errors import AlreadyExists, NotFound

pytestmark = pytest.mark.interop


def test_both_see_one_catalog(java: JavaPaimon, tmp_path: Path) -> None:
    warehouse = tmp_path / "lake"
    uri = f"jdbc:sqlite:{tmp_path}/catalog.sqlite"
    ours = paimon.connect(warehouse, metastore="jdbc", uri=uri, catalog_key="both")
    theirs = java.catalog(
        {"metastore": "jdbc", "uri": uri, "catalog-key": "both", "warehouse": str(warehouse), "lock.enabled": "true"}
    )
    ours.create_database("mine")
    theirs.createDatabase("yours", False)
    table = ours.create_table("mine.t", "a INT NOT NULL, b STRING", primary_keys=["a"], options={"bucket": "1"})
    table.write({"a": [1, 2], "b": ["x", "y"]})
    assert sorted(theirs.listDatabases()) == ["mine", "yours"] == ours.databases()
    assert list(theirs.listTables("mine")) == ["t"]
    assert theirs.getTable(java.identifier("mine.t")).rowType().getFieldCount() == 2
    with pytest.raises(AlreadyExists):
        ours.create_database("yours")

    theirs.renameTable(java.identifier("mine.t"), java.identifier("yours.moved"), False)
    assert (ours.tables("mine"), ours.tables("yours")) == ([], ["moved"])
    moved = ours.table("yours.moved")
    java.write(Path(moved.location), [{"a": 3, "b": "z"}])
    assert sorted(moved.scan().to_arrow()["a"].to_pylist()) == [1, 2, 3]
    ours.rename_table("yours.moved", "mine.back")
    assert list(theirs.listTables("mine")) == ["back"]
    theirs.dropTable(java.identifier("mine.back"), False)
    with pytest.raises(NotFound):
        ours.table("mine.back")

    # Java stores a table's options and keys as rows. Rows of a dropped table would prevent its next creation.
    with sqlite3.connect(tmp_path / "catalog.sqlite") as rows:
        query = "SELECT property_key, property_value FROM paimon_table_properties ORDER BY property_key"
        made = ours.create_table("mine.p", "a INT NOT NULL", primary_keys=["a"], options={"bucket": "2"})
        by_us = rows.execute(query).fetchall()
        theirs.dropTable(java.identifier("mine.p"), False)
        assert rows.execute(query).fetchall() == []
        schema = java.schema(made)
        theirs.createTable(java.identifier("mine.p"), schema, False)
        assert rows.execute(query).fetchall() == by_us == [("bucket", "2"), ("bucket-key", "a"), ("primary-key", "a")]
        ours.rename_table("mine.p", "mine.q")
        ours.drop_table("mine.q")
        assert rows.execute(query).fetchall() == []
    theirs.createTable(java.identifier("mine.p"), schema, False)
    theirs.dropTable(java.identifier("mine.p"), False)
    theirs.dropDatabase("yours", False, False)
    assert ours.databases() == ["mine"]
    theirs.close()
