"""Send the change stream through Structured Streaming: a file for each commit arrives in a directory.

Invariant: the query is killed in the middle, and its record of the last batch is lost. The resumed query runs this
batch again, and the table has each batch once.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import paimon.spark
from paimon.domain.errors import CorruptTable
from paimon.spark.types import to_spark_schema
from paimon.table import Table

_POLL_SECONDS = 0.05


@frozen
class ChangeStream:
    """The directory into which the changes arrive, and the checkpoint of the query that reads it."""

    inbox: Path
    checkpoint: Path

    @classmethod
    def create(cls, folder: Path) -> ChangeStream:
        """Create an empty stream in a directory, which is replaced."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "inbox").mkdir(parents=True)
        return cls(folder / "inbox", folder / "checkpoint")

    def send(self, parts: list[pa.Table]) -> None:
        """Write one file for each part, in their order."""
        for number, part in enumerate(parts):
            pq.write_table(part, self.inbox / f"{number:04}.parquet")

    def start(self, spark: SparkSession, table: Table, schema: pa.Schema) -> StreamingQuery:
        """Start the query, with one file in each batch, until all files are read."""
        reader = spark.readStream.schema(to_spark_schema(schema)).option("maxFilesPerTrigger", 1)
        changes = reader.parquet(str(self.inbox))
        return paimon.spark.write_stream(
            changes, table, str(self.checkpoint), trigger={"availableNow": True}, kind_column="op"
        )

    def kill(self, query: StreamingQuery, table: Table, commits: int) -> int:
        """Stop the query during the batch after some commits, and delete its record of the last batch.

        Parameters
        ----------
        query : StreamingQuery
            The running query.
        table : Table
            Its table.
        commits : int
            Kill it when the table has this number of commits.

        Returns
        -------
        int
            The number of commits that the table has.
        """
        while len(list_batches(table)) < commits and query.isActive:
            time.sleep(_POLL_SECONDS)
        query.stop()
        records = sorted((int(path.name), path) for path in (self.checkpoint / "commits").glob("[0-9]*"))
        for _, path in records[-1:]:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop takes it for a record that is there
        return len(list_batches(table))


def list_batches(table: Table) -> list[int]:
    """Return the batches that the snapshots of a table contain, in their order."""
    return [s.commit_identifier for s in table.snapshots() if s.commit_kind.value == "APPEND"]


def check_batches(table: Table, count: int) -> None:
    """Check that a table has each batch once.

    Raises
    ------
    CorruptTable
        A batch is missing or there twice.
    """
    found = list_batches(table)
    if found != list(range(count)):
        raise CorruptTable(table.name, f"The table has the batches {found}, and not 0 to {count - 1} once each.")
