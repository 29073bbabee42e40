"""One local Spark session for all Spark tests. Tasks may be attempted four times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import paimon
import paimon.spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the source registered."""
    config = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    session = paimon.spark.session("local[2,4]", "paimon tests", config)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    """A fresh warehouse with a database."""
    made = paimon.connect(tmp_path / "lake")
    made.create_database("db")
    return made
