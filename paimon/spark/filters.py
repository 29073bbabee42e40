"""Convert the filters that Spark pushes down to predicates.

Invariant: a filter is converted only if the predicate selects exactly the same rows as Spark. Filters on floating-point
columns stay with Spark, because -0.0 and 0.0 are equal in Spark and different in the format.
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

_OPERATORS: Mapping[type[Filter], e.Operator] = {
    EqualTo: e.Operator.EQ,
    GreaterThan: e.Operator.GT,
    GreaterThanOrEqual: e.Operator.GE,
    LessThan: e.Operator.LT,
    LessThanOrEqual: e.Operator.LE,
}


def to_predicate(pushed: Filter, fields: Mapping[str, DataField]) -> e.Predicate | None:
    """Convert a filter of Spark.

    Parameters
    ----------
    pushed : Filter
        A filter that Spark offers to the source.
    fields : mapping of str to DataField
        Top-level columns by name.

    Returns
    -------
    Predicate or None
        The bound predicate; None if the filter must stay with Spark.
    """
    if isinstance(pushed, Not):
        child = to_predicate(pushed.child, fields)
        return None if child is None else e.Not(child)
    name = _find_column(pushed, fields)
    if name is None:
        return None
    build = _BUILDERS.get(type(pushed))
    if build is None:
        return None
    try:
        return bind(build(name, pushed), tuple(fields.values()))
    except InvalidRequest:
        return None


def _find_column(pushed: Filter, fields: Mapping[str, DataField]) -> str | None:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in fields:
        return None
    return path[0] if type(pushed) in _NULL_TESTS or isinstance(fields[path[0]].type, _EXACT) else None


def _build_compare(name: str, pushed: Any) -> e.Predicate:
    return e.Compare(name, _OPERATORS[type(pushed)], pushed.value)


def _build_in(name: str, pushed: Any) -> e.Predicate:
    return e.In(name, tuple(pushed.value))


def _build_is_null(name: str, pushed: Any) -> e.Predicate:
    return e.IsNull(name, negated=type(pushed) is IsNotNull)


def _build_starts_with(name: str, pushed: Any) -> e.Predicate:
    quoted = pushed.value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return e.Like(name, quoted + "%", escape="\\")


_NULL_TESTS = {IsNull, IsNotNull}

_BUILDERS: Mapping[type[Filter], Callable[[str, Any], e.Predicate]] = {
    **dict.fromkeys(_OPERATORS, _build_compare),
    In: _build_in,
    IsNull: _build_is_null,
    IsNotNull: _build_is_null,
    StringStartsWith: _build_starts_with,
}
