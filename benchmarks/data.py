"""The rows that all benchmarks use: ten commits of 300,000 rows over a million keys, ten mixed columns.

The environment variable BENCHMARK_SCALE makes all of it smaller (or larger) by a factor.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCALE = float(os.environ.get("BENCHMARK_SCALE", "1"))
RUNS = 10
ROWS = int(300_000 * SCALE)
KEYS = int(1_000_000 * SCALE)
BUCKETS = 4


def schema(key: str = "int") -> pa.Schema:
    """The columns: one key and nine values."""
    return pa.schema(
        [
            pa.field("id", pa.string() if key == "string" else pa.int64(), nullable=False),
            ("quantity", pa.int32()),
            ("price", pa.float64()),
            ("total", pa.int64()),
            ("name", pa.string()),
            ("city", pa.string()),
            ("note", pa.string()),
            ("moment", pa.timestamp("us")),
            ("day", pa.date32()),
            ("flag", pa.bool_()),
        ]
    )


def run(number: int, rows: int = ROWS, keys: int = KEYS, key: str = "int", nulls: float = 0) -> pa.Table:
    """One commit's rows; the same number gives the same rows. Each value is null with the probability `nulls`."""
    draw = np.random.default_rng(number)
    ids = draw.choice(keys, rows, replace=False).astype("int64")
    cities = np.array([f"city-{i:03}" for i in range(200)])
    columns = [
        pa.array(ids) if key == "int" else pa.array(np.char.add("customer-", np.char.zfill(ids.astype("U"), 9))),
        pa.array(draw.integers(0, 1000, rows, dtype="int32"), mask=draw.random(rows) < 0.05),
        pa.array(draw.normal(100, 30, rows)),
        pa.array(draw.integers(0, 10**12, rows)),
        pa.array(np.char.add("name-", draw.integers(0, 10**6, rows).astype("U"))),
        pa.array(cities[draw.integers(0, 200, rows)]),
        pa.array(np.char.add("a somewhat longer note ", draw.integers(0, 10**9, rows).astype("U"))),
        pa.array(draw.integers(1_600_000_000_000_000, 1_800_000_000_000_000, rows), pa.timestamp("us")),
        pa.array(draw.integers(18_000, 20_000, rows, dtype="int32"), pa.int32()).cast(pa.date32()),
        pa.array(draw.random(rows) < 0.5),
    ]
    if nulls:
        columns[1:] = [_thinned(column, draw.random(rows) < nulls) for column in columns[1:]]
    return pa.Table.from_arrays(columns, schema=schema(key))


def _thinned(column: pa.Array, gone: npt.NDArray[np.bool_]) -> pa.Array:
    return column.take(pa.array(np.arange(len(column)), mask=gone))
