"""Run the flights pipeline step by step, and check the result of each step.

Invariant: rows are written through Spark and read twice, through Spark and embedded. Both reads equal the rows that
`truth` computes, or the run fails.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import warnings
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

import paimon
import paimon.spark
from flights import events, plot, source, truth
from flights.delays import print_delays
from flights.states import collect_states, count_runs, read_delays
from flights.steps import Steps, divert_errors
from flights.streaming import ChangeStream, check_batches
from paimon.domain.errors import CorruptTable
from paimon.spark.types import to_spark_schema
from paimon.table import Table

FLIGHTS_DDL = """
    month INT NOT NULL, time_hour TIMESTAMP(0) NOT NULL, carrier STRING NOT NULL, flight INT NOT NULL,
    origin STRING, dest STRING, tailnum STRING, scheduled TIMESTAMP(0), status STRING, dep_delay INT, arr_delay INT,
    version BIGINT
"""


def run(warehouse: Path, output: Path, commits: int, console: Console) -> None:
    """Run all steps of the pipeline.

    Parameters
    ----------
    warehouse : Path
        Directory of the tables; its database `flights` is replaced.
    output : Path
        Directory of the plot and of Spark's log.
    commits : int
        Number of commits in which the change stream is written, at least 2.
    console : rich.console.Console
        The terminal for the progress and the result.

    Raises
    ------
    CorruptTable
        A table does not contain the expected rows.
    """
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    steps = Steps(console)
    shutil.rmtree(warehouse / "flights.db", ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    log = output / "spark.log"
    spark = _start_spark(steps, log)
    with steps.step("read the source") as step:
        flights = source.read_flights()
        stream = events.split_into_commits(events.make_change_stream(flights), commits)
        count = sum(part.num_rows for part in stream)
        step.report(f"{flights.num_rows:,} flights -> {count:,} events, in the order in which they arrived")
    catalog = paimon.connect(warehouse)
    catalog.create_database("flights", exist_ok=True)
    table = _create_flights_table(catalog)
    _stream_changes(steps, spark, table, stream, output / "stream")
    _append_plain_tables(steps, spark, catalog)
    _check_results(steps, spark, table, flights, stream)
    picture = output / "flights.png"
    with steps.step("draw") as step:
        airlines = dict(
            zip(*(source.read_plain_table("airlines")[c].to_pylist() for c in ("carrier", "name")), strict=True)
        )
        delays = read_delays(table)
        plot.draw(collect_states(table, events.count_late(stream)), delays, airlines, picture)
        step.report(f"{_quote_path(picture)}")
    print_delays(console, delays, airlines)
    console.print(
        f"All checks passed in {steps.seconds:.0f} s. "
        f"Plot: {_quote_path(picture)}   Spark's messages: {_quote_path(log)}",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
    for line in format_next_commands(table.location):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    spark.stop()


def _start_spark(steps: Steps, log: Path) -> SparkSession:
    with steps.step("start Spark") as step, divert_errors(log):
        spark = paimon.spark.session(app_name="paimon flights")
        spark.sparkContext.setLogLevel("ERROR")
        step.report(f"Spark {spark.version}, {spark.sparkContext.defaultParallelism} threads")
    return spark


def _stream_changes(steps: Steps, spark: SparkSession, table: Table, stream: list[pa.Table], folder: Path) -> None:
    """Write the change stream through Structured Streaming, kill the query in the middle, and resume it."""
    changes = ChangeStream.create(folder)
    changes.send(stream)
    schema = stream[0].schema
    with steps.step("stream changes, kill the query") as step:
        done = changes.kill(changes.start(spark, table, schema), table, len(stream) // 2)
        step.report(f"{done} of {len(stream)} batches are committed, and the record of the last one is deleted")
    with steps.step("resume the stream") as step:
        changes.start(spark, table, schema).awaitTermination()
        check_batches(table, len(stream))
        plan = table.scan().plan()
        step.report(
            f"{sum(part.num_rows for part in stream):,} events in {len(stream)} batches, each committed once; "
            f"{plan.file_count} files in {count_runs(plan)} sorted runs"
        )


def _create_flights_table(catalog: paimon.Catalog) -> Table:
    return catalog.create_table(
        "flights.flights",
        FLIGHTS_DDL,
        primary_keys=events.KEYS,
        partition_keys=["month"],
        options={"bucket": 1, "sequence.field": "version"},
        comment="flights from New York 2013, newest state of each",
    )


def _append_plain_tables(steps: Steps, spark: SparkSession, catalog: paimon.Catalog) -> None:
    with steps.step("append weather and planes") as step:
        counts = []
        for name in ("weather", "planes"):
            rows = source.read_plain_table(name)
            table = catalog.create_table(f"flights.{name}", rows.schema)
            paimon.spark.write(spark.createDataFrame(rows, to_spark_schema(rows.schema)), table)
            found = table.scan().count()
            if found != rows.num_rows:
                raise CorruptTable(
                    f"flights.{name}", f"The table has {found} rows, but the source has {rows.num_rows}."
                )
            counts.append(f"{found:,} rows of {name}")
        step.report(f"{' and '.join(counts)}, as many as the source has")


def _check_results(steps: Steps, spark: SparkSession, table: Table, flights: pa.Table, stream: list[pa.Table]) -> None:
    wanted = truth.compute_final_state(flights)
    with steps.step("check: read embedded") as step:
        rows = _check_rows("the embedded read", table.scan().to_arrow(), wanted)
        step.report(f"{rows:,} rows merged from {table.scan().plan().row_count:,} records, equal to the source")
    with steps.step("compact through Spark") as step:
        done = paimon.spark.compact(table, full=True, spark=spark)
        step.report(f"{done.files_before} files -> {done.files_after}, {done.rows:,} records left")
    with steps.step("check: read through Spark") as step:
        rows = _check_rows("the read through Spark", paimon.spark.read(spark, table).toArrow(), wanted)
        step.report(f"{rows:,} rows, equal to the source")
    with steps.step("check: time travel") as step:
        middle = len(stream) // 2
        snapshot = table.snapshots()[middle - 1].id
        before = truth.replay_events(pa.concat_tables(stream[:middle]))
        rows = _check_rows(f"snapshot {snapshot}", table.scan(snapshot=snapshot).to_arrow(), before)
        step.report(f"{rows:,} rows at snapshot {snapshot}, equal to a replay of the first {middle} commits")


def _check_rows(what: str, got: pa.Table, wanted: pa.Table) -> int:
    """Return the number of rows, or raise CorruptTable if they differ from the expected ones."""
    if not truth.to_comparable(got).equals(wanted):
        raise CorruptTable(
            what, f"The {got.num_rows} rows that were read differ from the {wanted.num_rows} rows of the source."
        )
    return len(wanted)


def format_next_commands(location: str) -> list[str]:
    """Return lines with three commands that show the table; paths are relative to the working directory."""
    installed, on_path = Path(sys.executable).with_name("paimon"), shutil.which("paimon")
    if not installed.exists():
        program = f"{_quote_path(Path(sys.executable))} -m paimon"
    else:
        program = "paimon" if on_path and Path(on_path).samefile(installed) else _quote_path(installed)
    place = _quote_path(Path(location))
    return [
        "Next:",
        f"  {program} show {place}",
        f"  {program} head {place} --where \"carrier = 'HA' AND arr_delay > 60\"",
        f"  {program} snapshots {place}",
    ]


def _quote_path(path: Path) -> str:
    """Quote a path for a shell; it is relative if it is below the working directory."""
    return shlex.quote(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path))
