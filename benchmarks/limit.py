"""The plain-file limit: what pyarrow alone, as it comes, needs for the same physical work.

The same columns, buckets and codec; encodings are pyarrow's own choice, nothing is flushed to the disk, and no metadata
is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import data
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_WRITE = {"compression": "zstd", "compression_level": 1, "store_schema": False}


def write_keyed(folder: Path, runs: list[pa.Table]) -> None:
    """Sort each bucket of each run by its key and write it with the columns that a primary-key file has."""
    for number, rows in enumerate(runs):
        for bucket, part in enumerate(_sorted_buckets(rows)):
            pq.write_table(part, folder / f"{number}-{bucket}.parquet", **_WRITE)


def write_changelog(folder: Path, runs: list[pa.Table]) -> None:
    """Write each bucket of each run as it is flushed, as it is compacted, and with the rows before and after."""
    for number, rows in enumerate(runs):
        for bucket, part in enumerate(_sorted_buckets(rows)):
            pq.write_table(part, folder / f"{number}-{bucket}-flushed.parquet", **_WRITE)
            pq.write_table(part, folder / f"{number}-{bucket}.parquet", **_WRITE)
            pairs = part.take(np.repeat(np.arange(part.num_rows), 2))
            pq.write_table(pairs, folder / f"{number}-{bucket}-changes.parquet", **_WRITE)


def _sorted_buckets(rows: pa.Table) -> Iterator[pa.Table]:
    buckets = _buckets(rows["id"].combine_chunks())
    for bucket in range(data.BUCKETS):
        part = rows.filter(pa.array(buckets == bucket))
        part = part.take(pc.sort_indices(part["id"]))
        size = part.num_rows
        system = pa.table(
            {
                "_KEY_id": part["id"],
                "_SEQUENCE_NUMBER": pa.array(np.arange(size)),
                "_VALUE_KIND": pa.array(np.zeros(size, "int8")),
            }
        )
        for name in part.column_names:
            system = system.append_column(name, part[name])
        yield system


def _buckets(keys: pa.Array) -> np.ndarray:
    """The cheapest even spread there is: by the last two digits."""
    if pa.types.is_integer(keys.type):
        return keys.to_numpy() % data.BUCKETS
    text = np.frombuffer(keys.buffers()[2], np.uint8).reshape(len(keys), -1)  # all keys are equally long
    return (10 * text[:, -2] + text[:, -1]) % data.BUCKETS


def write_plain(folder: Path, runs: list[pa.Table]) -> None:
    """Write each run as one file."""
    for number, rows in enumerate(runs):
        pq.write_table(rows, folder / f"{number}.parquet", **_WRITE)


def rewrite(folder: Path) -> None:
    """A full compaction by hand: read all columns of each bucket's files, sort the rows by key and sequence number,
    and write the last of each key."""
    for number, bucket in enumerate(sorted(folder.glob("b.db/t/bucket-*"))):
        rows = pa.concat_tables([pq.read_table(f) for f in sorted(bucket.glob("*.parquet"))])
        _write_newest(rows, folder / f"{number}.parquet")


def _write_newest(rows: pa.Table, file: Path) -> pa.Table:
    rows = rows.take(pc.sort_indices(rows, [("_KEY_id", "ascending"), ("_SEQUENCE_NUMBER", "ascending")]))
    keys = rows["_KEY_id"].combine_chunks()
    last = np.append(np.asarray(pc.not_equal(keys[1:], keys[:-1])), True)
    newest = rows.filter(pa.array(last))
    pq.write_table(newest, file, **_WRITE)
    return newest


def read(files: list[Path], columns: list[str] | None) -> int:
    """Read these columns of these files whole."""
    tables = [pq.ParquetFile(f).read(columns=columns) for f in files]
    return sum(t.num_rows for t in tables)
