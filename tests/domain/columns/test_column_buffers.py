"""Columns are divided into their Arrow buffers and built from them again."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.columns.buffers import from_stored_numbers, has_stored_numbers, read_validity, to_stored_numbers

MOMENT = datetime.datetime(2026, 11, 21, 3)
KINDS = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.date32(): st.just(MOMENT.date()),
    pa.time32("ms"): st.just(MOMENT.time()),
    pa.timestamp("us", "UTC"): st.just(MOMENT.replace(tzinfo=datetime.UTC)),
    pa.timestamp("ns"): st.just(MOMENT),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_a_column_has_the_stored_values(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=30))
    whole = pa.array(values, kind)
    column = whole.slice(data.draw(st.integers(0, len(values))))
    assert has_stored_numbers(kind)
    valid = read_validity(column)
    assert valid.tolist() == [v is not None for v in column.to_pylist()]
    again = from_stored_numbers(to_stored_numbers(column), kind, valid)
    again.validate(full=True)
    assert repr(again.to_pylist()) == repr(column.to_pylist())


@pytest.mark.parametrize("kind", [pa.string(), pa.decimal128(5), pa.list_(pa.int8())], ids=str)
def test_other_types_return_only_the_validity(kind: pa.DataType) -> None:
    assert not has_stored_numbers(kind)
    assert read_validity(pa.nulls(9, kind)[2:]).tolist() == [False] * 7
    assert read_validity(pa.array([], kind)).tolist() == []


def test_a_column_without_bits_has_all_values_or_none() -> None:
    assert read_validity(pa.array([1, 2])).tolist() == [True, True]
    assert read_validity(pa.nulls(2)).tolist() == [False, False]
    assert from_stored_numbers(np.array([1, 2]), pa.int64(), np.array([True, True])).null_count == 0
