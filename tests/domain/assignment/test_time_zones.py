"""Conditions and values in a time zone: what converts between instants and local times becomes SQL with the zone."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from paimon.domain.assignment.expression import ColumnDefault, ColumnValue, Constant, Expression, SqlValue
from paimon.domain.assignment.sql import parse_expression
from paimon.domain.assignment.time_zones import use_zone_in_condition, use_zone_in_value
from paimon.domain.predicate.expression import Compare, ForeignExpression, Operator, Predicate, SqlCondition
from paimon.domain.predicate.scalar_sql import parse_condition
from paimon.domain.types.ddl import to_fields

ZONE = "Asia/Tokyo"
FIELDS = to_fields("at TIMESTAMP_LTZ(6), local TIMESTAMP(6), day DATE, name STRING, n INT, s ROW<at TIMESTAMP_LTZ(6)>")
COLUMNS = {field.name: field for field in FIELDS}


def condition(text: str, zone: str = ZONE) -> Predicate:
    return use_zone_in_condition(parse_condition(text), FIELDS, zone)


@pytest.mark.parametrize(
    "text",
    ["n = 1", "name = '2026-01-01'", "day > '2026-01-01'", "local = TIMESTAMP '2026-01-01 00:00:00'", "at IS NULL"],
)
def test_conditions_without_instants_stay(text: str) -> None:
    assert condition(text) == parse_condition(text)


def test_texts_and_dates_are_compared_with_instants_in_the_zone() -> None:
    for column in ("at", "s.at"):
        found = condition(f"{column} >= '2026-01-01' AND n = 1").children[0]  # type: ignore[attr-defined]
        assert isinstance(found, SqlCondition)
        assert found.expression.sql == "\"c0\" >= CAST('2026-01-01' AS TIMESTAMPTZ)"
        assert (found.expression.columns, found.expression.time_zone) == ((column,), ZONE)
    found = condition("at NOT IN (DATE '2026-01-01', 'it''s')")
    assert "IN (CAST('2026-01-01' AS TIMESTAMPTZ), CAST('it''s' AS TIMESTAMPTZ))" in str(found)
    assert condition("at >= '2026-01-01'", "UTC") == parse_condition("at >= '2026-01-01'")
    aware = Compare("at", Operator.EQ, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    assert use_zone_in_condition(aware, FIELDS, ZONE) == aware


def test_sql_has_the_zone_but_expressions_of_other_libraries_do_not() -> None:
    found = condition("hour(at) = 1")
    assert isinstance(found, SqlCondition) and found.expression.time_zone == ZONE
    foreign = SqlCondition(ForeignExpression("x", "", ("at",), True, "polars"))
    assert use_zone_in_condition(foreign, FIELDS, ZONE) == foreign


def test_sql_without_dates_and_times_is_the_same_in_each_zone() -> None:
    for text in ("upper(name) = 'X' AND n + 1 > 2", "n IN (n + 1, 2 * n)"):
        assert condition(text) == parse_condition(text)
    for text in ("s = s", "CAST(name AS TIMESTAMPTZ) IS NULL", "today() IS NULL", "strptime(name, '%z') IS NULL"):
        assert condition(text) != parse_condition(text)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("at", Constant("2026-01-01"), "CAST('2026-01-01' AS TIMESTAMPTZ)"),
        ("at", Constant(datetime.datetime(2026, 1, 1)), "CAST('2026-01-01 00:00:00' AS TIMESTAMPTZ)"),
        ("at", Constant(None), None),
        ("at", ColumnDefault(), None),
        ("at", ColumnValue("local"), 'CAST("c0" AS TIMESTAMPTZ)'),
        ("at", ColumnValue("s.at"), None),
        ("local", ColumnValue("at"), 'CAST("c0" AS TIMESTAMP)'),
        ("local", Constant("2026-01-01"), None),
        ("day", parse_expression("at + INTERVAL 1 DAY"), "CAST((\"c0\" + INTERVAL '1' DAY) AS DATE)"),
        ("n", parse_expression("hour(at)"), 'HOUR("c0")'),
        ("name", ColumnValue("name"), None),
        ("name", parse_expression("upper(name)"), None),
    ],
)
def test_new_values_are_computed_in_the_zone(column: str, value: Expression, expected: Any) -> None:
    found = use_zone_in_value(value, COLUMNS[column], FIELDS, ZONE)
    if expected is None:
        assert found == value
    else:
        assert isinstance(found, SqlValue)
        assert (found.expression.sql.upper(), found.expression.time_zone) == (expected.upper(), ZONE)
    assert use_zone_in_value(value, COLUMNS[column], FIELDS, "UTC") == value
