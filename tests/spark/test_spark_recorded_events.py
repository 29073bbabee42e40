"""Change data capture on Spark gives the tables of recorded events, in a batch and in a stream."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.recorded_events import RECORDINGS, Recording, show_rows

import paimon
import paimon.spark

pytestmark = pytest.mark.spark

BY_FORMAT = {name: list(group) for name, group in groupby(RECORDINGS, lambda recording: recording.format)}


def to_events(lines: DataFrame) -> DataFrame:
    """Return lines with a key and a value as messages, as Spark reads them from Kafka."""
    parts = [f"nullif(split(value, '\\t')[{n}], 'null')" for n in (0, 1)]
    return lines.selectExpr(f"{parts[0]} AS key", f"{parts[1]} AS value", "'recorded' AS topic")


def check_tables(catalog: paimon.Catalog, recordings: list[Recording], done: paimon.CdcResult) -> None:
    for recording in recordings:
        assert show_rows(catalog.table(f"db.{recording.name}")) == recording.show_states()[-1]
    assert done.events == sum(len(recording.states) for recording in recordings)
    assert done.ignored == sum(recording.ignored for recording in recordings)
    letters = catalog.table("db.letters").scan(columns=["reason"]).to_arrow()["reason"].to_pylist()
    assert sorted(letters) == sorted(reason for recording in recordings for _, reason in recording.rejected)
    assert done.rejected == len(letters)


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
def test_recorded_events_give_the_source_tables(spark: SparkSession, tmp_path: Path, is_stream: bool) -> None:
    """The stream has the events of all connectors of Debezium."""
    formats = ["debezium-json"] if is_stream else list(BY_FORMAT)
    for name in formats:
        recordings = BY_FORMAT[name]
        catalog = paimon.connect(tmp_path / name)
        catalog.create_database("db")
        letters = catalog.create_table("db.letters", paimon.DEAD_LETTER_SCHEMA)
        tables = {recording.source: recording.create_table(catalog) for recording in recordings}
        paths = [str(recording.path) for recording in recordings]
        if not is_stream:
            frame = to_events(spark.read.text(paths))
            done = paimon.spark.cdc(frame, tables, name, dead_letters=letters, merge_schema=True, tasks=1)
            assert isinstance(done, paimon.CdcResult)
            check_tables(catalog, recordings, done)
            continue
        results: dict[int, paimon.CdcResult] = {}
        frame = to_events(spark.readStream.text(str(recordings[0].path.parent / "debezium_*.events")))
        query = paimon.spark.cdc(
            frame, tables, name, checkpoint=str(tmp_path / "checkpoint"), dead_letters=letters, merge_schema=True,
            trigger={"availableNow": True}, on_batch=results.__setitem__,
        )  # fmt: skip
        query.awaitTermination()
        check_tables(catalog, recordings, results[0])
