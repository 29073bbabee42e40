"""Java's order of floats: ordinals, sort keys and bounds agree with comparing two values."""

from __future__ import annotations

import math
import struct
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.columns.java_float_order import (
    NAN_ORDINAL,
    NEGATIVE_ZERO_ORDINAL,
    POSITIVE_ZERO_ORDINAL,
    compare_by_operators,
    compare_values,
    find_float_bounds,
    from_float_ordinals,
    is_larger_sequence,
    to_float_ordinal,
    to_float_ordinals,
    to_float_sort_key,
    to_ordinal_array,
    unify_nans,
    unify_zeros,
)

OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
SPECIAL = [math.nan, OTHER_NAN, 0.0, -0.0, math.inf, -math.inf, 1.5, -1.5, 5e-324, -5e-324]
FLOATS = st.sampled_from(SPECIAL) | st.floats()
NARROW = st.sampled_from([v for v in SPECIAL if abs(v) != 5e-324]) | st.floats(width=32)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


@given(FLOATS, FLOATS)
def test_ordinals_and_sort_keys_compare_as_values_do(a: float, b: float) -> None:
    expected = compare_values(a, b)
    assert sign(to_float_ordinal(a) - to_float_ordinal(b)) == expected
    keys = to_float_sort_key(a), to_float_sort_key(b)
    assert (keys[0] > keys[1]) - (keys[0] < keys[1]) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_ordinals_of_arrays_compare_as_values_do(dtype: type[np.floating], data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(NARROW, min_size=1, max_size=20)), dtype=dtype)
    ordinals = to_float_ordinals(values)
    assert ordinals.dtype.itemsize == values.dtype.itemsize
    by_value = sorted(
        range(len(values)), key=cmp_to_key(lambda a, b: compare_values(float(values[a]), float(values[b])))
    )
    assert np.argsort(ordinals, kind="stable").tolist() == by_value
    assert repr(from_float_ordinals(ordinals).tolist()) == repr(values.tolist())
    wide = to_float_ordinals(values.astype(np.float64))
    assert wide.tolist() == [to_float_ordinal(float(value)) for value in values]
    column = pa.array(values).slice(1)
    assert to_ordinal_array(column).to_pylist() == ordinals[1:].tolist()
    low, high = find_float_bounds(values)
    assert compare_values(low, float(values[by_value[0]])) == compare_values(high, float(values[by_value[-1]])) == 0


def test_special_ordinals() -> None:
    ordinals = [to_float_ordinal(value) for value in (-0.0, 0.0, math.nan, OTHER_NAN)]
    assert ordinals == [NEGATIVE_ZERO_ORDINAL, POSITIVE_ZERO_ORDINAL, NAN_ORDINAL, NAN_ORDINAL]


def test_nulls_stay_null() -> None:
    column = pa.array([None, math.nan, -0.0], pa.float32())
    assert to_ordinal_array(column).null_count == unify_nans(column).null_count == unify_zeros(column).null_count == 1
    assert repr(unify_zeros(column).to_pylist()) == "[None, nan, 0.0]"
    assert unify_nans(pa.array(["a"])).to_pylist() == ["a"]


@given(st.none() | FLOATS, st.none() | FLOATS)
def test_operators_equal_numpy_except_for_null(a: float | None, b: float | None) -> None:
    larger = b is None if a is not None and b is None else a is not None and b is not None and bool(np.float64(a) > b)
    assert is_larger_sequence([a], [b], descending=False) == larger == (compare_by_operators(a, b) > 0)
    if a is not None and b is not None:
        assert is_larger_sequence([a], [b], descending=True) == is_larger_sequence([b], [a], descending=False)
    assert is_larger_sequence([math.nan, 2.0], [1.0, 1.0], descending=False)
