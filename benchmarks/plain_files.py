"""The limit of the benchmarks: the same physical work on plain Parquet files, by pyarrow alone.

Columns, buckets and codec are those of the tables. Encodings are pyarrow's defaults, nothing is flushed to the disk,
and no metadata is written.
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
    """Sort each bucket of each run by its key, and write it with the columns of a primary-key file."""
    for number, rows in enumerate(runs):
        for bucket, part in enumerate(_split_into_buckets(rows)):
            pq.write_table(part, folder / f"{number}-{bucket}.parquet", **_WRITE)


def write_changelog(folder: Path, runs: list[pa.Table]) -> None:
    """Write three files for each bucket of each run: the flushed rows, the compacted rows, and the changes."""
    for number, rows in enumerate(runs):
        for bucket, part in enumerate(_split_into_buckets(rows)):
            pq.write_table(part, folder / f"{number}-{bucket}-flushed.parquet", **_WRITE)
            pq.write_table(part, folder / f"{number}-{bucket}.parquet", **_WRITE)
            pairs = part.take(np.repeat(np.arange(part.num_rows), 2))
            pq.write_table(pairs, folder / f"{number}-{bucket}-changes.parquet", **_WRITE)


def _split_into_buckets(rows: pa.Table) -> Iterator[pa.Table]:
    buckets = _compute_buckets(rows["id"].combine_chunks())
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


def _compute_buckets(keys: pa.Array) -> np.ndarray:
    """Compute an even distribution to buckets in the cheapest way: by the last two digits of the key."""
    if pa.types.is_integer(keys.type):
        return keys.to_numpy() % data.BUCKETS
    text = np.frombuffer(keys.buffers()[2], np.uint8).reshape(len(keys), -1)  # all keys have the same length
    return (10 * text[:, -2] + text[:, -1]) % data.BUCKETS


def write_plain(folder: Path, runs: list[pa.Table]) -> None:
    """Write each run as one file."""
    for number, rows in enumerate(runs):
        pq.write_table(rows, folder / f"{number}.parquet", **_WRITE)


def rewrite_newest(folder: Path) -> None:
    """Compact each bucket fully: read its files, sort by key and sequence number, and write the newest rows."""
    for number, bucket in enumerate(sorted(folder.glob("b.db/t/bucket-*"))):
        rows = pa.concat_tables([pq.read_table(f) for f in sorted(bucket.glob("*.parquet"))])
        _write_newest(rows, folder / f"{number}.parquet")


def rescale_newest(folder: Path, buckets: int) -> None:
    """Read the newest rows of each bucket, and write them to another number of buckets, sorted by key."""
    parts: list[list[pa.Table]] = [[] for _ in range(buckets)]
    for bucket in sorted(folder.glob("b.db/t/bucket-*")):
        rows = _select_newest(pa.concat_tables([pq.read_table(f) for f in sorted(bucket.glob("*.parquet"))]))
        targets = rows["id"].to_numpy() % buckets
        for target, part in enumerate(parts):
            part.append(rows.filter(pa.array(targets == target)))
    for target, part in enumerate(parts):
        rows = pa.concat_tables(part)
        pq.write_table(rows.take(pc.sort_indices(rows["_KEY_id"])), folder / f"{target}.parquet", **_WRITE)


def _select_newest(rows: pa.Table) -> pa.Table:
    rows = rows.take(pc.sort_indices(rows, [("_KEY_id", "ascending"), ("_SEQUENCE_NUMBER", "ascending")]))
    keys = rows["_KEY_id"].combine_chunks()
    return rows.filter(pa.array(np.append(np.asarray(pc.not_equal(keys[1:], keys[:-1])), True)))


def _write_newest(rows: pa.Table, file: Path) -> pa.Table:
    newest = _select_newest(rows)
    pq.write_table(newest, file, **_WRITE)
    return newest


def read_files(files: list[Path], columns: list[str] | None) -> int:
    """Read columns of files, all columns for None, and return the number of rows."""
    tables = [pq.ParquetFile(f).read(columns=columns) for f in files]
    return sum(t.num_rows for t in tables)
