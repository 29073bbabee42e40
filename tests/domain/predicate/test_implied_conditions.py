"""Conditions of pyarrow: their trees, and what they imply.

For each expression, each row for which pyarrow evaluates it to true is one for which the implied condition is true.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.drawn_tables import COLUMNS, VALUES

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate import implied
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import Compare, Literal, Operator, Predicate, SqlCondition
from paimon.domain.predicate.expression_tree import Call, Constant, Field, decode_expression
from paimon.domain.predicate.foreign import condition_of_polars, condition_of_pyarrow, evaluate_pyarrow
from paimon.domain.predicate.text import format_predicate
from paimon.domain.predicate.transform import OPPOSITE, restrict_to_columns, simplify
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.ddl import parse_columns

FIELDS = parse_columns(", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
TYPES = {field.name: field.type for field in arrow_schema(FIELDS)}
KNOWN = {"id": [1, 2], "part": ["a", "b"], **VALUES}
ROWS = pa.record_batch(
    [pa.array([KNOWN[name][i % len(KNOWN[name])] for i in range(24)], kind) for name, kind in TYPES.items()],
    names=list(TYPES),
)
MORE: dict[str, list[Any]] = {
    "ratio": [0.1, 1e39, 1, math.nan, pa.scalar(1.5, pa.float32()), Decimal("1.5"), -0.0, 0],
    "size": [0.1, 1, math.nan, -0.0, 0, 2**53 + 1, Decimal("1.5")],
    "money": [1, Decimal("-1.050001"), Decimal("1e20")],
    "number": [2**40, Decimal("0.5"), 0.5],
    "at": [
        pa.scalar(1, pa.timestamp("ns")),
        pa.scalar(-315619199999999, pa.timestamp("us")),
        datetime.date(2026, 1, 1),
    ],
    "zoned": [pa.scalar(1, pa.timestamp("ns", "UTC")), pa.scalar(1767225600, pa.timestamp("s", "Europe/Berlin"))],
    "word": [pa.scalar("a", pa.large_string()), "long long"],
}
OPERATORS: list[Callable[[Any, Any], pc.Expression]] = [
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b,
    lambda a, b: a >= b,
]  # fmt: skip


def to_literal(name: str, value: Any) -> Any:
    """Return a value as an engine passes it: in the type of the column, unless it is of another type already."""
    return value if isinstance(value, pa.Scalar) else pa.scalar(value, TYPES[name])


@st.composite
def leaves(draw: st.DrawFn) -> pc.Expression:
    """Draw a condition on one column."""
    name = draw(st.sampled_from(sorted(TYPES)))
    column = pc.field(name)
    values = [to_literal(name, value) for value in KNOWN[name]]
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([column.is_null(), column.is_valid(), column.is_null(nan_is_null=True)]))
    if kind == 1 and pa.types.is_boolean(TYPES[name]):
        return column
    if kind == 2 and pa.types.is_string(TYPES[name]):
        return draw(
            st.sampled_from([pc.starts_with(column, "a"), pc.match_like(column, "l_n%"), pc.match_like(column, "a")])
        )
    if kind == 3 and pa.types.is_floating(TYPES[name]):
        return pc.is_nan(column)
    if kind in (4, 5):
        chosen = draw(st.lists(st.sampled_from(values), max_size=3))
        return column.isin(pa.array([value.as_py() for value in chosen], TYPES[name]))
    literal = draw(st.sampled_from([*values, *MORE.get(name, [])]))
    operator = draw(st.sampled_from(OPERATORS))
    return operator(column, literal) if draw(st.booleans()) else operator(pc.scalar(literal), column)


EXPRESSIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        inner.map(lambda a: ~a),
        st.builds(lambda a, b: pc.if_else(a, b, pa.scalar(None, pa.bool_())), inner, inner),
        inner.map(lambda a: a & (pc.utf8_upper(pc.field("word")) == "A")),
        inner.map(lambda a: ~(a & (pc.utf8_upper(pc.field("word")) == "A"))),
    ),
    max_leaves=4,
)


def evaluate_both(expression: pc.Expression, condition: Predicate) -> tuple[list[bool], list[bool]]:
    """The rows for which pyarrow's expression is true, and those for which what it implies is true."""
    assert isinstance(condition, SqlCondition)
    names = condition.expression.columns
    batch = ROWS.select(list(names) or ["id"])
    truth = evaluate_pyarrow(condition.expression, batch)  # type: ignore[arg-type]
    weaker = restrict_to_columns(condition, list(TYPES))
    kept = evaluate(Literal(True) if weaker is None else weaker, ROWS)
    return [value is True for value in truth.to_pylist()], kept.to_pylist()


