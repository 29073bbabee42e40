"""Conditions of pyarrow as trees, decoded from the form in which pyarrow pickles them.

Invariant: a tree has the meaning of the whole expression. What cannot be decoded has no tree (`None`), never a part.
Source: `Serialize` of `arrow/compute/expression.cc`.
"""

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

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import field, frozen

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
