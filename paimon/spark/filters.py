"""Spark's pushed filters as predicates.

Law: a filter is taken only where our answer is exactly Spark's; floating columns are left to Spark, whose zeros are
equal while the format's are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate import expression as e
from paimon.domain.predicate.bind import bind
from paimon.domain.types.data_types import (
    BigIntType,
    BooleanType,
    CharType,
    DataField,
    DateType,
    DecimalType,
    IntType,
    SmallIntType,
    TinyIntType,
    VarCharType,
)

_EXACT = (
    BooleanType,
    TinyIntType,
    SmallIntType,
    IntType,
    BigIntType,
    DecimalType,
    VarCharType,
    CharType,
    DateType,
)

_COMPARES: Mapping[type[Filter], e.Operator] = {
    EqualTo: e.Operator.EQ,
    GreaterThan: e.Operator.GT,
    GreaterThanOrEqual: e.Operator.GE,
    LessThan: e.Operator.LT,
    LessThanOrEqual: e.Operator.LE,
}


def predicate_of(pushed: Filter, fields: Mapping[str, DataField]) -> e.Predicate | None:
    """The bound predicate that means the same; None where there is none."""
    if isinstance(pushed, Not):
        child = predicate_of(pushed.child, fields)
        return None if child is None else e.Not(child)
    name = _column(pushed, fields)
    if name is None:
        return None
    build = _BUILDERS.get(type(pushed))
    if build is None:
        return None
    try:
        return bind(build(name, pushed), tuple(fields.values()))
    except InvalidRequest:
        return None


def _column(pushed: Filter, fields: Mapping[str, DataField]) -> str | None:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in fields:
        return None
    return path[0] if type(pushed) in _NULL_TESTS or isinstance(fields[path[0]].type, _EXACT) else None


def _compare(name: str, pushed: Any) -> e.Predicate:
    return e.Compare(name, _COMPARES[type(pushed)], pushed.value)


def _in(name: str, pushed: Any) -> e.Predicate:
    return e.In(name, tuple(pushed.value))


def _is_null(name: str, pushed: Any) -> e.Predicate:
    return e.IsNull(name, negated=type(pushed) is IsNotNull)


def _starts_with(name: str, pushed: Any) -> e.Predicate:
    quoted = pushed.value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return e.Like(name, quoted + "%", escape="\\")


_NULL_TESTS = {IsNull, IsNotNull}

_BUILDERS: Mapping[type[Filter], Callable[[str, Any], e.Predicate]] = {
    **dict.fromkeys(_COMPARES, _compare),
    In: _in,
    IsNull: _is_null,
    IsNotNull: _is_null,
    StringStartsWith: _starts_with,
}