def find_lost_rows(expression: pc.Expression) -> list[int]:
    """The rows that pyarrow selects, and pruning would leave out."""
    exact, wide = evaluate_both(expression, bind(condition_of_pyarrow(expression), FIELDS))
    return [i for i, (is_true, is_kept) in enumerate(zip(exact, wide, strict=True)) if is_true and not is_kept]


def can_be_computed(expression: pc.Expression) -> bool:
    """Whether pyarrow compares these types."""
    try:
        find_lost_rows(expression)
    except InvalidRequest as error:
        assert "cannot be computed" in error.message
        return False
    return True


@settings(max_examples=60)
@given(EXPRESSIONS)
def test_an_implied_condition_keeps_each_row_of_the_expression(expression: pc.Expression) -> None:
    if can_be_computed(expression):
        assert find_lost_rows(expression) == []
        assert find_lost_rows(~expression) == []


@settings(max_examples=60)
@given(EXPRESSIONS)
def test_the_negated_condition_of_this_library_is_that_of_pyarrow(expression: pc.Expression) -> None:
    condition = bind(condition_of_pyarrow(expression), FIELDS)
    opposite = bind(condition_of_pyarrow(~expression), FIELDS)
    # as text, because NaN equals nothing
    assert repr(restrict_to_columns(~condition, list(TYPES))) == repr(restrict_to_columns(opposite, list(TYPES)))
    assert repr(simplify(~~condition)) == repr(condition)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((pc.field("number") > 3) & (pc.utf8_upper(pc.field("word")) == "A"), "number > 3"),
        ((pc.field("number") > 3) | (pc.utf8_upper(pc.field("word")) == "A"), None),
        (~((pc.field("number") > 3) | (pc.utf8_upper(pc.field("word")) == "A")), "number <= 3"),
        (pc.field("size") == 0.0, "size IN (-0.0, 0.0)"),
        (~(pc.field("size") > 1.0), "size <= 1.0 OR size = 'NaN'"),
        (pc.field("ratio") > 0.1, "ratio >= 0.10000000149011612"),
        (pc.scalar(3) < pc.field("number"), "number > 3"),
        (pc.field("word").isin(["a", None]), "word IN ('a') OR word IS NULL"),
        (~pc.field("word").isin(["a"]), "word NOT IN ('a') OR word IS NULL"),
        (pc.starts_with(pc.field("word"), "a_"), "word LIKE 'a\\_%' ESCAPE '\\'"),
        (pc.field("flag"), "flag = TRUE"),
        (pc.field("day") == "2026-01-01", None),
        (pc.field("money") == 1, "money = 1.00"),
        (pc.field("number") == pa.scalar(None, pa.int32()), "FALSE"),
    ],
    ids=str,
)  # fmt: skip
def test_what_an_expression_implies(expression: pc.Expression, text: str | None) -> None:
    weaker = restrict_to_columns(bind(condition_of_pyarrow(expression), FIELDS), list(TYPES))
    assert (None if weaker is None else format_predicate(weaker)) == text


def compare_as_java(
    self: object, name: str, operator: Operator, scalar: pa.Scalar, kind: object, negated: bool
) -> Predicate:
    """Compare as if NaN were the largest number for pyarrow, too."""
    return Compare(name, OPPOSITE[operator] if negated else operator, scalar.as_py())


def test_a_rule_without_nan_would_lose_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = ~(pc.field("size") > 1.0)
    assert find_lost_rows(expression) == []
    monkeypatch.setattr(implied._Implication, "_compare", compare_as_java)
    assert find_lost_rows(expression)


