"""The plain-file limit: what pyarrow alone needs for the same physical work."""

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
        keys = rows["id"].combine_chunks()
        hashed = keys.to_numpy() if pa.types.is_integer(keys.type) else pc.dictionary_encode(keys).indices.to_numpy()
        for bucket in range(data.BUCKETS):
            part = rows.filter(pa.array(hashed % data.BUCKETS == bucket))
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


def write_plain(folder: Path, runs: list[pa.Table]) -> None:
    """Write each run as one file."""
    for number, rows in enumerate(runs):
        pq.write_table(rows, folder / f"{number}.parquet", **_WRITE)


def read(files: list[Path], columns: list[str] | None) -> int:
    """Read these columns of these files whole."""
    tables = [pq.ParquetFile(f).read(columns=columns) for f in files]
    return sum(t.num_rows for t in tables)
