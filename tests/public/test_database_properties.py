"""Properties of databases: a JDBC catalog stores them, and a filesystem catalog refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon


def connect(tmp_path: Path) -> paimon.Catalog:
    return paimon.connect(tmp_path / "lake", metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.db")


def test_properties_are_set_changed_and_removed(tmp_path: Path) -> None:
    catalog = connect(tmp_path)
    catalog.create_database("shop", properties={"owner": "ann", "stage": "test"})
    catalog.create_database("shop", properties={"owner": "not set"}, exist_ok=True)
    catalog.alter_database("shop", {"stage": "live"}, remove=["owner"])
    found = connect(tmp_path).database_properties("shop")
    assert found == {"location": f"{tmp_path}/lake/shop.db", "stage": "live"}
    with pytest.raises(paimon.NotFound, match="'other'"):
        catalog.alter_database("other", {"a": "b"})
    with pytest.raises(paimon.NotFound, match="'other'"):
        catalog.database_properties("other")


@pytest.mark.parametrize("properties", [{"location": "/x"}, {"exists": "false"}, {"a": 1}, {"a": "x" * 1_001}])
def test_impossible_properties_are_refused(tmp_path: Path, properties: dict[str, str]) -> None:
    catalog = connect(tmp_path)
    with pytest.raises(paimon.InvalidRequest, match=r"^Property "):
        catalog.create_database("shop", properties=properties)
    assert catalog.databases() == []
    catalog.create_database("shop")
    with pytest.raises(paimon.InvalidRequest, match=r"^Property "):
        catalog.alter_database("shop", properties)
    if "a" not in properties:
        with pytest.raises(paimon.InvalidRequest, match=r"^Property "):
            catalog.alter_database("shop", remove=list(properties))


def test_a_filesystem_catalog_refuses_properties(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    with pytest.raises(paimon.Unsupported, match="properties of databases"):
        catalog.create_database("shop", properties={"owner": "ann"})
    catalog.create_database("shop", properties={})
    catalog.alter_database("shop", {})
    with pytest.raises(paimon.Unsupported, match="properties of databases"):
        catalog.alter_database("shop", remove=["owner"])
    assert catalog.database_properties("shop") == {"location": f"{tmp_path}/shop.db"}
