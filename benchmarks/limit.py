"""The plain-file limit: what pyarrow alone, as it comes, needs for the same physical work.

The same columns, buckets and codec; encodings are pyarrow's own choice, nothing is flushed to the disk, and no metadata
is written.
"""

from __future__ import annotations

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
            pq.write_table(system, folder / f"{number}-{bucket}.parquet", **_WRITE)


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


def read(files: list[Path], columns: list[str] | None) -> int:
    """Read these columns of these files whole."""
    tables = [pq.ParquetFile(f).read(columns=columns) for f in files]
    return sum(t.num_rows for t in tables)
