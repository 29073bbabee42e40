"""Make the rows of all benchmarks: ten commits of 300,000 rows over a million keys, with ten mixed columns.

The environment variable BENCHMARK_SCALE multiplies the numbers of rows and keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCALE = float(os.environ.get("BENCHMARK_SCALE", "1"))
RUNS = 10
ROWS = int(300_000 * SCALE)
KEYS = int(1_000_000 * SCALE)
BUCKETS = 4


def make_schema(key: str = "int") -> pa.Schema:
    """Return the columns: a key of type ``"int"`` or ``"string"``, and nine values."""
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


def draw_rows(number: int, rows: int = ROWS, keys: int = KEYS, key: str = "int", nulls: float = 0) -> pa.Table:
    """Draw the random rows of one commit.

    Parameters
    ----------
    number : int
        Number of the commit, which is the seed: the same number gives the same rows.
    rows, keys : int
        Number of rows, and number of keys that they are drawn from without repetition.
    key : str
        Type of the key, ``"int"`` or ``"string"``.
    nulls : float
        Probability that a value is null.

    Returns
    -------
    pyarrow.Table
        Rows with the columns of `make_schema`.
    """
    random = np.random.default_rng(number)
    ids = random.choice(keys, rows, replace=False).astype("int64")
    cities = np.array([f"city-{i:03}" for i in range(200)])
    columns = [
        pa.array(ids) if key == "int" else pa.array(np.char.add("customer-", np.char.zfill(ids.astype("U"), 9))),
        pa.array(random.integers(0, 1000, rows, dtype="int32"), mask=random.random(rows) < 0.05),
        pa.array(random.normal(100, 30, rows)),
        pa.array(random.integers(0, 10**12, rows)),
        pa.array(np.char.add("name-", random.integers(0, 10**6, rows).astype("U"))),
        pa.array(cities[random.integers(0, 200, rows)]),
        pa.array(np.char.add("a somewhat longer note ", random.integers(0, 10**9, rows).astype("U"))),
        pa.array(random.integers(1_600_000_000_000_000, 1_800_000_000_000_000, rows), pa.timestamp("us")),
        pa.array(random.integers(18_000, 20_000, rows, dtype="int32"), pa.int32()).cast(pa.date32()),
        pa.array(random.random(rows) < 0.5),
    ]
    if nulls:
        columns[1:] = [_set_nulls(column, random.random(rows) < nulls) for column in columns[1:]]
    return pa.Table.from_arrays(columns, schema=make_schema(key))


def load_parts(name: str, count: int, draw: Callable[[int], pa.Table]) -> list[pa.Table]:
    """Return parts of rows, which are drawn once for all workers of a run.

    Parameters
    ----------
    name : str
        Name of the rows.
    count : int
        Number of parts.
    draw : callable
        Draws a part by its number.

    Returns
    -------
    list of pyarrow.Table
        The parts.
    """
    stored = Path(os.environ.get("BENCHMARK_DATA", "."), f"rows-{name}.arrow")
    if not stored.exists():
        drawn = [draw(i) for i in range(count)]
        if "BENCHMARK_DATA" in os.environ:
            with pa.OSFile(str(stored), "wb") as sink, pa.ipc.new_file(sink, drawn[0].schema) as writer:
                for rows in drawn:
                    writer.write_table(rows)
        return drawn
    with pa.OSFile(str(stored)) as source:
        reader = pa.ipc.open_file(source)
        return [pa.Table.from_batches([reader.get_batch(i)]) for i in range(reader.num_record_batches)]


def _set_nulls(column: pa.Array, is_null: npt.NDArray[np.bool_]) -> pa.Array:
    return column.take(pa.array(np.arange(len(column)), mask=is_null))
