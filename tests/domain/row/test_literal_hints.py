"""Error hints for values that do not fit describe what to write, without names of Python classes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.row.literals import parse_literal
from paimon.domain.types.ddl import parse_columns

TYPES = [
    "BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BYTES", "DATE", "TIME(3)",
    "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "ARRAY<INT>", "MAP<STRING, DATE>", "ROW<x INT, y TIME>",
]  # fmt: skip
LEAK = re.compile(r"<class|decimal\.|object is not|argument must|could not convert|invalid literal|^$|^'")
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=6), st.floats(), st.integers(), st.booleans(), st.binary(max_size=3), st.builds(object),
    st.sampled_from(["abc", "12:99", "2026-13-01", "1e999999999", "sNaN"]),
    st.lists(st.text(max_size=2), max_size=2), st.dictionaries(st.sampled_from("xyz"), st.text(max_size=2), max_size=2),
)  # fmt: skip


@pytest.mark.parametrize("ddl", TYPES)
@given(VALUES)
def test_no_hint_leaks_a_class_of_python(ddl: str, value: Any) -> None:
    (column,) = parse_columns(f"c {ddl}")
    try:
        parse_literal(value, column.type)
    except InvalidRequest as error:
        assert error.hint
        assert not LEAK.search(error.hint), error.hint


def test_hints_describe_valid_values() -> None:
    for ddl, value, hint in (("INT", "x", "whole number"), ("DATE", "x", "a day such as"), ("DOUBLE", "x", "a number")):
        (column,) = parse_columns(f"c {ddl}")
        with pytest.raises(InvalidRequest, match=hint):
            parse_literal(value, column.type)


def test_days_beyond_the_calendar_of_python_are_values() -> None:
    (day, time) = parse_columns("d DATE, t TIMESTAMP(6)")
    assert parse_literal("10000-01-01", day.type) == parse_literal("+10000-01-01", day.type) == 2_932_897
    assert parse_literal("-0001-12-31", day.type) == parse_literal("0000-01-01", day.type) - 1 == -719_529
    assert parse_literal("12000-02-29 00:00:01", time.type) == parse_literal("12000-02-29", time.type) + 10**9
    for text in ("10001-02-29", "0000-00-01", "99999999-01-01"):
        with pytest.raises(InvalidRequest, match="is not a valid DATE"):
            parse_literal(text, day.type)
