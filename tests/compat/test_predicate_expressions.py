"""A predicate as an expression of Arrow selects the rows that a read selects."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.compat.data_types import DataField
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.types.arrow import fields_from_arrow

SCHEMA = pa.schema([("i", pa.int32()), ("t", pa.string()), ("d", pa.decimal128(9, 2))])
BUILDER = PredicateBuilder([DataField(n, name, None) for n, name in enumerate(SCHEMA.names)])  # type: ignore[arg-type]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-2, 3),
    "t": st.sampled_from(["", "a", "ab", "b%", "_", "aab"]),
    "d": st.integers(-2, 3).map(lambda n: decimal.Decimal(n) / 4),
}
COMPARISONS = ("equal", "not_equal", "less_than", "less_or_equal", "greater_than", "greater_or_equal")


@st.composite
def draw_leaf(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(SCHEMA.names))
    value = st.one_of(VALUES[name], st.none())
    kind = draw(st.sampled_from(["compare", "null", "in", "between", "pattern"]))
    if kind == "compare":
        return getattr(BUILDER, draw(st.sampled_from(COMPARISONS)))(name, draw(value))  # type: ignore[no-any-return]
    if kind == "null":
        return getattr(BUILDER, draw(st.sampled_from(["is_null", "is_not_null"])))(name)  # type: ignore[no-any-return]
    if kind == "in":
        method = getattr(BUILDER, draw(st.sampled_from(["is_in", "is_not_in"])))
        return method(name, draw(st.lists(value, max_size=3)))  # type: ignore[no-any-return]
    if kind == "between":
        method = getattr(BUILDER, draw(st.sampled_from(["between", "not_between"])))
        return method(name, draw(value), draw(value))  # type: ignore[no-any-return]
    method = getattr(BUILDER, draw(st.sampled_from(["startswith", "endswith", "contains", "like"])))
    return method("t", draw(VALUES["t"]))  # type: ignore[no-any-return]


PREDICATES = st.recursive(
    draw_leaf(),
    lambda inner: st.builds(
        Predicate, st.sampled_from(["and", "or"]), literals=st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=4,
)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(value, st.none()) for name, value in VALUES.items()}), max_size=9
)


@settings(max_examples=150)
@given(predicate=PREDICATES, rows=ROWS, is_typed=st.booleans())
def test_arrow_selects_the_rows_of_a_read(predicate: Predicate, rows: list[dict[str, Any]], is_typed: bool) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    bound = bind(to_paimon_predicate(predicate), fields_from_arrow(SCHEMA))
    expected = table.filter(evaluate(bound, table))
    assert table.filter(predicate.to_arrow(SCHEMA if is_typed else None)).equals(expected)


def test_an_unknown_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="Unsupported predicate method: near"):
        Predicate("near", 0, "i", [1]).to_arrow()
