"""Arrays created without pandas equal those of pyarrow, value by value and error by error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.types.arrow_arrays import from_numpy, make_array, make_scalar

PLAIN: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.binary(): st.binary(),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
    pa.date32(): st.dates(),  # one that is left to pyarrow
}
RECORD = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string())), ("c", pa.struct([("d", pa.binary())]))])


def check_equal_arrays(made: pa.Array, expected: pa.Array) -> None:
    made.validate(full=True)
    assert made.type == expected.type
    assert repr(made.to_pylist()) == repr(expected.to_pylist())  # NaN equals itself in text


@given(st.data(), st.sampled_from(sorted(PLAIN, key=str)))
def test_plain_values_equal_those_of_pyarrow(data: st.DataObject, kind: pa.DataType) -> None:
    values = data.draw(st.lists(st.none() | PLAIN[kind]))
    check_equal_arrays(make_array(values, kind), pa.array(values, kind))
    for value in values[:2]:
        assert repr(make_scalar(value, kind)) == repr(pa.scalar(value, kind))


@given(st.lists(st.none() | st.fixed_dictionaries({}, optional={
    "a": st.none() | st.integers(-(2**63), 2**63 - 1),
    "b": st.none() | st.lists(st.none() | st.text("ab\u00e9", max_size=3)),
    "c": st.none() | st.fixed_dictionaries({"d": st.none() | st.binary(max_size=3)}),
    "unknown": st.none(),
})))  # fmt: skip
def test_records_and_lists_equal_those_of_pyarrow(values: list[Any]) -> None:
    check_equal_arrays(make_array(values, RECORD), pa.array(values, RECORD))


@given(st.lists(st.tuples(st.integers(-100, 100), st.booleans())), st.sampled_from(["i1", "i4", "i8", "f8", "?", "f4"]))
def test_numpy_values_equal_those_of_pyarrow(pairs: list[tuple[int, bool]], dtype: str) -> None:
    values = np.array([number for number, _ in pairs], dtype=dtype)
    valid = np.array([known for _, known in pairs], dtype=bool)
    check_equal_arrays(from_numpy(values), pa.array(values))
    check_equal_arrays(from_numpy(values, valid), pa.array(values, mask=~valid))
    check_equal_arrays(from_numpy(values[::2]), pa.array(values[::2].copy()))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([300], pa.int8()),
        ([2**70], pa.int64()),
        (["x"], pa.int64()),
        (["\ud800"], pa.string()),
        ([1], pa.string()),
        ([{"a": "x"}], RECORD),
        ([True], pa.int64()),
    ],
    ids=str,
)
def test_values_that_do_not_fit_raise_the_same_error_as_pyarrow(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises(Exception) as expected:
        pa.array(values, kind)
    with pytest.raises(type(expected.value)):
        make_array(values, kind)


def test_numpy_scalars_are_left_to_pyarrow() -> None:
    check_equal_arrays(make_array([np.int64(3), None], pa.int64()), pa.array([np.int64(3), None], pa.int64()))
