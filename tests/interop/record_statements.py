"""Record what Java's connector for Spark does with the statements of `tests/sql/java/statements.sql`.

The connector on the package index of Maven is that of Paimon 0.9.0 for Spark 3.5. PySpark 3.5 needs an environment of
its own:

    python3.11 -m venv spark35
    spark35/bin/pip install "pyspark==3.5.7" "numpy<2"
    PYTHONPATH=tests spark35/bin/python tests/interop/record_statements.py

The script writes `tests/sql/java/expected.json`. With names of cases as arguments it records only these again.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.statement_cases import DATABASE, Run, read_cases, run_case

FOLDER = Path(__file__).parents[1] / "sql" / "java"
EXPECTED = FOLDER / "expected.json"
CONNECTOR = "org.apache.paimon:paimon-spark-3.5:0.9.0"
CATALOG = "org.apache.paimon.spark.SparkCatalog"
EXTENSIONS = "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions"


def open_spark(warehouse: Path) -> SparkSession:
    """Open a session whose catalog is Java's Paimon."""
    builder = SparkSession.builder.master("local[2]").appName("record statements")
    settings = {
        "spark.jars.packages": CONNECTOR,
        "spark.sql.catalog.paimon": CATALOG,
        "spark.sql.catalog.paimon.warehouse": warehouse.as_uri(),
        "spark.sql.defaultCatalog": "paimon",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def make_run(spark: SparkSession) -> Run:
    """Return a function that runs a statement in Spark."""

    def run(statement: str) -> tuple[list[str], list[Mapping[str, Any]]]:
        frame = spark.sql(statement)
        return frame.columns, [dict(zip(frame.columns, row, strict=True)) for row in frame.collect()]

    return run


def main() -> None:
    """Run all cases, or those that are named."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["TZ"] = "UTC"
    cases = read_cases(FOLDER / "statements.sql")
    chosen = {name: cases[name] for name in sys.argv[1:] or cases}
    stored = json.loads(EXPECTED.read_text("utf8")) if sys.argv[1:] else {}
    expected: dict[str, Any] = {name: stored[name] for name in cases if name in stored}
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder)
        spark = open_spark(warehouse)
        run = make_run(spark)
        for name, statements in chosen.items():
            run(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
            run(f"CREATE DATABASE {DATABASE}")
            run(f"USE {DATABASE}")
            expected[name] = list(run_case(statements, run, warehouse))
            print(name, len(expected[name]), flush=True)
        spark.stop()
    ordered = {name: expected[name] for name in cases if name in expected}
    EXPECTED.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf8")


if __name__ == "__main__":
    main()
