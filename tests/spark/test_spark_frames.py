"""A data frame has the same rows in each of its uses, whatever other uses filter."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import paimon
import paimon.spark

pytestmark = pytest.mark.spark


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_uses_of_one_frame_do_not_share_filters(spark: SparkSession, catalog: paimon.Catalog, pushdown: str) -> None:
    table = catalog.create_table("db.t", "id BIGINT NOT NULL", primary_keys=["id"], options={"bucket": 1})
    table.write([{"id": i} for i in range(6)])
    table.write([{"id": 0}])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        for frame in (paimon.spark.read(spark, table), spark.read.format("paimon").load(table.location)):
            two, three = frame.where("id = 2"), frame.where("id = 3")
            assert ids_of(two.union(three)) == [2, 3]
            assert ids_of(frame.where("id > 4").union(frame)) == [0, 1, 2, 3, 4, 5, 5]
            assert frame.count() == 6
            assert (ids_of(two), ids_of(three)) == ([2], [3])
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
