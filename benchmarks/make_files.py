"""Create an append table of one-row files in 100 partitions: `make_files.py FOLDER [COMMITS]`.

By default it has 20,000 files in 200 commits. `make_entries` makes a table whose files exist in the manifests alone.
`make_empty_files` makes these files, of the recorded size.
"""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pyarrow as pa

import paimon
from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.row.binary_row import serialize
from paimon.domain.stats.simple_stats import SimpleStats
from paimon.operations.commit.commit import commit as commit_files
from paimon.operations.table_context import TableContext

COMMITS = 200
PARTITIONS = 100
ENTRY_PARTITIONS = 10_000
COLUMNS = pa.schema([("p", pa.int32()), ("v", pa.int64()), ("text", pa.string())])


def main(folder: str, commits: int = COMMITS) -> None:
    """Create the table in a folder, with one commit of 100 files after the other."""
    catalog = paimon.connect(Path(folder))
    catalog.create_database("b", exist_ok=True)
    table = catalog.create_table("b.t", COLUMNS, partition_keys=["p"], options={"write-only": "true"})
    for commit in range(commits):
        values = [commit * PARTITIONS + p for p in range(PARTITIONS)]
        table.write(
            pa.table({"p": pa.array(range(PARTITIONS), pa.int32()), "v": values, "text": [f"row {v}" for v in values]})
        )
        if sys.stderr.isatty():
            print(f"\r{commit + 1} of {commits} commits", end="\n" if commit + 1 == commits else "", file=sys.stderr)


def make_entries(folder: Path, commits: int) -> None:
    """Create the table with one entry a partition and commit; the data files do not exist."""
    catalog = paimon.connect(folder)
    catalog.create_database("b", exist_ok=True)
    table = catalog.create_table("b.t", COLUMNS, partition_keys=["p"], options={"write-only": "true"})
    context = table.context
    for number in range(commits):
        messages = tuple(
            _make_message(table.context, p, number * ENTRY_PARTITIONS + p) for p in range(ENTRY_PARTITIONS)
        )
        commit_files(context, CommitRequest(tuple(messages), "benchmark"))


def make_empty_files(folder: Path) -> None:
    """Create the files of a table of `make_entries`, without content, for checks that do not read them."""
    for split in paimon.open_table(folder / "b.db" / "t").scan().plan().splits:
        directory = Path(split.bucket_path.removeprefix("file:"))
        directory.mkdir(parents=True, exist_ok=True)
        for file in split.files:
            with (directory / file.file_name).open("wb") as target:
                target.truncate(file.file_size)


def _make_message(context: TableContext, partition: int, value: int) -> CommitMessage:
    schema = context.schema
    bounds = serialize((partition, value, f"row {value}"), [f.type for f in schema.fields])
    file = DataFileMeta(
        f"data-{uuid.uuid4()}-0.parquet", 1_800, 1, value_stats=SimpleStats(bounds, bounds, (0, 0, 0)),
        delete_row_count=0, file_source=FileSource.APPEND,
    )  # fmt: skip
    row = serialize((partition,), [f.type for f in schema.partition_fields])
    return CommitMessage(
        row, 0, -1, f"{context.table.location}/p={partition}/bucket-0", DataIncrement(new_files=(file,))
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
