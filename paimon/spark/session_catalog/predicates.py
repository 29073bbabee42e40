"""Convert the predicates that Spark pushes down to those of a scan.

Invariant: Spark evaluates pushed predicates of reads again. So a part without an equal predicate is left out of a
conjunction, and `to_predicate` returns None where a whole predicate has none.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from py4j.protocol import Py4JError
from pyspark.sql import types as T
from pyspark.sql.types import _parse_datatype_json_string

from paimon.domain.predicate.expression import (
    And,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
)
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.spark.session_catalog.jvm import Jvm

Node = Mapping[str, Any]
"""A part of a predicate of Spark: a ``column``, a literal with ``type`` and ``value``, or a ``name`` with ``children``.
Other parts are empty."""
_COMPARISONS = {"=": Operator.EQ, "<>": Operator.NE, "<": Operator.LT, "<=": Operator.LE, ">": Operator.GT,
                ">=": Operator.GE}  # fmt: skip
_SIGNS = {operator: sign for sign, operator in _COMPARISONS.items()}
_AMBIGUOUS = frozenset("'\\\"$")
"""Settings of the session decide what these characters mean in a text."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime.datetime(1970, 1, 1)
_PATTERNS: Mapping[str, str] = {"STARTS_WITH": "{}%", "ENDS_WITH": "%{}", "CONTAINS": "%{}%"}
_CONVERTERS: tuple[tuple[tuple[type[T.DataType], ...], Callable[[Any], Any]], ...] = (
    ((T.BooleanType,), bool),
    ((T.ByteType, T.ShortType, T.IntegerType, T.LongType), int),
    ((T.StringType, T.CharType, T.VarcharType), str),
    ((T.DecimalType,), lambda value: Decimal(str(value))),
    ((T.DateType,), lambda value: _EPOCH.date() + datetime.timedelta(days=value)),
    ((T.FloatType,), lambda value: float(np.float32(value))),
    ((T.DoubleType,), float),
    ((T.BinaryType,), bytes),
    ((T.TimestampNTZType,), lambda value: _EPOCH + datetime.timedelta(microseconds=value)),
    ((T.TimestampType,), lambda value: _EPOCH.replace(tzinfo=datetime.UTC) + datetime.timedelta(microseconds=value)),
)
"""How Spark's literals become values of Python, by type; others are not pushed down."""
COMPARED_TYPES = (*dt.INTEGER_TYPES, *dt.CHARACTER_TYPES, dt.BooleanType, dt.DateType, dt.DecimalType)
"""Types that Spark and a scan compare equally with the literals of `_CONVERTERS`."""


def read_predicates(jvm: Jvm, given: Any) -> list[Node]:
    """Return predicates of Spark, or a single one, as values of Python; the whole text of each is its ``text``."""
    found: list[Node] = jvm.read_json(given)
    return found


def translate_predicate(jvm: Jvm, expression: Any) -> Any:
    """Return an expression of Spark's plan as a predicate of its interfaces; None if it has no such form."""
    strategy = getattr(jvm.gateway.jvm, "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$")
    try:
        found = strategy.__getattr__("MODULE$").translateFilterV2(expression)
    except Py4JError:  # an assertion of Spark: a comparison with a literal out of range is null or false
        return None
    return found.get() if found.isDefined() else None


def to_conjunction(given: Iterable[Node], fields: Mapping[str, DataField]) -> Predicate | None:
    """Return what a scan evaluates of predicates that must all be true; None if it evaluates none of them."""
    found = tuple(p for p in (to_predicate(one, fields) for one in given) if p is not None)
    return And(found) if len(found) > 1 else next(iter(found), None)


def to_predicate(given: Node, fields: Mapping[str, DataField]) -> Predicate | None:
    """Return a predicate that is true for the same rows; None if there is none. `fields` has the columns by name."""
    name, children = given.get("name", ""), given.get("children", [])
    match name:
        case "AND" | "OR":
            parts = tuple(to_predicate(child, fields) for child in children)
            if any(part is None for part in parts):
                return to_conjunction(children, fields) if name == "AND" else None
            return (And if name == "AND" else Or)(parts)  # type: ignore[arg-type]
        case "NOT":
            inner = to_predicate(children[0], fields)
            # A conjunction may have lost parts, so its negation would be true for too few rows.
            return None if inner is None or children[0]["name"] in {"AND", "OR", "NOT"} else Not(inner)
        case "IS_NULL" | "IS_NOT_NULL":
            column = _find_column(children[0], fields)
            return None if column is None else IsNull(column, name == "IS_NOT_NULL")
        case "IN":
            return _to_list(children, fields)
    return _to_comparison(name, children, fields)


def _to_list(children: Sequence[Node], fields: Mapping[str, DataField]) -> Predicate | None:
    column = _find_column(children[0], fields)
    values = tuple(find_literal(child) for child in children[1:])
    if column is None or None in values or not isinstance(fields[column].type, COMPARED_TYPES):
        return None
    return In(column, values)


