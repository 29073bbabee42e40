"""Rows of a batch are replaced and removed as `concat` and `take` do it, for columns of all kinds."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paimon.domain.columns.replace_rows import filter_rows, replace_rows

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, None, False]),
    "int8": (pa.int8(), [1, None, -128]),
    "int64": (pa.int64(), [1, None, -(2**63)]),
    "float": (pa.float32(), [0.0, None, -0.0]),
    "double": (pa.float64(), [0.0, None, -0.0]),
    "date": (pa.date32(), [datetime.date(2020, 1, 1), None, datetime.date(1960, 1, 1)]),
    "time": (pa.time32("ms"), [datetime.time(1), None, datetime.time(2)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2020, 1, 1), None, datetime.datetime(1960, 1, 1)]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.00"), None, Decimal("-2.50")]),
    "text": (pa.string(), ["", None, "långt"]),
    "bytes": (pa.binary(), [b"", None, b"\x00a"]),
    "fixed": (pa.binary(2), [b"ab", None, b"cd"]),
    "list": (pa.list_(pa.float64()), [[0.0], None, [-0.0, None]]),
    "row": (pa.struct([("x", pa.float64()), ("y", pa.string())]), [{"x": 0.0, "y": "a"}, None, {"x": -0.0, "y": "a"}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None, []]),
}


def show(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Return the values as text, in which 0.0 and -0.0 differ."""
    return [repr(value) for value in values.to_pylist()]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("seed", range(3))
def test_replaced_rows_get_exactly_the_new_values(kind: str, seed: int) -> None:
    random, (data_type, values) = np.random.default_rng(seed), COLUMNS[kind]
    column = pa.array([values[n] for n in random.integers(0, 3, 43)], data_type)[3:]
    rows = np.flatnonzero(random.random(40) < 0.3)
    new = pa.array([values[n] for n in random.integers(0, 3, len(rows))], data_type)
    batch = pa.RecordBatch.from_arrays([column, pa.array(range(40))], ["v", "n"])
    replaced = replace_rows(batch, rows, pa.table({"v": new, "n": pa.array(rows)}))
    expected = column.to_pylist()
    for row, value in zip(rows.tolist(), new.to_pylist(), strict=True):
        expected[row] = value
    assert replaced.schema.equals(batch.schema)
    assert show(replaced["v"]) == [repr(value) for value in expected]
    assert replaced["n"].to_pylist() == list(range(40))


def test_a_column_with_the_same_values_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, None], "s": ["x", None, "y"], "b": [1, 2, 3]})
    new = pa.table({"a": pa.chunked_array([[2], [None]], pa.int64()), "s": [None, "y"], "b": [7, 8]})
    replaced = replace_rows(batch, np.array([1, 2]), new)
    assert replaced.to_pydict() == {"a": [1, 2, None], "s": ["x", None, "y"], "b": [1, 7, 8]}
    for name in ("a", "s"):
        assert [b and b.address for b in replaced[name].buffers()] == [b and b.address for b in batch[name].buffers()]


def test_nan_is_replaced_and_without_rows_nothing_changes() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1.0, math.nan]})
    assert replace_rows(batch, np.array([1]), pa.table({"x": [2.0]}))["x"].to_pylist() == [1.0, 2.0]
    assert replace_rows(batch, np.empty(0, np.int64), pa.table({"x": pa.array([], pa.float64())})) is batch


def test_rows_are_filtered_by_a_mask() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3]})
    assert filter_rows(batch, np.array([True, True, True])) is batch
    assert filter_rows(batch, np.array([True, False, True]))["a"].to_pylist() == [1, 3]
