"""Conditions of Polars as trees, read from the JSON in which Polars stores its expressions.

Invariant: a part that is not understood is the call of an unknown function, from which nothing is implied.
"""

# Polars has no public access to the nodes of an expression either; see `expression_tree.py`. Its JSON has them:
#
#     pl.col("a") > 1     {"BinaryExpr": {"left": {"Column": "a"}, "op": "Gt",
#                                         "right": {"Literal": {"Scalar": {"Int64": 1}}}}}
#
# JSON has no NaN and no infinity: such a number is null there, so it is not understood. Lists of values are streams of
# Arrow IPC, as arrays of bytes. Other releases of Polars may use other names, which cost pruning, never rows. The
# names of functions are those of `pyarrow.compute`, so that one set of rules (`implied.py`) serves both libraries.

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from paimon.domain.predicate.expression_tree import Call, Constant, Field, Node, call
from paimon.domain.row.binary_reader import to_decimal

UNKNOWN = Call("", ())
_OPERATORS: Mapping[str, str] = {
    "Eq": "equal",
    "NotEq": "not_equal",
    "Lt": "less",
    "LtEq": "less_equal",
    "Gt": "greater",
    "GtEq": "greater_equal",
    "And": "and_kleene",
    "LogicalAnd": "and_kleene",
    "Or": "or_kleene",
    "LogicalOr": "or_kleene",
}
_FUNCTIONS: Mapping[str, str] = {"IsNull": "is_null", "IsNotNull": "is_valid", "Not": "invert", "IsNan": "is_nan"}
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "Both": ("greater_equal", "less_equal"),
    "Left": ("greater_equal", "less"),
    "Right": ("greater", "less_equal"),
    "None": ("greater", "less"),
}
_UNITS: Mapping[str, str] = {"Nanoseconds": "ns", "Microseconds": "us", "Milliseconds": "ms"}
_MATCH, _EMIT_NULL = 0, 2


def decode_polars(text: bytes) -> Node:
    """Return the tree of an expression that Polars stored as JSON."""
    try:
        return _read_node(json.loads(text))
    except (ValueError, RecursionError):
        return UNKNOWN


def _read_node(node: Any) -> Node:
    match node:
        case {"Column": str(name)}:
            return Field((name,))
        case {"Literal": literal}:
            return _read_literal(literal)
        case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}} if operator in _OPERATORS:
            return call(_OPERATORS[operator], (_read_node(left), _read_node(right)))
        case {"Function": {"input": [column, *more], "function": {"Boolean": function}}}:
            return _read_boolean(function, _read_node(column), more)
        case {"Function": {"input": [column, prefix], "function": {"StringExpr": "StartsWith"}}}:
            return _read_prefix(_read_node(column), _read_node(prefix))
    return UNKNOWN


def _read_boolean(function: Any, column: Node, more: list[Any]) -> Node:
    match function:
        case str(name) if name in _FUNCTIONS and not more:
            return Call(_FUNCTIONS[name], (column,))
        case {"IsBetween": {"closed": str(closed)}} if closed in _BOUNDS and len(more) == 2:
            bounds = zip(_BOUNDS[closed], map(_read_node, more), strict=True)
            return Call("and_kleene", tuple(Call(operator, (column, bound)) for operator, bound in bounds))
        case {"IsIn": {"nulls_equal": bool(nulls_equal)}} if len(more) == 1:
            return _read_membership(column, more[0], nulls_equal)
    return UNKNOWN


def _read_membership(column: Node, values: Any, nulls_equal: bool) -> Node:
    match values:
        case {"Literal": {"Scalar": {"List": list(stored)}}}:
            try:
                with pa.ipc.open_stream(bytes(stored)) as reader:
                    found = reader.read_all().column(0).combine_chunks()
            except (pa.ArrowException, ValueError, TypeError):
                return UNKNOWN
            if pa.types.is_list(found.type) or pa.types.is_large_list(found.type):
                found = found.flatten()
            value_set = pa.scalar(found, pa.list_(found.type))
            behavior = pa.scalar(_MATCH if nulls_equal else _EMIT_NULL)
            return Call("is_in", (column,), {"value_set": value_set, "null_matching_behavior": behavior})
    return UNKNOWN


def _read_prefix(column: Node, prefix: Node) -> Node:
    if not isinstance(prefix, Constant) or not pa.types.is_string(prefix.scalar.type):
        return UNKNOWN
    return Call("starts_with", (column,), {"pattern": prefix.scalar, "ignore_case": pa.scalar(False)})


def _read_literal(literal: Any) -> Node:
    """Return a constant; unknown for a kind or a value that JSON does not hold."""
    match literal:
        case {"Scalar": {**entry}} | {"Dyn": {**entry}} if len(entry) == 1:
            ((kind, value),) = entry.items()
            make = _LITERALS.get(str(kind))
            try:
                return UNKNOWN if make is None or value is None else Constant(make(value))
            except (pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError):
                return UNKNOWN
    return UNKNOWN


def _make_time(value: Any) -> pa.Scalar:
    number, unit, zone = value
    name = zone["inner"] if isinstance(zone, dict) else zone
    return pa.scalar(number, pa.timestamp(_UNITS[unit], name))


def _make_decimal(value: Any) -> pa.Scalar:
    unscaled, precision, scale = value
    return pa.scalar(to_decimal(unscaled, scale), pa.decimal128(precision, scale))


def _make_integer(value: Any) -> pa.Scalar:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("no integer")
    return pa.scalar(value, pa.int64())


_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Int128", "Int")
_LITERALS: Mapping[str, Callable[[Any], pa.Scalar]] = {
    **dict.fromkeys(_INTEGERS, _make_integer),
    **dict.fromkeys(("Float32", "Float64", "Float"), lambda value: pa.scalar(float(value), pa.float64())),
    **dict.fromkeys(("String", "Str", "StringOwned"), lambda value: pa.scalar(value, pa.string())),
    **dict.fromkeys(("Binary", "BinaryOwned"), lambda value: pa.scalar(bytes(value), pa.binary())),
    **dict.fromkeys(("Datetime", "DatetimeOwned"), _make_time),
    "Boolean": lambda value: pa.scalar(value, pa.bool_()),
    "Date": lambda value: pa.scalar(value, pa.int32()).cast(pa.date32()),
    "Time": lambda value: pa.scalar(value, pa.int64()).cast(pa.time64("ns")),
    "Decimal": _make_decimal,
}
"""How the values of each kind of literal become constants."""
