"""The benchmarks of Spark run at a small size, in the session of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import paimon
import paimon.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_a_stream_is_measured_batch_by_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import spark_streams

    spark_streams.write_batches(tmp_path / "rows", 3, 20)
    found = spark_streams.run_stream(spark, "ours", tmp_path, tmp_path / "rows")
    assert [len(found["seconds"]), len(found["cpu"])] == [3, 3]
    assert min(found["seconds"]) > 0
    keys = {i for number in range(3) for i in spark_streams.draw_keys(number, 20)}
    assert found["rows"] == len(keys) < 60
    figures = {"seconds": [9.0, *range(1, 21)], "cpu": [9.0, *range(21, 1, -1)], "rows": 5}
    assert spark_streams.format_sink("x", figures) == (
        "| x | 21 | 5 | 9.00 | 1.50 | 10.50 | 19.50 | 13.00 | 9.00 | 20.50 | 11.50 | 2.50 | 0.12 |"
    )


def test_the_plan_of_many_files_is_measured(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import make_files
    import spark_plan

    monkeypatch.setattr(make_files, "PARTITIONS", 3)
    make_files.main(str(tmp_path), 4)
    spark.conf.set("spark.paimon.parquet-reader", "python")
    try:
        found = spark_plan.plan_table(spark, str(tmp_path / "b.db" / "t"), {"source.split.target-size": "8 mb"})
    finally:
        spark.conf.unset("spark.paimon.parquet-reader")
    assert found["tasks"] == 6  # each of 12 files counts as 4 MB
    assert 0 < found["largest"] <= found["bytes"] <= 6 * found["largest"]
    assert min(found[name] for name in ("driver", "jvm", "plan")) > 0


@pytest.mark.nightly
@pytest.mark.slow("writes and reads many tables")
@pytest.mark.parametrize("scenario", ["merge", "append", "key", "bucket", "partitions"])
def test_the_sums_of_large_tables_are_checked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import spark_scale

    monkeypatch.setattr(spark_scale, "PARTITIONS", 10)
    catalog = paimon.connect(tmp_path / "lake")
    run = spark_scale.Run(scenario, 4_000, spark, catalog)
    try:
        spark_scale.SCENARIOS[scenario](run)
        table = catalog.table("b." + catalog.list_tables("b")[0])
        with pytest.raises(SystemExit, match="has"):
            run.check(table, 1, 0, 0)
    finally:
        run.watch.close()
        spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.nightly
@pytest.mark.slow("runs statements of Spark")
def test_the_idioms_of_spark_run_through_the_catalog(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("BENCHMARK_SCALE", "0.001")
    import spark_connectors
    import spark_worker

    spark_connectors.write_rows(tmp_path)
    lake = paimon.connect(tmp_path / "lake")
    lake.create_database("b")
    paimon.spark.attach(spark, lake, "lake")
    columns = spark_worker.COLUMNS.format(moment="TIMESTAMP_LTZ(6)")
    table = lake.create_table(spark_worker.TABLE, columns, primary_keys=["id"], options={"bucket": 4})
    try:
        spark_worker.run_idiom(spark, "lake", "writeTo", 0, tmp_path)
        results = {name: spark_worker.run_idiom(spark, "lake", name, 1, tmp_path) for name in spark_worker.IDIOMS}
    finally:
        paimon.spark.detach(spark, "lake")
    assert len(results["sql"]) == 5
    assert lake.table("b.saved_1").scan().count() == 300
    assert table.scan(where="id % 20 = 1").count() > 0  # MERGE inserted again what DELETE had removed
