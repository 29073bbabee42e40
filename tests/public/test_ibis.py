"""ibis over the views that `paimon.attach_duckdb` makes, as docs/how-to/use-query-engines.md shows it."""

from __future__ import annotations

import duckdb
import pytest

import paimon


@pytest.mark.nightly
def test_ibis_reads_an_attached_catalog_and_its_expressions_are_written() -> None:
    ibis = pytest.importorskip("ibis", reason="ibis-framework[duckdb] is not installed")
    catalog = paimon.connect("memory://ibis")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", "id BIGINT, amount DECIMAL(10, 2)")
    orders.write([{"id": number, "amount": f"{number}.50"} for number in range(10)])
    connection = duckdb.connect()
    paimon.attach_duckdb(connection, "lake", catalog)
    table = ibis.duckdb.from_connection(connection).table("orders", database=("lake", "shop"))
    large = table.filter(table.amount > 6)
    assert large.count().execute() == 4
    copy = catalog.create_table("shop.copy", "id BIGINT")
    assert copy.write(large.select("id").to_pyarrow()).rows == 4
