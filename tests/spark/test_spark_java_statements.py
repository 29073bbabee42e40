"""The statements of Java's Spark documents, written anew, in an attached catalog: each works, or has its own error."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.java_spark_statements import read_statements

import paimon

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def test_statements_work_or_are_refused_as_listed(spark: SparkSession, lake: paimon.Catalog) -> None:
    wrong = []
    try:
        for text, refused in read_statements():
            try:
                spark.sql(text).collect()
                found = None
            except PySparkException as error:
                found = str(error).strip().split("\n")[0]
            if (refused is None) != (found is None) or not (found or "").startswith(refused or ""):
                wrong.append((text, refused, found))
    finally:
        spark.sql("USE spark_catalog.default")
    assert wrong == []
    assert lake.tables("shop") == ["first_visits", "keyed", "stock", "stock_old"]
