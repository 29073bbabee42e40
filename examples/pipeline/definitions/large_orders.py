"""A declarative pipeline: the large orders of one table go to another table, each of them once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import paimon.spark

# Spark loads this file in the directory of the specification, so the warehouse is the folder `lake` there.
spark = paimon.spark.register(SparkSession.active(), "lake")

dp.create_sink("large_orders", "paimon", {"path": "shop.large_orders"})


@dp.temporary_view
def orders() -> DataFrame:
    """Read the rows of the table, and then its changes."""
    return spark.readStream.format("paimon").load("shop.orders")


@dp.append_flow(target="large_orders")
def add_large_orders() -> DataFrame:
    """Write the large orders: each micro-batch is one commit."""
    return spark.readStream.table("orders").where("amount > 100")
