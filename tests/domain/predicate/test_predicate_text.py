"""Predicates as SQL text and in Python, and how literals are bound to column types."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import TokenType

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.build import col
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import (
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Predicate,
    SqlCondition,
)
from paimon.domain.predicate.scalar_sql import parse_condition
from paimon.domain.predicate.sql import parse_number, parse_predicate
from paimon.domain.predicate.text import format_predicate, parse_comparisons
from paimon.domain.predicate.transform import columns_of
from paimon.domain.types.ddl import parse_columns

FIELDS = parse_columns(
    "i INT, t TINYINT, s STRING, b BOOLEAN, y BYTES, d DATE, ts TIMESTAMP(3), f FLOAT, g DOUBLE, c DECIMAL(6, 2), "
    "m TIME(3), z TIMESTAMP(6) WITH LOCAL TIME ZONE, r ROW<a INT, q ROW<e STRING>>, `odd name` INT"
)
DAY = 86_400_000_000_000


def test_every_form_of_sql() -> None:
    a = col("a")
    forms: dict[str, Predicate] = {
        "a = 1": a == 1,
        "3 < a": a > 3,
        "a != -2.5": a != Decimal("-2.5"),
        "a <> 1 AND b <= 2 OR NOT c": ((a != 1) & (col("b") <= 2)) | ~(col("c") == True),  # noqa: E712
        "a IN (1, 'x', NULL)": a.isin([1, "x", None]),
        "a NOT IN (1)": a.not_in([1]),
        "a BETWEEN 1 AND 2": a.between(1, 2),
        "a NOT BETWEEN 1 AND 2": ~a.between(1, 2),
        "a LIKE 'x!%' ESCAPE '!'": a.like("x!%", "!"),
        "a NOT LIKE 'x!%' ESCAPE '!'": Like("a", "x!%", "!", negated=True),
        "a NOT LIKE '_x'": Like("a", "_x", negated=True),
        "a IS NULL": a.is_null(),
        "a IS NOT NULL": a.is_not_null(),
        "NOT (a IS NULL)": IsNull("a", negated=True),
        "a.b = DATE '2024-02-29'": col("a.b") == datetime.date(2024, 2, 29),
        "a = X'00ff'": a == b"\x00\xff",
        "a = 'it''s \\ '": a == "it's \\ ",
        "1 = 1": Literal(True),
        "NULL": Literal(None),
        "2 < 1": Literal(False),
        "m['k'] = 'v'": col("m")["k"] == "v",
        "'v' < m['a.b]']": col("m[a.b]]") > "v",
        "a.m['[k'] NOT IN (1)": col("a.m")["[k"].not_in([1]),
        "m[''] IS NULL": col("m")[""].is_null(),
    }
    for text, expected in forms.items():
        assert parse_predicate(text) == expected, text
        assert parse_predicate(format_predicate(expected)) == expected, text


MAPS = parse_columns("m MAP<STRING, INT>, p MAP<CHAR(2), INT>, n MAP<INT, INT>, d MAP<STRING, ROW<x INT>>, `m[x]` INT, "
                     "r ROW<k STRING, m MAP<STRING, INT>>")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "columns"),
    [("m['k'] = 1", {"m[k]"}), ("r.m['k.l'] = 1", {"r.m[k.l]"}), ("r['k'] = 'v'", {"r[k]"})],
)
def test_texts_are_keys_of_maps_and_names_of_fields(text: str, columns: set[str]) -> None:
    bound = bind(parse_condition(text), MAPS)
    assert isinstance(bound, Compare) and columns_of(bound) == columns


def test_a_key_with_the_name_of_a_column_is_ambiguous() -> None:
    with pytest.raises(InvalidRequest, match=r"Condition on 'm\[x\]' is ambiguous"):
        bind(parse_predicate("m['x'] = 1"), MAPS)
    assert bind(parse_predicate("`m[x]` = 1"), MAPS[4:]) == Compare("m[x]", Operator.EQ, 1)


@pytest.mark.parametrize("text", ["p['k'] = 1", "n['1'] = 1", "n[1] = 1", "d['k'] = ROW(1)", "m['k']['l'] = 1"])
def test_other_keys_are_left_to_sql(text: str) -> None:
    assert isinstance(bind(parse_condition(text), MAPS), SqlCondition)


def test_the_first_of_equal_keys_counts() -> None:
    row: dict[str, Any] = {"m": [("k", 1), ("l", None), ("k", 2)]}
    assert [matches(col("m")[key] == 1, row) for key in ("k", "l", "x")] == [True, None, None]
    assert matches(col("m")["x"].is_null(), {"m": None})


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a =", "a = b", "abs(a) = 1", "a + 1 = 2", "a IN (SELECT 1)", "SELECT 1"),
        *("DROP TABLE a", "b ILIKE 'x'"),
        *("a = 1; b = 2", "a ILIKE 'x'", "a <=> 1", "a LIKE ANY ('x')", "a BETWEEN SYMMETRIC 2 AND 1", "a IN b"),
        *("a[0] = 1", "a = ?", "a = :x", "a IS TRUE", "CASE WHEN a THEN b END", "a IN ()"),
        *("EXISTS (SELECT 1)", "a = CAST(1 AS INT)"),
        *("a = x'0'", "(" * 5000, "a = 'x", "a = 1 AS b", "*"),
        *("1", "a LIKE b", "(a, b) = (1, 2)", "d = DATE '2024-13-01'"),
        *("a = INTERVAL '1' DAY", "NOT " * 3000 + "a", "\x00"),
    ],
)
def test_other_text_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        bind(parse_predicate(text), parse_columns("a INT, b INT"))
    assert caught.value.hint


@given(st.text(st.sampled_from("ab1.'\"`()=<>!-,% \n\\;xNOTLIKEINSULADR"), max_size=30))
def test_no_text_ends_in_a_bare_error(text: str) -> None:
    with suppress(InvalidRequest):
        bind(parse_predicate(text), FIELDS)


@given(
    st.sampled_from(["i", "t", "c"]),
    st.sampled_from(list(Operator)),
    st.one_of(st.integers(-(2**40), 2**40), st.integers(-300, 300), st.decimals(-(10**5), 10**5, places=3)),
    st.integers(-128, 127),
)
def test_numbers_compare_as_numbers(column: str, op: Operator, literal: Any, value: int) -> None:
    stored = value if column != "c" else Decimal(value).scaleb(-2)
    left, right = Fraction(stored), Fraction(literal)
    expected = {
        Operator.EQ: left == right,
        Operator.NE: left != right,
        Operator.LT: left < right,
        Operator.LE: left <= right,
        Operator.GT: left > right,
        Operator.GE: left >= right,
    }[op]
    bound = bind(Compare(column, op, literal), FIELDS)
    assert matches(bound, {column: stored}) is expected
    assert matches(bound, {column: None}) is None
    assert matches(bind(Not(Compare(column, op, literal)), FIELDS), {column: stored}) is not expected
    if op is Operator.EQ:
        assert matches(bind(In(column, (literal, literal)), FIELDS), {column: stored}) is expected
        assert matches(bind(In(column, (literal,), negated=True), FIELDS), {column: None}) is None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("d = '2024-01-01'", 19723, True),
        ("d < TIMESTAMP '2024-01-01 12:00:00'", 19723, True),
        ("d >= TIMESTAMP '2024-01-01 12:00:00'", 19723, False),
        ("ts < '2024-01-01 00:00:00.0001'", 19723 * DAY, True),
        ("ts = '2024-01-01 00:00:00.0001'", 19723 * DAY, False),
        ("z = '2024-01-01 02:00:00+02:00'", 19723 * DAY, True),
        ("m > TIME '10:00:00.0001'", 36_000_001, True),
        ("f = 0.1", 0.10000000149011612, True),
        ("f < 1e39", float("inf"), False),
        ("g = 'NaN'", float("nan"), True),
        ("g > 'Infinity'", float("nan"), True),
        ("g = 0.0", -0.0, False),
        ("g < 0.0", -0.0, True),
        ("g = '-0.0'", -0.0, True),
        ("s > 'z'", "ä", True),
        ("y < X'80'", b"\x7f", True),
        ("b", True, True),
        ("NOT b", True, False),
        ("`odd name` = 1", 1, True),
        ("t < 1000", 5, True),
        ("t = 1e999999999999", 5, False),
        ("t < 1e999999999999", 5, True),
        ("g < 1e999999999999", 5.0, True),
        ("c > 1e-999999999999", Decimal("0.00"), False),
        ("c = 11e-1", Decimal("1.10"), True),
        ("g = -1E300", -1e300, True),
        ("g = -0e0", -0.0, True),
        ("t BETWEEN 1e0 AND 1e1", 5, True),
        ("t IN (1000, 5)", 5, True),
        ("c = '1.10'", Decimal("1.10"), True),
        ("c < 99999.99", Decimal("9999.99"), True),
    ],
)
def test_literals_take_the_type_of_their_column(text: str, value: Any, expected: bool) -> None:
    predicate = bind(parse_predicate(text), FIELDS)
    name = text.removeprefix("NOT ").split(" ")[0] if "`" not in text else "odd name"
    assert matches(predicate, {name: value}) is expected


def test_nested_fields() -> None:
    predicate = bind(parse_predicate("r.q.e = 'x' AND r.a IS NULL"), FIELDS)
    assert matches(predicate, {"r": {"a": None, "q": {"e": "x"}}}) is True
    assert matches(predicate, {"r": None}) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ii = 1", "Did you mean 'i'"),
        ("r.aa = 1", r"Did you mean 'r\.a'"),
        ("r = 1", "ROW, which has no order"),
        ("i = 'x'", "'x' is not a valid INT"),
        ("s = 3", "Column 's'"),
        ("b = 1", "Column 'b'"),
        ("d = 'x'", "not a valid DATE"),
        ("m = '25:00'", "not a valid TIME"),
        ("ts = 5", "Column 'ts'"),
        ("i LIKE 'x'", "LIKE"),
        ("s LIKE 'a!b' ESCAPE '!'", "ESCAPE"),
        ("s LIKE 'a!' ESCAPE '!'", "ESCAPE"),
        ("i = 'NaN'", "not a valid INT"),
    ],
)
def test_other_kinds_of_literals_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        bind(parse_predicate(text), FIELDS)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1.50", Decimal("1.50")), ("1e3", 1000.0), ("1.5E-3", 0.0015), ("1e400", Decimal("1e400"))],
)
def test_a_number_with_an_exponent_is_a_double(text: str, value: object) -> None:
    found = parse_number(text)
    assert (found, type(found)) == (value, type(value))
    assert parse_predicate(f"g > {text}") == Compare("g", Operator.GT, value)


@pytest.mark.parametrize("text", ["t IN (1,, 2)", "t IN (,2)", "coalesce(t,\n, c) > 1", "t > 1 AND length([,1]) = 1"])
def test_a_comma_without_an_expression_is_refused(text: str) -> None:
    """The SQL parser leaves such commas out."""
    with pytest.raises(InvalidRequest, match="is not valid SQL: line"):
        parse_condition(text)
    assert parse_condition("s = ',,' AND t IN (1, 2)") == parse_condition("s = ',,' AND t IN (1,2)")


WORDS = sorted(
    {word.lower() for text in DuckDB.Tokenizer.KEYWORDS for word in re.findall(r"[A-Za-z_]\w*", text)}
    | {name.lower() for name in (*DuckDB.Parser.FUNCTIONS, *DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS)}
    | {token.name.lower() for token in TokenType}
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*WORDS, "Id", "_a1"]),
            st.sampled_from(["=", " <> ", "!= ", "<", " <=", ">", ">= "]),
            st.sampled_from(["1", "-2", "999999999999999999", "'a'", "''", "'b\\ \"--x'", "1.5", "'it''s'", "NULL"]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([" AND ", "\nand  ", "AND ", " OR "]),
    st.sampled_from(["", " ", ";", " --x"]),
)
@settings(max_examples=300)
def test_comparisons_are_read_as_by_the_sql_parser(parts: list[tuple[str, str, str]], between: str, end: str) -> None:
    text = between.join(map("".join, parts)) + end
    found = parse_comparisons(text)
    assert found is None or found == parse_condition(text)


def test_no_keyword_is_taken_for_a_column() -> None:
    for word in WORDS:
        text = f"{word} = 1 AND a < 'x'"
        found = parse_comparisons(text)
        assert found is None or found == parse_condition(text), word


@pytest.mark.parametrize("text", ["id = 7", "a >= -3 AND b <> 'x y' and C!='2026-01-01'"])
def test_common_conditions_need_no_sql_parser(text: str) -> None:
    assert parse_comparisons(text) == parse_condition(text)


@pytest.mark.parametrize("name", ["comment", "show", "load", "set", "cache"])
def test_a_condition_may_begin_with_the_word_of_a_statement(name: str) -> None:
    assert parse_condition(f"{name} = 1 OR b IS NULL") == (col(name) == 1) | col("b").is_null()
