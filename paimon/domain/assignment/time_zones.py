"""Compute conditions and new values in the time zone of a session.

Invariant: without scalar SQL, the rules of this library read a text as a time of UTC. So a part that converts between
instants and dates, times or texts becomes scalar SQL with the time zone. Other parts stay as they are, and still prune.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve

from paimon.domain.assignment.expression import ColumnValue, Constant, Expression, SqlValue
from paimon.domain.predicate.expression import Compare, ForeignExpression, In, Predicate, ScalarSql, SqlCondition
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.predicate.transform import Leaf, map_leaves
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.field_ids import all_types
from paimon.domain.types.type_text import quote_text

UTC = "UTC"
_SQL_TYPES = {dt.LocalZonedTimestampType: "TIMESTAMPTZ", dt.TimestampType: "TIMESTAMP", dt.DateType: "DATE"}
"""Types whose values are computed in a time zone from values of another one of them, or from texts."""
ZONED_TYPES = tuple(_SQL_TYPES)
_TIME_WORDS = re.compile("time|date|now|today|zone|strp|setting|interval", re.IGNORECASE)
"""Parts of the names of types and functions that make dates and times of other values."""


def use_zone_in_condition(condition: Predicate, fields: Sequence[DataField], zone: str) -> Predicate:
    """Return a condition that is evaluated in a time zone; an equal one if the zone makes no difference."""
    if zone == UTC:
        return condition

    def change(leaf: Leaf) -> Predicate:
        """Compare an instant with the instants that texts and dates mean in the zone."""
        if not isinstance(leaf, Compare | In):
            return leaf
        literals = (leaf.literal,) if isinstance(leaf, Compare) else leaf.literals
        if not any(map(_is_local, literals)) or not is_instant(type_at(leaf.column, fields)):
            return leaf
        return SqlCondition(_compare_instants(leaf, zone))

    return map_leaves(condition, change, lambda part: evolve(part, expression=_set_zone(part.expression, fields, zone)))


def use_zone_in_value(value: Expression, column: DataField, fields: Iterable[DataField], zone: str) -> Expression:
    """Return the new value of a column, computed in a time zone; an equal one if the zone makes no difference."""
    sql_type, fields = _SQL_TYPES.get(type(column.type)), tuple(fields)
    match value:
        case _ if zone == UTC:
            return value
        case SqlValue(expression=expression):
            cast = expression if sql_type is None else evolve(expression, sql=f"CAST(({expression.sql}) AS {sql_type})")
            return SqlValue(_set_zone(cast, fields, zone))
        case Constant(value=literal) if sql_type == "TIMESTAMPTZ" and _is_local(literal):
            return SqlValue(ScalarSql(str(literal), _to_instant(literal), (), time_zone=zone))
        case ColumnValue(name=name) if sql_type and is_instant(type_at(name, fields)) != is_instant(column.type):
            return SqlValue(ScalarSql(name, f'CAST("c0" AS {sql_type})', (name,), time_zone=zone))
    return value


def is_instant(kind: DataType) -> bool:
    """Return whether values of a type are instants."""
    return isinstance(kind, dt.LocalZonedTimestampType)


def _is_local(literal: Any) -> bool:
    """Return whether a literal means an instant only in a time zone; a text may contain its own."""
    if isinstance(literal, datetime.datetime):
        return literal.tzinfo is None
    return isinstance(literal, str | datetime.date)


def _compare_instants(leaf: Compare | In, zone: str) -> ScalarSql:
    if isinstance(leaf, Compare):
        test = f"{leaf.op.value} {_to_instant(leaf.literal)}"
    else:
        test = f"{'NOT ' if leaf.negated else ''}IN ({', '.join(map(_to_instant, leaf.literals))})"
    return ScalarSql(f"{leaf.column} {test}", f'"c0" {test}', (leaf.column,), time_zone=zone)


def _to_instant(literal: Any) -> str:
    return "NULL" if literal is None else f"CAST({quote_text(str(literal))} AS TIMESTAMPTZ)"


def _set_zone(expression: ScalarSql, fields: Sequence[DataField], zone: str) -> ScalarSql:
    has_times = _TIME_WORDS.search(expression.sql) is not None or any(
        isinstance(part, ZONED_TYPES) for name in expression.columns for part in all_types(type_at(name, fields))
    )
    is_own = not isinstance(expression, ForeignExpression)
    return evolve(expression, time_zone=zone) if is_own and has_times else expression
