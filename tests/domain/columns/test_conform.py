"""Conversion of user data to the columns of a table: what is accepted, and how other data is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.ddl import parse_columns
from paimon.testing.strategies import arrow_tables, column_names, data_types, fields_of

UTC = datetime.UTC


@given(st.data())
def test_canonical_data_stays_as_it_is(data: st.DataObject) -> None:
    types = data.draw(st.lists(data_types(max_depth=2), min_size=1, max_size=3))
    names = data.draw(st.lists(column_names(), min_size=len(types), max_size=len(types), unique=True))
    fields = fields_of(types, names)
    table = data.draw(arrow_tables(fields))
    order = data.draw(st.permutations(names))
    made = conform_to_fields(table.select(order).slice(1), fields, "t")
    made.validate(full=True)
    assert made.schema.equals(arrow_schema(fields), check_metadata=True)
    assert repr(made.to_pylist()) == repr(table.slice(1).to_pylist())


LOSSLESS = [
    ("STRING", pa.array(["a", None]).dictionary_encode(), ["a", None]),
    ("STRING", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("STRING", pa.array(["a", None], pa.string_view()), ["a", None]),
    ("BYTES", pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    ("BYTES", pa.array([b"ab", None], pa.large_binary()), [b"ab", None]),
    ("INT", pa.array([1, None], pa.uint64()), [1, None]),
    ("INT", pa.array([1.0, None]), [1, None]),
    ("TINYINT", pa.array([-128, 127], pa.int64()), [-128, 127]),
    ("FLOAT", pa.array([0.5, None]), [0.5, None]),
    ("DOUBLE", pa.array([3, None]), [3.0, None]),
    ("DECIMAL(10, 2)", pa.array([3, None]), [Decimal("3.00"), None]),
    ("DECIMAL(4, 2)", pa.array([Decimal("3.1000"), None], pa.decimal256(50, 4)), [Decimal("3.10"), None]),
    ("DATE", pa.array([86_400_000, None], pa.date64()), [datetime.date(1970, 1, 2), None]),
    ("TIME(3)", pa.array([1_000_000, None], pa.time64("us")), [datetime.time(0, 0, 1), None]),
    ("TIMESTAMP(3)", pa.array([10**9, None], pa.timestamp("ns")), [datetime.datetime(1970, 1, 1, 0, 0, 1), None]),
    (
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        pa.array([1, None], pa.timestamp("s", "+02:00")),
        [datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None],
    ),
    ("ARRAY<BIGINT>", pa.array([[1], None, []], pa.large_list(pa.int8())), [[1], None, []]),
    ("ARRAY<BIGINT>", pa.array([[1], None, [2]], pa.list_(pa.int32(), 1)), [[1], None, [2]]),
    ("ROW<a INT, b STRING>", pa.array([{"b": "x"}, None]), [{"a": None, "b": "x"}, None]),
    ("MAP<STRING, INT>", pa.array([[("a", 1)], None], pa.map_(pa.large_string(), pa.int64())), [[("a", 1)], None]),
    ("MULTISET<STRING>", pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), [[("a", 1)], None]),
    ("INT", pa.nulls(2), [None, None]),
    ("ROW<a INT NOT NULL>", pa.array([{"a": 1}, None]), [{"a": 1}, None]),
]


@pytest.mark.parametrize(("text", "array", "values"), LOSSLESS, ids=lambda v: str(getattr(v, "type", v))[:40])
def test_lossless_conversions_are_accepted(text: str, array: pa.Array, values: list[object]) -> None:
    fields = parse_columns(f"v {text}")
    made = conform_to_fields(pa.table({"v": array}), fields, "t")
    made.validate(full=True)
    assert made.schema.equals(arrow_schema(fields))
    assert made.column("v").to_pylist() == values


WRONG = [
    ("INT", pa.array(["1"]), "another type"),
    ("STRING", pa.array([1]), "another type"),
    ("BOOLEAN", pa.array([1]), "another type"),
    ("DATE", pa.array(["2024-01-01"]), "another type"),
    ("TIMESTAMP(3)", pa.array([1], pa.timestamp("ms", "UTC")), "another type"),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", pa.array([1], pa.timestamp("ms")), "another type"),
    ("ROW<a INT>", pa.array([{"b": 1}]), "another type"),
    ("INT", pa.array([2**31]), "not in range"),
    ("INT", pa.array([1.5]), "truncated"),
    ("INT", pa.array([float("nan")]), "does not fit"),
    ("FLOAT", pa.array([0.1]), "precision of DOUBLE"),
    ("DECIMAL(3, 1)", pa.array([Decimal("1.05")]), "does not fit"),
    ("DECIMAL(3, 1)", pa.array([100]), "does not fit"),
    ("TIMESTAMP(3)", pa.array([1], pa.timestamp("us")), "lose data"),
    ("INT NOT NULL", pa.array([None, 1]), "NOT NULL but contains 1"),
    ("ROW<a INT NOT NULL>", pa.array([{"a": None}, None], pa.struct([("a", pa.int32())])), r"'v\.a' is NOT NULL"),
    ("ARRAY<INT NOT NULL>", pa.array([[None]], pa.list_(pa.int32())), "NOT NULL"),
    ("VARCHAR(2)", pa.array(["äöü"]), "3 characters"),
    ("CHAR(2)", pa.array(["abc"]), "3 characters"),
    ("BINARY(2)", pa.array([b"abc"]), "3 bytes"),
    ("ARRAY<VARCHAR(1)>", pa.array([["ab"]]), r"v\[\]"),
]


@pytest.mark.parametrize(("text", "array", "message"), WRONG, ids=lambda v: str(getattr(v, "type", v))[:40])
def test_values_that_do_not_fit_are_refused_by_name(text: str, array: pa.Array, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        conform_to_fields(pa.table({"v": array}), parse_columns(f"v {text}"), "t")
    assert "v" in str(caught.value.subject)
    assert caught.value.hint


def build_decimals(numbers: list[int | None], precision: int, scale: int) -> pa.Array:
    """Build an array of DECIMAL(precision, scale) from unscaled numbers, which may have more digits."""
    wide = pa.array([None if n is None else Decimal(n) for n in numbers], pa.decimal128(38, 0))
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(wide), wide.buffers())


@given(
    st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-10_000, 10_000), max_size=4),
    st.integers(1, 38),
    st.data(),
)
def test_decimals_are_accepted_if_no_value_has_more_digits_than_the_type(
    numbers: list[int | None], precision: int, data: st.DataObject
) -> None:
    scale = data.draw(st.integers(0, precision))
    array = build_decimals(numbers, precision, scale)
    nested = pa.StructArray.from_arrays([array], names=["a"])
    for text, column in ((f"DECIMAL({precision}, {scale})", array), (f"ROW<a DECIMAL({precision}, {scale})>", nested)):
        fields, table = parse_columns(f"v {text}"), pa.table({"v": column})
        if all(abs(n) < 10**precision for n in numbers if n is not None):
            assert conform_to_fields(table, fields, "t")["v"].combine_chunks().equals(column)
        else:
            with pytest.raises(InvalidRequest, match=rf"digits, but its type is DECIMAL\({precision}, {scale}\)"):
                conform_to_fields(table, fields, "t")


def test_the_error_shows_both_schemas() -> None:
    fields = parse_columns("id INT NOT NULL, name STRING, price DECIMAL(10, 2)")
    with pytest.raises(InvalidRequest) as caught:
        conform_to_fields(pa.table({"nmae": ["x"], "price": ["1"]}), fields, "table shop.orders")
    text = str(caught.value)
    assert "table shop.orders" in text
    assert "id INT NOT NULL" in text and "(missing)" in text
    assert "did you mean 'name'?" in text
    assert "price DECIMAL(10, 2) | price string" in text


def test_missing_columns_are_null_or_their_default() -> None:
    plain, given = parse_columns("a INT, b STRING DEFAULT 'x'")
    made = conform_to_fields(pa.table({"a": [1, None]}), [plain, given], "t")
    assert made.to_pydict() == {"a": [1, None], "b": ["x", "x"]}
    made = conform_to_fields(pa.table({"b": ["y", None]}), [plain, given], "t")
    assert made.to_pydict() == {"a": [None, None], "b": ["y", "x"]}


def test_repeated_columns_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(InvalidRequest, match="more than once"):
        conform_to_fields(table, parse_columns("a INT"), "t")
