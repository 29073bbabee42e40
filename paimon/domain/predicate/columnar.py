"""Predicates over whole columns.

Law: `evaluate` is true exactly for the rows for which `reference.matches` is True. Columns are canonical Arrow arrays,
looked up by name; the predicate is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.ordering import float_order, java_order
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.predicate.terms.fit import UNIT_NANOS
from paimon.domain.predicate.terms.like import Wildcard, parts_of
from paimon.domain.predicate.terms.paths import path_in, splits
from paimon.domain.predicate.transform import unknown_kind
from paimon.domain.types.arrow_arrays import FALSE, from_numpy, make_array, make_scalar

_KERNELS: Mapping[Operator, Callable[..., pa.Array]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


def evaluate(predicate: Predicate, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """Whether each row satisfies the bound predicate; no nulls, unknown counts as False."""
    if isinstance(rows, pa.Table):
        parts = [evaluate(predicate, batch) for batch in rows.to_batches()]
        return pa.concat_arrays(parts) if parts else make_array([], pa.bool_())
    truth = _truth(predicate, rows)
    if isinstance(truth, pa.Scalar):
        return from_numpy(np.full(rows.num_rows, truth.as_py() is True))
    return pc.fill_null(truth, FALSE) if truth.null_count else truth


def _truth(predicate: Predicate, rows: pa.RecordBatch) -> pa.Array | pa.Scalar:
    """True, False or null for each row; a scalar where it is the same for all."""
    match predicate:
        case Literal(value=value):
            return make_scalar(value, pa.bool_())
        case Compare(column=column, op=op, literal=literal):
            return _compare(_column(rows, column), op, literal)
        case In(column=column, literals=literals, negated=negated):
            return _negated(_in(_column(rows, column), literals), negated)
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            return _negated(_like(_column(rows, column), pattern, escape), negated)
        case IsNull(column=column, negated=negated):
            return _negated(pc.is_null(_column(rows, column)), negated)
        case And(children=children):
            return _joined(children, rows, pc.and_kleene, True)
        case Or(children=children):
            return _joined(children, rows, pc.or_kleene, False)
        case Not(child=child):
            return pc.invert(_truth(child, rows))
    raise unknown_kind(predicate)


def _joined(
    children: tuple[Predicate, ...], rows: pa.RecordBatch, join: Callable[..., pa.Array], start: bool
) -> pa.Array | pa.Scalar:
    whole: pa.Array | pa.Scalar = make_scalar(start, pa.bool_())
    for child in children:
        whole = join(whole, _truth(child, rows))
    return whole


def _negated(truth: pa.Array, negated: bool) -> pa.Array:
    return pc.invert(truth) if negated else truth


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    names = {column: position for position, column in enumerate(rows.schema.names)}
    column, rest = path_in(name, names)
    return _plain(_nested(rows.column(names[column]), rest, name))


def _nested(array: pa.Array, path: str | None, name: str) -> pa.Array:
    """The field at a path below a struct; null where the struct is null."""
    if path is None:
        return array
    inner = {array.type.field(i).name for i in range(array.type.num_fields)} if pa.types.is_struct(array.type) else ()
    for first, rest in ((path, None), *splits(path)):
        if first in inner:
            return _nested(pc.struct_field(array, [first]), rest, name)
    raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=f"{path!r} is no field of a ROW")


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _compare(array: pa.Array, op: Operator, literal: Any) -> pa.Array | pa.Scalar:
    if literal is None:
        return make_scalar(None, pa.bool_())
    if isinstance(literal, float) and literal == literal and literal != 0:
        return _compare_number(array, op, literal)
    values, literals = _ordered(array, (literal,))
    return _KERNELS[op](values, literals[0])


def _compare_number(array: pa.Array, op: Operator, literal: float) -> pa.Array:
    """Away from NaN and the zeros Arrow's order differs in one thing: NaN in the column is not above the literal."""
    number = make_scalar(literal, array.type)
    if op is Operator.GT:
        return pc.invert(pc.less_equal(array, number))
    if op is Operator.GE:
        return pc.invert(pc.less(array, number))
    return _KERNELS[op](array, number)


def _in(array: pa.Array, literals: tuple[Any, ...]) -> pa.Array:
    values, known = _ordered(array, tuple(v for v in literals if v is not None))
    found = pc.is_in(values, value_set=known) if len(known) else from_numpy(np.zeros(len(values), bool))
    unknown = pc.is_null(values)
    if None in literals:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, make_scalar(None, pa.bool_()), found)


def _ordered(array: pa.Array, literals: tuple[Any, ...]) -> tuple[pa.Array, pa.Array]:
    """The column and the literals as arrays of one type, on which Arrow's order is the format's."""
    kind = array.type
    if pa.types.is_floating(kind):
        dtype = np.float32 if pa.types.is_float32(kind) else np.float64
        keys = java_order(np.array(literals, dtype))
        return float_order(array), from_numpy(keys)
    if pa.types.is_timestamp(kind):
        return array, make_array([v // UNIT_NANOS[kind.unit] for v in literals], pa.int64()).cast(kind)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return array, make_array(literals, pa.int32()).cast(kind)
    return array, make_array(literals, kind)


def _like(array: pa.Array, pattern: str, escape: str | None) -> pa.Array:
    """LIKE by the cheapest kernel that does it."""
    parts = parts_of(pattern, escape)
    match parts:
        case ():
            return pc.equal(array, make_scalar("", array.type))
        case (str(text),):
            return pc.equal(array, make_scalar(text, array.type))
        case (Wildcard.MANY,):
            return pc.is_valid(array) if array.null_count == 0 else pc.equal(array, array)
        case (str(text), Wildcard.MANY):
            return pc.starts_with(array, text)
        case (Wildcard.MANY, str(text)):
            return pc.ends_with(array, text)
        case (Wildcard.MANY, str(text), Wildcard.MANY):
            return pc.match_substring(array, text)
    try:
        return pc.match_substring_regex(array, r"\A(?s:" + "".join(map(_regex, parts)) + r")\z")
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"LIKE {pattern[:80]!r} is too long", subject=pattern[:80], hint="simplify it") from error


def _regex(part: str | Wildcard) -> str:
    if isinstance(part, Wildcard):
        return ".*" if part is Wildcard.MANY else "."
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in part)
