"""A catalog that is attached to DuckDB: its views push down, change together, and keep their snapshots."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import pytest

import paimon
from paimon.adapters.queries.duckdb_views import AttachedCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path)
    for database in ("shop", "main"):
        catalog.create_database(database)
    columns, keys = "id BIGINT NOT NULL, day INT NOT NULL, amount INT", ["id", "day"]
    orders = catalog.create_table("shop.orders", columns, primary_keys=keys, partition_keys=["day"])
    orders.write([{"id": i, "day": i % 3, "amount": i} for i in range(30)])
    catalog.create_table("main.names", "id BIGINT, name STRING").write([{"id": 7, "name": "seven"}])
    return catalog


def attach(connection: duckdb.DuckDBPyConnection, catalog: paimon.Catalog, name: str = "lake") -> AttachedCatalog:
    return paimon.attach_duckdb(connection, name, catalog)


def test_views_join_and_push_down(catalog: paimon.Catalog) -> None:
    with duckdb.connect() as connection:
        attach(connection, catalog)
        gc.collect()
        join = "SELECT name, amount FROM lake.shop.orders JOIN lake.main.names USING (id) WHERE day = 1"
        assert connection.sql(join).fetchall() == [("seven", 7)]
        assert connection.cursor().sql(join).fetchall() == [("seven", 7)]
        assert connection.sql("SELECT current_database(), current_schema()").fetchall() == [("memory", "main")]
        plan = str(connection.sql("EXPLAIN SELECT amount FROM lake.shop.orders WHERE day = 1").fetchall())
        assert 'Filters: "day" = 1' in plan and "FILTER" not in plan


def test_a_table_that_cannot_be_opened_is_left_out_with_a_warning(catalog: paimon.Catalog, tmp_path: Path) -> None:
    (tmp_path / "main.db" / "names" / "snapshot" / "snapshot-1").write_text("{")
    with duckdb.connect() as connection:
        with pytest.warns(paimon.PaimonWarning, match=r"'main\.names' is not attached"):
            attached = attach(connection, catalog)
        assert connection.sql("SELECT count(*) FROM lake.shop.orders").fetchall() == [(30,)]
        with pytest.raises(duckdb.CatalogException):
            connection.sql("SELECT * FROM lake.main.names")
        catalog.drop_table("main.names")
        attached.refresh()


def test_views_keep_their_snapshots_until_refresh(catalog: paimon.Catalog) -> None:
    with duckdb.connect() as connection:
        attached = attach(connection, catalog)
        orders = catalog.table("shop.orders")
        assert isinstance(orders, paimon.Table)
        orders.write([{"id": 100, "day": 0, "amount": 1}])
        catalog.create_table("shop.more", "id BIGINT")
        catalog.drop_table("main.names")
        count = "SELECT count(*) FROM lake.shop.orders"
        assert connection.sql(count).fetchall() == [(30,)]
        running = connection.cursor().execute("SELECT id FROM lake.shop.orders")
        attached.refresh()
        assert connection.sql(count).fetchall() == [(31,)] and len(running.fetchall()) == 30
        assert connection.sql("SELECT count(*) FROM lake.shop.more").fetchall() == [(0,)]
        with pytest.raises(duckdb.CatalogException):
            connection.sql("SELECT * FROM lake.main.names")


def test_a_write_to_the_attached_catalog_refreshes(catalog: paimon.Catalog) -> None:
    with duckdb.connect() as connection:
        attached = attach(connection, catalog)
        orders = attached.catalog.table("shop.orders")
        orders.write([{"id": 100, "day": 0, "amount": 1}])
        assert connection.sql("SELECT count(*) FROM lake.shop.orders").fetchall() == [(31,)]
        orders.write(connection.sql("SELECT id + 1 AS id, day, amount FROM lake.shop.orders WHERE id = 100"))
        assert connection.sql("SELECT count(*) FROM lake.shop.orders").fetchall() == [(32,)]
        attached.catalog.create_table("shop.more", "id BIGINT").write([{"id": 1}])
        assert connection.sql("SELECT count(*) FROM lake.shop.more").fetchall() == [(1,)]


def test_a_name_is_attached_once_until_it_is_detached(catalog: paimon.Catalog, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "own.db") as connection:
        attached = attach(connection, catalog)
        with pytest.raises(paimon.AlreadyExists, match=r"lake.*detach"):
            attach(connection, catalog)
        attach(connection, catalog, 'other "name"')
        assert connection.sql('SELECT count(*) FROM "other ""name""".shop.orders').fetchall() == [(30,)]
        attached.detach()
        attached.detach()
        with pytest.raises(paimon.InvalidRequest, match="is detached"):
            attached.refresh()
        attached.catalog.table("shop.orders").write([{"id": 1, "day": 1, "amount": 1}])
        attach(connection, catalog)
        assert connection.sql("SELECT count(*) FROM lake.shop.orders").fetchall() == [(30,)]


def test_two_catalogs_with_the_same_names_stay_apart(catalog: paimon.Catalog, tmp_path: Path) -> None:
    other = paimon.connect(tmp_path / "other")
    other.create_database("shop")
    other.create_table("shop.orders", "id BIGINT").write([{"id": 7}, {"id": 99}])
    with duckdb.connect() as connection:
        attach(connection, catalog)
        with pytest.raises(paimon.AlreadyExists, match=r"lake.*detach"):
            attach(connection, other)
        attach(connection, other, "second")
        join = "SELECT a.day FROM lake.shop.orders a RIGHT JOIN second.shop.orders b USING (id) ORDER BY id"
        assert connection.sql(join).fetchall() == [(1,), (None,)]
        with pytest.raises(duckdb.Error, match=r"orders"):
            connection.sql("SELECT * FROM shop.orders")


@pytest.mark.filterwarnings("error")
def test_writes_go_on_after_the_connection_is_closed(catalog: paimon.Catalog) -> None:
    with duckdb.connect() as connection:
        attached = attach(connection, catalog)
    attached.catalog.table("shop.orders").write([{"id": 100, "day": 0, "amount": 1}])
    attached.detach()


@pytest.mark.parametrize("database", ["information_schema", "pg_catalog"])
def test_databases_with_reserved_names_are_refused(catalog: paimon.Catalog, database: str) -> None:
    catalog.create_database(database)
    catalog.create_table(f"{database}.t", "id BIGINT")
    with duckdb.connect() as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(f"CREATE VIEW {database}.t AS SELECT 1")
        with pytest.raises(paimon.InvalidRequest, match="reserves"):
            attach(connection, catalog)


def test_names_that_differ_in_case_are_refused(catalog: paimon.Catalog) -> None:
    catalog.create_table("shop.Orders", "id BIGINT")
    with duckdb.connect() as connection:
        with pytest.raises(paimon.InvalidRequest, match="apart"):
            attach(connection, catalog)
        assert "lake" not in str(connection.sql("SHOW DATABASES").fetchall())