def _to_comparison(name: str, children: Sequence[Node], fields: Mapping[str, DataField]) -> Predicate | None:
    if len(children) != 2 or name not in {*_COMPARISONS, *_PATTERNS}:
        return None
    column, value = _find_column(children[0], fields), find_literal(children[1])
    if column is None and name in _COMPARISONS:
        name = _FLIPPED.get(name, name)
        column, value = _find_column(children[1], fields), find_literal(children[0])
    if column is None or value is None or not isinstance(fields[column].type, COMPARED_TYPES):
        return None
    if name in _COMPARISONS:
        return Compare(column, _COMPARISONS[name], value)
    if not isinstance(value, str) or set(value) & set("%_\\"):
        return None
    return Like(column, _PATTERNS[name].format(value))


def _find_column(node: Node, fields: Mapping[str, DataField]) -> str | None:
    names = node.get("column", ())
    return str(names[0]) if len(names) == 1 and names[0] in fields else None


def find_equal_value(given: Node) -> tuple[str, Any] | None:
    """Return the column and the value, which may be null, that a predicate compares for equality; None for others."""
    name, children = given.get("name", ""), given.get("children", [])
    if name == "OR":  # Spark writes `column <=> TRUE` out in full
        last = children[0]
        while last.get("name") == "AND":
            last = last["children"][-1]
        found = None if last.get("name") == "OR" else find_equal_value(last)
        column, value = found or ("", None)
        text = str(value).upper()
        written = f"(({column} IS NOT NULL AND {text} IS NOT NULL AND {column} = {text}) OR "
        is_whole = given["text"] == f"{written}({column} IS NULL AND {text} IS NULL))"
        return found if is_whole and isinstance(value, bool) else None
    if not children or "column" not in children[0]:
        return None
    column = ".".join(children[0]["column"])
    if name == "IS_NULL":
        return column, None
    value = find_literal(children[1]) if name in {"=", "<=>"} else None
    is_null = name == "<=>" and "value" in children[1] and children[1]["value"] is None
    return (column, value) if is_null or value is not None else None


def find_literal(node: Node) -> Any:
    """Return the value of a literal; None for null, other expressions, types that are not converted, and far dates."""
    try:
        return convert_value(_parse_datatype_json_string(node["type"]), node["value"]) if "value" in node else None
    except OverflowError:  # a date after the year 9999
        return None


def convert_value(kind: T.DataType, value: Any) -> Any:
    """Convert a value as Spark holds it in rows and literals; None for null, and for types that are not converted."""
    for types, convert in _CONVERTERS:
        if isinstance(kind, types):
            return None if value is None else convert(value)
    return None


def to_exact_conjunction(given: Sequence[Node], fields: Mapping[str, DataField]) -> Predicate | None:
    """Return the predicate that is true for exactly the rows for which all given ones are; None if there is none."""
    if not all(_is_exact(one) for one in given):
        return None
    found = [to_predicate(one, fields) for one in given]
    return None if not found or None in found else And(tuple(found)) if len(found) > 1 else found[0]  # type: ignore[arg-type]


def _is_exact(given: Node) -> bool:
    """Return whether a predicate is converted as a whole, or not at all."""
    return given.get("name") not in {"AND", "OR"}


def format_condition(predicate: Predicate, columns: Sequence[str]) -> str | None:
    """Return a condition in Spark's SQL that is true wherever a predicate of `to_conjunction` is; None if none is."""
    if len({name.lower() for name in columns}) < len(columns):
        return None  # a name may be ambiguous
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    texts = [text for text in map(_format_exactly, parts) if text is not None]
    return " AND ".join(texts) or None


def _format_exactly(predicate: Predicate) -> str | None:
    match predicate:
        case And() | Or():
            parts = [_format_exactly(child) for child in predicate.children]
            word = " AND " if isinstance(predicate, And) else " OR "
            return None if None in parts else f"({word.join(map(str, parts))})"
        case Literal(value=bool()):
            return str(predicate.value)
        case Not():
            inner = _format_exactly(predicate.child)
            return None if inner is None else f"(NOT {inner})"
        case Compare():
            return _format_test(predicate.column, _SIGNS[predicate.op], (predicate.literal,))
        case In(negated=False):
            return _format_test(predicate.column, "IN", predicate.literals)
        case Like(negated=False, escape=None):
            return _format_test(predicate.column, "LIKE", (predicate.pattern,))
        case IsNull():
            return _format_test(predicate.column, "IS NOT NULL" if predicate.negated else "IS NULL", ())
    return None


def _format_test(column: str, test: str, values: Sequence[Any]) -> str | None:
    name, texts = column.replace("`", "``"), [_format_literal(value) for value in values]
    if None in texts:
        return None
    return f"(`{name}` {test} ({', '.join(map(str, texts))}))" if texts else f"(`{name}` {test})"


def _format_literal(value: Any) -> str | None:
    match value:
        case bool() | int():
            return str(value)
        case Decimal():
            return f"{value:f}BD"
        case datetime.date():
            return f"DATE'{value}'"
        case str() if not _AMBIGUOUS.intersection(value):
            return f"'{value}'"
    return None