def test_the_tree_of_an_expression_is_complete() -> None:
    name = "a'\nend: 'greater"
    expression = (pc.field(name) > 1) & pc.field("b", "c").isin(list(range(100)))
    tree = decode_expression(expression.__reduce__()[1][0].to_pybytes())
    assert isinstance(tree, Call)
    first, second = tree.arguments
    assert first == Call("greater", (Field((name,)), Constant(pa.scalar(1))))
    assert isinstance(second, Call)
    assert second.arguments == (Field(("b", "c")),)
    assert second.options["value_set"].as_py() == list(range(100))


def find_implied(condition: Predicate, ddl: str) -> str | None:
    """What prunes of a condition on these columns, as text."""
    fields = parse_columns(ddl)
    weaker = restrict_to_columns(bind(condition, fields), [field.name for field in fields])
    return None if weaker is None else format_predicate(weaker)


@pytest.mark.parametrize(
    ("expression", "ddl", "text"),
    [
        (pc.field("c") < pa.scalar(1, pa.time64("ns")), "c TIME(3)", "c <= 0"),
        (pc.field("d") == Decimal("0.1"), "d DOUBLE", None),  # pyarrow rounds it to another DOUBLE than Python
        (pc.field("a", "b") == 5, "`a.b` INT, a ROW<b INT>", None),
        (pc.field("a", "b", "c") == 5, "a ROW<`b.c` INT, b ROW<c INT>>", None),
        (pc.field("a", "b") == 5, "ab INT, a ROW<b INT>", "a.b = 5"),
        (pc.field("t").isin([datetime.datetime(2026, 1, 1)]), "t TIMESTAMP(9)", None),
    ],
    ids=str,
)
def test_literals_and_paths_that_mean_something_else_here(
    expression: pc.Expression, ddl: str, text: str | None
) -> None:
    assert find_implied(condition_of_pyarrow(expression), ddl) == text


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_polars_compares_times_in_the_coarser_unit(operator: Callable[[Any, Any], Any], unit: str) -> None:
    fields = parse_columns("t TIMESTAMP(6)")
    rows = pa.record_batch({"t": pa.array([0, 999, 1000, 1001, 1999, 2000, 2001], pa.timestamp("us"))})
    literal = pl.Series([1000 * 1000 + 1]).cast(pl.Datetime("ns")).cast(pl.Datetime(unit))[0]  # type: ignore[arg-type]
    expression = operator(pl.col("t"), pl.lit(literal, dtype=pl.Datetime(unit)))  # type: ignore[arg-type]
    selected = pl.DataFrame(pl.from_arrow(rows)).select(expression).to_series().to_list()
    weaker = restrict_to_columns(bind(condition_of_polars(expression), fields), ["t"])
    kept = evaluate(Literal(True) if weaker is None else weaker, rows).to_pylist()
    assert [i for i, (is_true, is_kept) in enumerate(zip(selected, kept, strict=True)) if is_true and not is_kept] == []


def test_a_long_condition_prunes_and_a_deep_one_does_not() -> None:
    numbers = [pc.field("number") == number for number in range(400)]
    assert str(find_implied(condition_of_pyarrow(reduce(or_, numbers)), "number INT")).count("number = ") == 400
    deep = reduce(lambda a, b: ~a | b, numbers)
    assert find_implied(condition_of_pyarrow(deep), "number INT") is None


@pytest.mark.parametrize(
    "node",
    [
        Call("is_null", (Field(("number",)),), {"nulls_too": pa.scalar(True)}),
        Call("is_null", (Field(("number",)),), {"_type_name": pa.scalar(b"NullOptions")}),
        Call("is_in", (Field(("number",)),), {"value_set": pa.scalar([1, None])}),
        Call("equal", (Field(("number",)), Constant(pa.scalar(1))), {"tolerance": pa.scalar(1)}),
        Call("equal", (Field(("number",)),)),
        Call("invert", ()),
        Call("if_else", (Field(("flag",)),)),
    ],
    ids=str,
)
def test_calls_of_other_releases_imply_nothing(node: Call) -> None:
    assert implied.imply_condition(node, FIELDS, bind) is None


@pytest.mark.parametrize("stored", [b"", b"ARROW1\0\0", pa.BufferOutputStream().getvalue().to_pybytes() + b"x" * 100])
def test_another_form_has_no_tree(stored: bytes) -> None:
    assert decode_expression(stored) is None
