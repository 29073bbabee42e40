"""The pipeline itself, step by step, each with what it proves.

Law: rows go in through Spark and come back twice, through Spark and embedded; both must equal the truth, or the run
fails.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

import paimon
import paimon.spark
from paimon.cli.flights import events, report, source, truth
from paimon.domain.errors import CorruptTable
from paimon.spark.types import spark_schema
from paimon.table import Table

FLIGHTS_DDL = """
    month INT NOT NULL, time_hour TIMESTAMP(0) NOT NULL, carrier STRING NOT NULL, flight INT NOT NULL,
    origin STRING, dest STRING, tailnum STRING, scheduled TIMESTAMP(0), status STRING, dep_delay INT, arr_delay INT,
    version BIGINT
"""


class Steps:
    """Says what is going on, and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step: a spinner while it runs, a line when it is done."""
        begin = time.monotonic()
        with self._console.status(what):
            yield
        total = time.monotonic() - self._start
        self._console.print(
            f"[green]✓[/] {what} [dim]({time.monotonic() - begin:.1f} s, {total:.0f} s in all)[/]", soft_wrap=True
        )


def run(warehouse: Path, output: Path, commits: int, console: Console) -> None:
    """Run everything; CorruptTable where an answer differs from the truth."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    steps = Steps(console)
    shutil.rmtree(warehouse / "flights.db", ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    with steps.step("start Spark"):
        spark = paimon.spark.session(app_name="paimon flights")
        spark.sparkContext.setLogLevel("ERROR")
    with steps.step("read the source and derive its change stream"):
        flights = source.flights()
        stream = events.commits(events.change_stream(flights), commits)
    catalog = paimon.connect(warehouse)
    catalog.create_database("flights", exist_ok=True)
    table = _flights_table(catalog)
    for number, part in enumerate(stream, 1):
        with steps.step(f"commit {number} of {commits}: upsert {part.num_rows:,} events through Spark"):
            paimon.spark.write(
                spark.createDataFrame(part, spark_schema(part.schema)),
                table,
                kind_column="op",
                commit_user="flights",
                commit_identifier=number,
            )
    with steps.step("append weather and planes"):
        _append_tables(spark, catalog)
    _check(steps, spark, catalog, flights, stream)
    with steps.step("draw"):
        airlines = dict(zip(*(source.plain("airlines")[c].to_pylist() for c in ("carrier", "name")), strict=True))
        result = table.scan(columns=["carrier", "month", "flight", "arr_delay"]).to_arrow()
        picture = output / "delays.png"
        report.plot(result, airlines, picture)
    report.show(console, result, airlines)
    console.print(f"plot: {picture}\ntables: {warehouse}")
    spark.stop()


def _flights_table(catalog: paimon.Catalog) -> Table:
    return catalog.create_table(
        "flights.flights",
        FLIGHTS_DDL,
        primary_keys=events.KEYS,
        partition_keys=["month"],
        options={"bucket": 1, "sequence.field": "version"},
        comment="flights from New York 2013, newest state of each",
    )


def _append_tables(spark: SparkSession, catalog: paimon.Catalog) -> None:
    for name in ("weather", "planes"):
        rows = source.plain(name)
        table = catalog.create_table(f"flights.{name}", rows.schema)
        paimon.spark.write(spark.createDataFrame(rows, spark_schema(rows.schema)), table)


def _check(
    steps: Steps, spark: SparkSession, catalog: paimon.Catalog, flights: pa.Table, stream: list[pa.Table]
) -> None:
    table = catalog.table("flights.flights")
    with steps.step("read back embedded, and compare with the source"):
        wanted = truth.final_state(flights)
        _same("the embedded read", truth.comparable(table.scan().to_arrow()), wanted)
    with steps.step("read back through Spark, and compare with the source"):
        _same("the read through Spark", truth.comparable(paimon.spark.read(spark, table).toArrow()), wanted)
    with steps.step("travel back to the middle of the stream, and compare with a replay"):
        middle = len(stream) // 2
        snapshot = table.snapshots()[middle - 1].id
        before = truth.comparable(table.scan(snapshot=snapshot).to_arrow())
        _same(f"snapshot {snapshot}", before, truth.state_after(pa.concat_tables(stream[:middle])))
    with steps.step("count the rows of the append tables"):
        for name in ("weather", "planes"):
            rows = catalog.table(f"flights.{name}").scan().count()
            if rows != source.plain(name).num_rows:
                raise CorruptTable(f"flights.{name}", f"holds {rows} rows, not {source.plain(name).num_rows}")


def _same(what: str, got: pa.Table, wanted: pa.Table) -> None:
    if not got.equals(wanted):
        raise CorruptTable(what, f"{got.num_rows} rows are not the {wanted.num_rows} of the source")
