"""Reads of a whole table in one call, and a catalog as a mapping of tables."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paimon


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    opened = paimon.connect(tmp_path / "lake")
    opened.create_database("shop")
    return opened


@pytest.fixture
def orders(catalog: paimon.Catalog) -> paimon.Table:
    table = catalog.create_table("shop.orders", "id BIGINT, day STRING", partition_keys=["day"])
    table.write([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    table.write([{"id": 3, "day": "tue"}])
    return table


def test_a_whole_table_is_read_in_one_call(orders: paimon.Table) -> None:
    assert orders.columns == ["id", "day"]
    assert orders.count() == 3 and orders.count("day = 'tue'") == 2 and orders.count(paimon.col("id") > 2) == 1
    assert orders.head(2).num_rows == 2 and orders.head().num_rows == 3
    rows = orders.to_arrow()
    assert rows.schema == orders.schema and sorted(rows["id"].to_pylist()) == [1, 2, 3]
    assert isinstance(orders.to_pandas(), pd.DataFrame) and isinstance(orders.to_polars(), pl.DataFrame)
    with pytest.raises(paimon.InvalidRequest, match="head"):
        orders.head(-1)


def test_history_and_partitions_are_the_system_tables(orders: paimon.Table, catalog: paimon.Catalog) -> None:
    assert orders.history()["snapshot_id"].to_pylist() == [2, 1]
    assert orders.history().schema == orders.system_table("snapshots").arrow_schema
    assert sorted(orders.partitions()["partition"].to_pylist()) == ["day=mon", "day=tue"]
    empty = catalog.create_table("shop.empty", "id BIGINT")
    assert empty.history().num_rows == 0 and empty.count() == 0 and empty.head().num_rows == 0


@pytest.mark.parametrize("name", ["snapshots", "audit_log"])
def test_a_system_table_has_the_same_reads(orders: paimon.Table, name: str) -> None:
    """Whether it is made from metadata or shows rows of the table."""
    read = orders.system_table(name)
    rows = read.to_arrow()
    assert rows.num_rows > 1 and rows.equals(read.scan().to_arrow()) and read.columns == rows.schema.names
    assert read.count() == read.head().num_rows == rows.num_rows and read.head(1).num_rows == 1
    condition = "id > 2" if name == "audit_log" else "snapshot_id > 1"
    assert read.count(condition) == read.scan(where=condition).count() == 1
    assert read.to_pandas().columns.to_list() == read.to_polars().columns == read.columns
    with pytest.raises(paimon.InvalidRequest, match="head"):
        read.head(-1)


def test_len_and_iteration_say_what_to_write(orders: paimon.Table) -> None:
    with pytest.raises(TypeError, match=r"table\.count\(\)"):
        len(orders)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"table\.scan\(\)"):
        list(orders)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"table\.scan\(columns="):
        orders["id"]  # type: ignore[index]
    assert bool(orders) and not isinstance(orders, Iterable)


def test_copies_and_pickles_are_the_same_table(orders: paimon.Table) -> None:
    for again in (copy.copy(orders), pickle.loads(pickle.dumps(orders))):
        assert again.name == orders.name and again.count() == 3


@pytest.mark.parametrize("as_source", [lambda table: table, lambda table: [table], lambda table: table.scan()])
def test_a_table_and_its_scan_are_inputs(orders: paimon.Table, as_source: Any) -> None:
    assert orders.write(as_source(orders)).rows == 3
    assert orders.count() == 6


def test_a_catalog_is_a_mapping_of_tables(catalog: paimon.Catalog, orders: paimon.Table) -> None:
    catalog.create_database("app")
    catalog.create_table("app.b", "id INT")
    catalog.create_table("app.a", "id INT")
    assert list(catalog) == ["app.a", "app.b", "shop.orders"]
    assert all(name in catalog for name in catalog) and [catalog[name].name for name in catalog] == list(catalog)
    others: list[object] = ["shop", "shop.none", "none.orders", "", "a.b.c", 3, None]
    assert not any(name in catalog for name in others)
    with pytest.raises(paimon.NotFound, match=r"Did you mean 'orders'\?"):
        catalog["shop.oders"]
    assert bool(paimon.connect("memory://empty")) and pa.types.is_integer(catalog["app.a"].schema.field("id").type)
