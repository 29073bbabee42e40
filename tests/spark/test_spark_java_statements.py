"""The statements of Java's Spark documents, written anew, in an attached catalog: each works, or has its own error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import paimon

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
STATEMENTS = Path(__file__).resolve().parents[1] / "data" / "java_spark_statements.sql"


def read_statements() -> Iterator[tuple[str, str | None]]:
    """Return each statement, and how its error begins."""
    refused: str | None = None
    lines: list[str] = []
    for line in STATEMENTS.read_text("utf-8").splitlines():
        if line.startswith("-- refused: "):
            refused = line.removeprefix("-- refused: ")
        elif not line.startswith("--"):
            lines.append(line)
        if line.endswith(";"):
            yield "\n".join(lines).strip().removesuffix(";"), refused
            refused, lines = None, []


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
