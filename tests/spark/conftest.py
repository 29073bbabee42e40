"""Fixtures of the Spark tests; the session is that of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon
import paimon.spark


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    """A fresh warehouse with a database."""
    made = paimon.connect(tmp_path / "lake")
    made.create_database("db")
    return made


@pytest.fixture
def lake(spark: SparkSession, catalog: paimon.Catalog) -> Iterator[paimon.Catalog]:
    """The warehouse of the test, attached as ``lake``."""
    yield paimon.spark.attach(spark, catalog, "lake")
    paimon.spark.detach(spark, "lake")
