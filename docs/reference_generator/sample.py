"""A small table, from which the generator reads the classes behind its methods and the columns of its system tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import paimon


@contextmanager
def open_sample() -> Iterator[paimon.Table]:
    """Yield a partitioned primary-key table with one row; it is gone afterwards."""
    with TemporaryDirectory() as folder:
        catalog = paimon.connect(folder)
        catalog.create_database("shop")
        orders = catalog.create_table(
            "shop.orders",
            "id BIGINT NOT NULL, day STRING NOT NULL, amount DECIMAL(10, 2)",
            primary_keys=["id", "day"],
            partition_keys=["day"],
            options={"bucket": 1},
        )
        orders.write([{"id": 1, "day": "2026-01-01", "amount": "9.99"}])
        yield orders
