"""Convert the predicates that Spark pushes down to those of a scan.

Invariant: Spark evaluates pushed predicates of reads again. So a part without an equal predicate is left out of a
conjunction, and `to_predicate` returns None where a whole predicate has none.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from pyspark.sql import types as T

from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Not, Operator, Or, Predicate
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.spark.session_catalog.jvm import to_python_type

_COMPARISONS = {"=": Operator.EQ, "<>": Operator.NE, "<": Operator.LT, "<=": Operator.LE, ">": Operator.GT,
                ">=": Operator.GE}  # fmt: skip
_BOOLEANS: Mapping[str, bool] = {"AlwaysTrue": True, "AlwaysFalse": False}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime.datetime(1970, 1, 1)
_PATTERNS: Mapping[str, str] = {"STARTS_WITH": "{}%", "ENDS_WITH": "%{}", "CONTAINS": "%{}%"}
_CONVERTERS: tuple[tuple[tuple[type[T.DataType], ...], Callable[[Any], Any]], ...] = (
    ((T.BooleanType,), bool),
    ((T.ByteType, T.ShortType, T.IntegerType, T.LongType), int),
    ((T.StringType, T.CharType, T.VarcharType), lambda value: str(value.toString())),
    ((T.DecimalType,), lambda value: Decimal(str(value.toString()))),
    ((T.DateType,), lambda value: _EPOCH.date() + datetime.timedelta(days=value)),
    ((T.FloatType,), lambda value: float(np.float32(value))),
    ((T.DoubleType,), float),
    ((T.BinaryType,), bytes),
    ((T.TimestampNTZType,), lambda value: _EPOCH + datetime.timedelta(microseconds=value)),
    ((T.TimestampType,), lambda value: _EPOCH.replace(tzinfo=datetime.UTC) + datetime.timedelta(microseconds=value)),
)
"""How Spark's literals become values of Python, by type; others are not pushed down."""
_COMPARED = (*dt.INTEGER_TYPES, *dt.CHARACTER_TYPES, dt.BooleanType, dt.DateType, dt.DecimalType)
"""Types that Spark and a scan compare equally with the literals of `_CONVERTERS`."""


def to_conjunction(given: Iterable[Any], fields: Mapping[str, DataField]) -> Predicate | None:
    """Return what a scan evaluates of predicates that must all be true; None if it evaluates none of them."""
    found = tuple(p for p in (to_predicate(one, fields) for one in given) if p is not None)
    return And(found) if len(found) > 1 else next(iter(found), None)


def to_predicate(given: Any, fields: Mapping[str, DataField]) -> Predicate | None:
    """Return a predicate that is true for the same rows; None if there is none. `fields` has the columns by name."""
    name = str(given.name())
    children = list(given.children())
    match name:
        case "AND" | "OR":
            parts = tuple(to_predicate(child, fields) for child in children)
            if any(part is None for part in parts):
                return to_conjunction(children, fields) if name == "AND" else None
            return (And if name == "AND" else Or)(parts)  # type: ignore[arg-type]
        case "NOT":
            inner = to_predicate(children[0], fields)
            # A conjunction may have lost parts, so its negation would be true for too few rows.
            return None if inner is None or str(children[0].name()) in {"AND", "OR", "NOT"} else Not(inner)
        case "IS_NULL" | "IS_NOT_NULL":
            column = _find_column(children[0], fields)
            return None if column is None else IsNull(column, name == "IS_NOT_NULL")
        case "IN":
            return _to_list(children, fields)
    return _to_comparison(name, children, fields)


def _to_list(children: list[Any], fields: Mapping[str, DataField]) -> Predicate | None:
    column = _find_column(children[0], fields)
    values = tuple(find_literal(child) for child in children[1:])
    if column is None or None in values or not isinstance(fields[column].type, _COMPARED):
        return None
    return In(column, values)


def _to_comparison(name: str, children: list[Any], fields: Mapping[str, DataField]) -> Predicate | None:
    if len(children) != 2 or name not in {*_COMPARISONS, *_PATTERNS}:
        return None
    column, value = _find_column(children[0], fields), find_literal(children[1])
    if column is None and name in _COMPARISONS:
        name = _FLIPPED.get(name, name)
        column, value = _find_column(children[1], fields), find_literal(children[0])
    if column is None or value is None or not isinstance(fields[column].type, _COMPARED):
        return None
    if name in _COMPARISONS:
        return Compare(column, _COMPARISONS[name], value)
    if not isinstance(value, str) or set(value) & set("%_\\"):
        return None
    return Like(column, _PATTERNS[name].format(value))


def _find_column(node: Any, fields: Mapping[str, DataField]) -> str | None:
    if node.getClass().getSimpleName() != "FieldReference":
        return None
    names = list(node.fieldNames())
    return str(names[0]) if len(names) == 1 and names[0] in fields else None


def find_equal_value(given: Any) -> tuple[str, Any] | None:
    """Return the column and the value, which may be null, that a predicate compares for equality; None for others."""
    name, children = str(given.name()), list(given.children())
    if name == "OR":  # Spark writes `column <=> TRUE` out in full
        last = children[0]
        while str(last.name()) == "AND":
            last = list(last.children())[-1]
        found = None if str(last.name()) == "OR" else find_equal_value(last)
        column, value = found or ("", None)
        text = str(value).upper()
        written = f"(({column} IS NOT NULL AND {text} IS NOT NULL AND {column} = {text}) OR "
        is_whole = str(given.toString()) == f"{written}({column} IS NULL AND {text} IS NULL))"
        return found if is_whole and isinstance(value, bool) else None
    if not children or children[0].getClass().getSimpleName() != "FieldReference":
        return None
    column = ".".join(str(part) for part in children[0].fieldNames())
    if name == "IS_NULL":
        return column, None
    value = find_literal(children[1]) if name in {"=", "<=>"} else None
    is_null = name == "<=>" and children[1].toString() == "NULL"
    return (column, value) if is_null or value is not None else None


def find_literal(node: Any) -> Any:
    """Return the value of a literal; None for null, for other expressions, and for types that are not converted."""
    class_name = node.getClass().getSimpleName()
    if class_name in _BOOLEANS:
        return _BOOLEANS[class_name]
    if class_name != "LiteralValue" or node.value() is None:
        return None
    return convert_value(to_python_type(node.dataType()), node.value())


def convert_value(kind: T.DataType, value: Any) -> Any:
    """Convert a value as Spark holds it in rows and literals; None for null, and for types that are not converted."""
    for types, convert in _CONVERTERS:
        if isinstance(kind, types):
            return None if value is None else convert(value)
    return None


def to_exact_conjunction(given: Iterable[Any], fields: Mapping[str, DataField]) -> Predicate | None:
    """Return the predicate that is true for exactly the rows for which all given ones are; None if there is none."""
    predicates = list(given)
    if not all(_is_exact(one) for one in predicates):
        return None
    found = [to_predicate(one, fields) for one in predicates]
    return None if not found or None in found else And(tuple(found)) if len(found) > 1 else found[0]  # type: ignore[arg-type]


def _is_exact(given: Any) -> bool:
    """Return whether a predicate is converted as a whole, or not at all."""
    return str(given.name()) not in {"AND", "OR"}
