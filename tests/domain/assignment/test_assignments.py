"""Assignments of an update: columns equal rows, and values that do not fit are refused."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.assignment.evaluate_columnar import evaluate_column, fit_values
from paimon.domain.assignment.evaluate_reference import evaluate_assignment
from paimon.domain.assignment.expression import (
    Arithmetic,
    ColumnDefault,
    ColumnValue,
    Constant,
    Expression,
    Operation,
    SqlValue,
    columns_of,
    map_columns,
)
from paimon.domain.assignment.sql import parse_expression
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

I = DataField(0, "i", dt.IntType())  # noqa: E741
L = DataField(1, "l", dt.BigIntType())
D = DataField(2, "d", dt.DecimalType(12, 3))
X = DataField(3, "x", dt.DoubleType())
S = DataField(4, "s", dt.VarCharType(20))
FIELDS = (I, L, D, X, S)
TARGETS = (I, L, D, X, DataField(5, "f", dt.FloatType()), DataField(6, "t", dt.TinyIntType()))

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)
EXACT = st.decimals(-(10**8), 10**8, places=3)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=32)
ROWS = st.lists(st.tuples(*(st.none() | v for v in (INTS, LONGS, EXACT, DOUBLES)), st.just("text")), max_size=4)

SMALL = st.integers(-9, 9) | st.decimals(-9, 9, places=2) | st.none()
LEAVES = st.builds(Constant, SMALL) | st.sampled_from([ColumnValue(n) for n in "ildx"])
WHOLE_LEAVES = st.builds(Constant, st.integers(-9, 9)) | st.sampled_from([ColumnValue(n) for n in "ilx"])
SUMS = st.sampled_from([Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY])
EXPRESSIONS = (
    st.builds(Arithmetic, SUMS, LEAVES, st.builds(Arithmetic, SUMS, LEAVES, LEAVES) | LEAVES)
    | st.builds(Arithmetic, st.sampled_from(Operation), WHOLE_LEAVES, WHOLE_LEAVES)
    | st.sampled_from([ColumnValue("i"), Constant(None), Constant(3), Constant(0.1), Constant(1e39)])
)


def by_row(expression: Expression, rows: list[tuple[Any, ...]], target: DataField) -> list[Any] | None:
    try:
        return [evaluate_assignment(expression, dict(zip("ildxs", row, strict=True)), target) for row in rows]
    except InvalidRequest:
        return None


def by_column(expression: Expression, rows: list[tuple[Any, ...]], target: DataField) -> list[Any] | None:
    columns = [to_array([row[i] for row in rows], f.type) for i, f in enumerate(FIELDS)]
    batch = pa.RecordBatch.from_arrays(columns, [f.name for f in FIELDS])
    try:
        found = evaluate_column(expression, batch, target)
    except InvalidRequest:
        return None
    return to_values(found, target.type)


@given(EXPRESSIONS, ROWS, st.sampled_from(TARGETS))
def test_columns_as_rows(expression: Expression, rows: list[tuple[Any, ...]], target: DataField) -> None:
    if isinstance(expression, ColumnValue):
        target = I
    single, many = by_row(expression, rows, target), by_column(expression, rows, target)
    if single is not None and many is None:
        # Errors that depend on no value are raised from the types alone.
        assert all(value is None for value in single)
        return
    assert (single is None) == (many is None)
    for one, other in zip(single or (), many or (), strict=True):
        equal = one == other or (isinstance(one, float) and isinstance(other, float) and math.isnan(one * other))
        assert equal or (isinstance(one, float) and math.isclose(one, other, rel_tol=1e-15))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("l + 1", 8),
        ("-l", -7),
        ("(l - 2) * 3", 15),
        ("i / 4", 0.75),
        ("d * 1.5", Decimal("3.000")),
        ("NULL", None),
        ("l + NULL", None),
        ("X'ff'", b"\xff"),
        ("DATE '2026-01-01'", datetime.date(2026, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()),
        ("'it''s'", "it's"),
        ('"l"', 7),
        ("-3", -3),
        ("TRUE", True),
    ],
)
def test_text(text: str, value: object) -> None:
    kinds: dict[type, dt.DataType] = {
        int: dt.BigIntType(), float: dt.DoubleType(), Decimal: dt.DecimalType(10, 3), bytes: dt.VarBinaryType(9),
        str: dt.VarCharType(9), bool: dt.BooleanType(), type(None): dt.BigIntType(),
    }  # fmt: skip
    kind = dt.DateType() if text.startswith("DATE") else kinds[type(value)]
    row = {"i": 3, "l": 7, "d": Decimal("2.000")}
    assert evaluate_assignment(parse_expression(text), row, DataField(9, "c", kind)) == value


@pytest.mark.parametrize("text", ["", "1 +", "a; b"])
def test_invalid_expressions_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_expression(text)


@pytest.mark.parametrize("text", ["(SELECT 1)", "sum(a)", "a AS b", "row_number() OVER ()", "a + ?"])
def test_expressions_of_more_than_one_row_are_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "sql", "columns"),
    [
        ("f(a)", 'F("c0")', ("a",)),
        ("a > b", '"c0" > "c1"', ("a", "b")),
        ("CASE WHEN a = 1 THEN a END", 'CASE WHEN "c0" = 1 THEN "c0" END', ("a",)),
        ('upper("x"" || \'") || r.y', 'UPPER("c0") || "c1"', ("x\" || '", "r.y")),
        ("lower('it''s')", "LOWER('it''s')", ()),
    ],
)
def test_other_scalar_sql_has_numbered_columns(text: str, sql: str, columns: tuple[str, ...]) -> None:
    found = parse_expression(text)
    assert isinstance(found, SqlValue)
    assert (found.expression.sql, found.expression.columns) == (sql, columns)
    assert tuple(columns_of(found)) == columns
    renamed = map_columns(found, "t.{}".format)
    assert tuple(columns_of(renamed)) == tuple(f"t.{name}" for name in columns)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_integer_column_takes_infinity_or_nan(value: float) -> None:
    expression = Arithmetic(Operation.ADD, ColumnValue("x"), Constant(1))
    row = (1, 2, None, value, "text")
    with pytest.raises(InvalidRequest, match="'i'"):
        evaluate_assignment(expression, dict(zip("ildxs", row, strict=True)), I)
    assert by_column(expression, [row], I) is None


def test_a_number_that_does_not_fit_names_the_column() -> None:
    batch = pa.record_batch({"l": pa.array([300], pa.int64())})
    for text in ("l + 0", "l / 7", "'x' + 1"):
        with pytest.raises(InvalidRequest):
            evaluate_column(parse_expression(text), batch, TARGETS[-1])
    with pytest.raises(InvalidRequest, match="'s'"):
        evaluate_column(parse_expression("l + 1"), batch, S)


@pytest.mark.parametrize("text", ["1e39", "-1e39", "x", "x * 2"])
def test_a_number_beyond_the_largest_float_is_refused(text: str) -> None:
    batch, target = pa.record_batch({"x": [None, 1e39]}), TARGETS[-2]
    expression = parse_expression(text)
    assert by_column(Constant(3.5e38), [], target) is None
    with pytest.raises(InvalidRequest, match="'f'"):
        fit_values(evaluate_column(expression, batch, target), target)
    with pytest.raises(InvalidRequest, match="'f'"):
        evaluate_assignment(Arithmetic(Operation.ADD, expression, Constant(0.0)), {"x": 1e39}, target)


def test_the_columns_that_are_read() -> None:
    assert set(columns_of(parse_expression("a * 2 + b - a"))) == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e300 * i", 3e300), ("2e-3", 0.002), (f"i * {10**30}", 3e30), (f"x + {10**19} - {9 * 10**18}", 1e18)],
)
def test_numbers_with_exponents_and_long_numbers(text: str, value: float) -> None:
    row, target = (3, None, None, 0.0, ""), DataField(9, "f", dt.DoubleType())
    expression = parse_expression(text)
    assert by_row(expression, [row], target) == by_column(expression, [row], target) == [pytest.approx(value)]


@pytest.mark.parametrize("text", ["1e400", "1" + "0" * 80, "1.5" + "0" * 80, "0." + "0" * 80 + "1"])
def test_a_constant_of_arithmetic_with_too_many_digits_is_refused(text: str) -> None:
    row, target = (3, None, None, 1.0, ""), DataField(9, "f", dt.DoubleType())
    for change in (by_row, by_column):
        assert change(parse_expression(f"x * {text}"), [row], target) is None
    with pytest.raises(InvalidRequest, match="more than 76 digits"):
        evaluate_column(parse_expression(f"x * {text}"), pa.record_batch({"x": [1.0]}), target)


@pytest.mark.parametrize("default", [None, "7"])
@given(ROWS)
def test_default_is_the_default_of_the_column(default: str | None, rows: list[tuple[Any, ...]]) -> None:
    column = DataField(9, "l", dt.BigIntType(), default_value=default)
    expression = parse_expression(" default ")
    assert expression == ColumnDefault()
    assert by_row(expression, rows, column) == by_column(expression, rows, column)
    assert by_row(expression, rows, column) == [None if default is None else 7] * len(rows)
    assert parse_expression('"default"') == ColumnValue("default")
    assert set(columns_of(parse_expression("default + 1"))) == {"default"}
