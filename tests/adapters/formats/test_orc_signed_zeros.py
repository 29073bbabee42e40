"""Signed zeros in ORC files: the columnar rule equals what Java reads, batch by batch."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.adapters.formats.orc.data_files import JAVA_BATCH_ROWS, apply_java_zero_signs

Batch = list[float | None]


def java_reads(batch: Batch) -> Batch:
    """A batch without nulls whose values equal its first repeats that."""
    return [batch[0]] * len(batch) if None not in batch and all(v == batch[0] for v in batch) else batch


def signs(values: Batch) -> list[tuple[float, float] | None]:
    return [None if v is None else (v, math.copysign(1, v)) for v in values]


zeros = st.sampled_from([0.0, -0.0])
rows = st.one_of(
    st.lists(zeros, min_size=1, max_size=4), st.lists(zeros | st.sampled_from([None, 1.5]), min_size=1, max_size=4)
)


@given(st.lists(rows, min_size=1, max_size=4), st.sampled_from([pa.float32(), pa.float64()]))
def test_batches_of_both_zeros_read_as_their_first(ends: list[Batch], data_type: pa.DataType) -> None:
    """Full batches (a few drawn rows, one of them repeated), then a short one."""
    *full, last = ends
    batches = [drawn + drawn[-1:] * (JAVA_BATCH_ROWS - len(drawn)) for drawn in full] + [last]
    read = apply_java_zero_signs(pa.array([v for batch in batches for v in batch], data_type))
    assert read.type == data_type
    assert signs(read.to_pylist()) == signs([v for batch in batches for v in java_reads(batch)])


@pytest.mark.parametrize("values", [[], [None], [float("nan"), 0.0]])
def test_other_values_stay(values: Batch) -> None:
    array = pa.array(values, pa.float64())
    assert apply_java_zero_signs(array) is array
