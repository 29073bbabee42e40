"""Conditions of pyarrow and Polars as trees, decoded from the forms in which both store their expressions.

pyarrow pickles an expression as a record batch, and Polars writes JSON.

Invariant: a tree has the meaning of the whole expression. What cannot be decoded of pyarrow has no tree (`None`), never
a part. A part of Polars that is not understood is the call of an unknown function, from which nothing is implied.
Source: `Serialize` of `arrow/compute/expression.cc`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.row.binary_row import to_decimal

# pyarrow has no public access to the nodes of an expression. Three of its forms contain them:
#
#     str(e)              elides the values of a long IN list and the names of a deep path, and does not quote names
#     e.to_substrait()    loses the values of IN, and refuses nanoseconds, LIKE and safe casts
#     pickle              complete: a file of Arrow IPC with one batch of one row
#
# The third is decoded here. Each literal, and the options of each call, are columns of the batch. The tree is in the
# metadata of its schema, in order, and a key can occur more than once:
#
#     (a > 1) & b     call and_kleene, call greater, field_ref a, literal 0, end greater, field_ref b, end and_kleene
#
# pyarrow returns such metadata as a dict, which keeps one value of each key. So the pairs are read from the flatbuffer
# of the schema message. A flatbuffer is a tree of offsets: a table begins with the distance to its vtable, which has
# the place of each field; a vector or a text begins with its length.


_MAGIC_BYTES = 8
_HEADER, _SCHEMA_METADATA, _KEY, _VALUE = 2, 2, 0, 1
"""Numbers of fields: the header of a message, the metadata of a schema, and the parts of a pair."""


@frozen
class Field:
    """A column, or a field inside a ROW column, by the names on its path."""

    path: tuple[str, ...]


@frozen
class Constant:
    """A literal with its Arrow type."""

    scalar: pa.Scalar


@frozen
class Call:
    """A call of a function of `pyarrow.compute`, by its name there."""

    function: str
    arguments: tuple[Node, ...]
    options: Mapping[str, pa.Scalar] = field(factory=dict)


Node: TypeAlias = Field | Constant | Call


_ASSOCIATIVE = frozenset(("and", "and_kleene", "or", "or_kleene"))


def call(function: str, arguments: tuple[Node, ...], options: Mapping[str, pa.Scalar] | None = None) -> Call:
    """Return the call of a function. `(a | b) | c` becomes one call with three arguments."""
    if function in _ASSOCIATIVE and any(isinstance(part, Call) and part.function == function for part in arguments):
        parts = (
            part.arguments if isinstance(part, Call) and part.function == function else (part,) for part in arguments
        )
        arguments = tuple(chain.from_iterable(parts))
    return Call(function, arguments, options or {})


def list_columns(node: Node) -> Iterator[str]:
    """Yield the names of the columns that a tree reads, in its order."""
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Field(path=path):
                yield path[0]
            case Call(arguments=arguments):
                waiting += reversed(arguments)


def find_columns(expression: Any) -> tuple[str, ...] | None:
    """Return the columns that an expression of pyarrow reads; None if they are not known."""
    try:
        (stored,) = expression.__reduce__()[1]
    except pa.ArrowNotImplementedError:
        return None
    tree = decode_expression(stored.to_pybytes())
    return None if tree is None else tuple(dict.fromkeys(list_columns(tree)))


def decode_expression(pickled: bytes) -> Node | None:
    """Return the tree of an expression that pyarrow pickled; None if this release of pyarrow uses another form."""
    try:
        with pa.ipc.open_file(pa.py_buffer(pickled)) as reader:
            batch = reader.get_batch(0)
        message = pa.ipc.read_message(pa.py_buffer(pickled)[_MAGIC_BYTES:])
        pairs = _read_pairs(message.metadata.to_pybytes())
        node = _read_node(pairs, batch)
        return node if next(pairs, None) is None else None
    except (pa.ArrowException, struct.error, ValueError, LookupError, StopIteration, TypeError):
        return None


def _read_node(pairs: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Node:
    """Return the node that begins here. A condition can be deeper than Python recurses, so its calls are a stack."""
    calls: list[tuple[str, list[Node], dict[str, pa.Scalar]]] = []
    while True:
        key, value = next(pairs)
        if key == "call":
            calls.append((value, [], {}))
            continue
        if key == "options":
            calls[-1][2].update(dict(batch.column(int(value))[0]))
            continue
        if key == "end":
            function, arguments, options = calls.pop()
            found: Node = call(function, tuple(arguments), options)
        else:
            found = _read_leaf(key, value, pairs, batch)
        if not calls:
            return found
        calls[-1][1].append(found)


def _read_leaf(key: str, value: str, pairs: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Node:
    if key == "literal":
        return Constant(batch.column(int(value))[0])
    if key == "field_ref":
        return Field((value,))
    if key == "nested_field_ref":
        return Field(tuple(_read_name(pairs) for _ in range(int(value))))
    raise ValueError(key)


def _read_name(pairs: Iterator[tuple[str, str]]) -> str:
    key, value = next(pairs)
    if key != "field_ref":
        raise ValueError(key)
    return value


def _read_pairs(message: bytes) -> Iterator[tuple[str, str]]:
    """Yield the metadata of the schema in a schema message, in order."""
    table = _follow(message, _find_field(message, _follow(message, 0), _HEADER))
    vector = _follow(message, _find_field(message, table, _SCHEMA_METADATA))
    for number in range(_read(message, "<I", vector)):
        pair = _follow(message, vector + 4 + 4 * number)
        yield _read_text(message, pair, _KEY), _read_text(message, pair, _VALUE)


def _read(message: bytes, form: str, position: int) -> int:
    (number,) = struct.unpack_from(form, message, position)
    return int(number)


def _follow(message: bytes, position: int) -> int:
    return position + _read(message, "<I", position)


def _find_field(message: bytes, table: int, number: int) -> int:
    vtable = table - _read(message, "<i", table)
    place = 4 + 2 * number
    offset = _read(message, "<H", vtable + place) if place < _read(message, "<H", vtable) else 0
    if not offset:
        raise ValueError("the schema has no metadata")
    return table + offset


def _read_text(message: bytes, table: int, number: int) -> str:
    start = _follow(message, _find_field(message, table, number))
    return message[start + 4 : start + 4 + _read(message, "<I", start)].decode()


def to_python(scalar: Any) -> Any:
    """Return the Python value of a literal; ValueError if Python has none."""
    try:
        return scalar.as_py()
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(str(error)) from error


# Polars has no public access to the nodes of an expression either; see `expression_tree.py`. Its JSON has them:
#
#     pl.col("a") > 1     {"BinaryExpr": {"left": {"Column": "a"}, "op": "Gt",
#                                         "right": {"Literal": {"Scalar": {"Int64": 1}}}}}
#
# JSON has no NaN and no infinity: such a number is null there, so it is not understood. Lists of values are streams of
# Arrow IPC, as arrays of bytes. Other releases of Polars may use other names, which cost pruning, never rows. The
# names of functions are those of `pyarrow.compute`, so that one set of rules (`implied.py`) serves both libraries.


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
        return _read_polars_node(json.loads(text))
    except (ValueError, RecursionError):
        return UNKNOWN


def _read_polars_node(node: Any) -> Node:
    match node:
        case {"Column": str(name)}:
            return Field((name,))
        case {"Literal": literal}:
            return _read_literal(literal)
        case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}} if operator in _OPERATORS:
            return call(_OPERATORS[operator], (_read_polars_node(left), _read_polars_node(right)))
        case {"Function": {"input": [column, *more], "function": {"Boolean": function}}}:
            return _read_boolean(function, _read_polars_node(column), more)
        case {"Function": {"input": [column, prefix], "function": {"StringExpr": "StartsWith"}}}:
            return _read_prefix(_read_polars_node(column), _read_polars_node(prefix))
    return UNKNOWN


def _read_boolean(function: Any, column: Node, more: list[Any]) -> Node:
    match function:
        case str(name) if name in _FUNCTIONS and not more:
            return Call(_FUNCTIONS[name], (column,))
        case {"IsBetween": {"closed": str(closed)}} if closed in _BOUNDS and len(more) == 2:
            bounds = zip(_BOUNDS[closed], map(_read_polars_node, more), strict=True)
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
