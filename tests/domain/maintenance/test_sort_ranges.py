"""Ranges of sort keys: each row is in one, they ascend, and they have about the same weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.maintenance.sort_order import SortOrder, choose_bounds, find_ranges, sample_keys
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

FIELDS = (DataField(0, "x", dt.IntType()), DataField(1, "y", dt.VarCharType()))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text("ab", max_size=2)), max_size=40),
    ranges=st.integers(1, 5), step=st.integers(1, 3), strategy=st.sampled_from(["order", "zorder", "hilbert"]),
)  # fmt: skip
def test_each_row_is_in_one_range_and_ranges_ascend(
    rows: list[tuple[Any, Any]], ranges: int, step: int, strategy: str
) -> None:
    order = SortOrder(strategy, FIELDS)
    schema = pa.schema([("x", pa.int32()), ("y", pa.string())])
    table = pa.Table.from_pylist([{"x": x, "y": y} for x, y in rows], schema)
    bounds = choose_bounds(sample_keys(table, order, 0, step, 1.0), ranges)
    assert bounds.num_rows < ranges
    found = find_ranges(table, order, bounds).tolist()
    assert all(0 <= number <= bounds.num_rows for number in found)
    if strategy == "order":
        keys = [(() if x is None else (x,), () if y is None else (y,)) for x, y in rows]
        ordered = [number for _, number in sorted(zip(keys, found, strict=True))]
        assert ordered == sorted(found)
        assert len({(key, number) for key, number in zip(keys, found, strict=True)}) == len(set(keys))


def test_samples_are_at_fixed_distances_across_batches() -> None:
    order = SortOrder("order", FIELDS[:1])
    table = pa.table({"x": pa.array(range(20), pa.int32()), "y": pa.nulls(20, pa.string())})
    parts = [sample_keys(table.slice(start, 7), order, start, 3, 2.0) for start in (0, 7, 14)]
    found = pa.concat_tables(parts)
    assert found.column(0).to_pylist() == list(range(0, 20, 3))
    assert set(found["weight"].to_pylist()) == {6.0}


@pytest.mark.parametrize(("heavy", "low_rows"), [(1.0, 100), (9.0, 55)])
def test_ranges_have_the_same_weight(heavy: float, low_rows: int) -> None:
    """The lower half of the rows is heavier or not; so a range of the same weight has fewer of them."""
    order = SortOrder("order", FIELDS[:1])
    table = pa.table({"x": pa.array(range(200), pa.int32()), "y": pa.nulls(200, pa.string())})
    low, high = sample_keys(table.slice(0, 100), order, 0, 1, heavy), sample_keys(table.slice(100), order, 0, 1, 1.0)
    bounds = choose_bounds(pa.concat_tables([low, high]), 2)
    counts = np.bincount(find_ranges(table, order, bounds))
    assert abs(counts[0] - low_rows) <= 1
