"""Evaluate bound predicates on Arrow record batches, column by column.

Columns are canonical Arrow arrays that are looked up by name.

Invariant: `evaluate` returns true exactly for the rows for which `evaluate_row.matches` returns True.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_float_order import to_float_ordinals, to_ordinal_array
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.predicate.field_paths import read_key, resolve_column, split_path
from paimon.domain.predicate.like_patterns import Wildcard, parse_like
from paimon.domain.predicate.transform import unknown_predicate_error
from paimon.domain.types.arrow import UNIT_NANOS
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
    """Return for each row whether it satisfies the bound predicate, without nulls; unknown counts as False."""
    if isinstance(rows, pa.Table):
        parts = [evaluate(predicate, batch) for batch in rows.to_batches()]
        return pa.concat_arrays(parts) if parts else make_array([], pa.bool_())
    truth = _evaluate_batch(predicate, rows)
    if isinstance(truth, pa.Scalar):
        return from_numpy(np.full(rows.num_rows, truth.as_py() is True))
    return pc.fill_null(truth, FALSE) if truth.null_count else truth


def _evaluate_batch(predicate: Predicate, rows: pa.RecordBatch) -> pa.Array | pa.Scalar:
    """Return true, false or null for each row; a scalar if it is the same for all rows."""
    match predicate:
        case Literal(value=value):
            return make_scalar(value, pa.bool_())
        case Compare(column=column, op=op, literal=literal):
            return _compare(read_path(rows, column), op, literal)
        case In(column=column, literals=literals, negated=negated):
            return _negate_if(_is_in(read_path(rows, column), literals), negated)
        case Like(column=column, pattern=pattern, escape=escape, negated=negated):
            return _negate_if(_like(read_path(rows, column), pattern, escape), negated)
        case IsNull(column=column, negated=negated):
            return _negate_if(pc.is_null(read_path(rows, column)), negated)
        case And(children=children):
            return _join_truth(children, rows, pc.and_kleene, True)
        case Or(children=children):
            return _join_truth(children, rows, pc.or_kleene, False)
        case Not(child=child):
            return pc.invert(_evaluate_batch(child, rows))
    raise unknown_predicate_error(predicate)


def _join_truth(
    children: tuple[Predicate, ...], rows: pa.RecordBatch, join: Callable[..., pa.Array], start: bool
) -> pa.Array | pa.Scalar:
    whole: pa.Array | pa.Scalar = make_scalar(start, pa.bool_())
    for child in children:
        whole = join(whole, _evaluate_batch(child, rows))
    return whole


def _negate_if(truth: pa.Array, negated: bool) -> pa.Array:
    return pc.invert(truth) if negated else truth


def read_path(rows: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of a column, or at a path inside it; null where a row or map on the path is null."""
    names = {column: position for position, column in enumerate(rows.schema.names)}
    column, rest = resolve_column(name, names)
    return _decode_dictionary(_struct_field(rows.column(names[column]), rest, name))


def _struct_field(array: pa.Array, path: str | None, name: str) -> pa.Array:
    """Return the field at a path below a struct, or the value of a key; null where there is none."""
    if path is None:
        return array
    key = read_key(path)
    if key is not None and pa.types.is_map(array.type):
        return pc.map_lookup(array, make_scalar(key, array.type.key_type), "first")
    if key is not None:
        path = key
    inner = {array.type.field(i).name for i in range(array.type.num_fields)} if pa.types.is_struct(array.type) else ()
    for first, rest in ((path, None), *split_path(path)):
        if first in inner:
            return _struct_field(pc.struct_field(array, [first]), rest, name)
    raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=f"{path!r} is not a field of a ROW")


def _decode_dictionary(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _compare(array: pa.Array, op: Operator, literal: Any) -> pa.Array | pa.Scalar:
    if literal is None:
        return make_scalar(None, pa.bool_())
    if isinstance(literal, float) and literal == literal and literal != 0:
        return _compare_number(array, op, literal)
    values, literals = _to_ordered_arrays(array, (literal,))
    return _KERNELS[op](values, literals[0])


def _compare_number(array: pa.Array, op: Operator, literal: float) -> pa.Array:
    """Compare with a literal, neither NaN nor zero; unlike Java, Arrow's NaN is not larger than it."""
    number = make_scalar(literal, array.type)
    if op is Operator.GT:
        return pc.invert(pc.less_equal(array, number))
    if op is Operator.GE:
        return pc.invert(pc.less(array, number))
    return _KERNELS[op](array, number)


def _is_in(array: pa.Array, literals: tuple[Any, ...]) -> pa.Array:
    values, known = _to_ordered_arrays(array, tuple(v for v in literals if v is not None))
    found = pc.is_in(values, value_set=known) if len(known) else from_numpy(np.zeros(len(values), bool))
    unknown = pc.is_null(values)
    if None in literals:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, make_scalar(None, pa.bool_()), found)


def _to_ordered_arrays(array: pa.Array, literals: tuple[Any, ...]) -> tuple[pa.Array, pa.Array]:
    """Return the column and the literals as arrays of one type, in which Arrow's order is the format's."""
    kind = array.type
    if pa.types.is_floating(kind):
        dtype = np.float32 if pa.types.is_float32(kind) else np.float64
        keys = to_float_ordinals(np.array(literals, dtype))
        return to_ordinal_array(array), from_numpy(keys)
    if pa.types.is_timestamp(kind):
        return array, make_array([v // UNIT_NANOS[kind.unit] for v in literals], pa.int64()).cast(kind)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return array, make_array(literals, pa.int32()).cast(kind)
    return array, make_array(literals, kind)


def _like(array: pa.Array, pattern: str, escape: str | None) -> pa.Array:
    """Evaluate LIKE with the cheapest kernel that can do it."""
    parts = parse_like(pattern, escape)
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
        return pc.match_substring_regex(array, r"\A(?s:" + "".join(map(_to_regex, parts)) + r")\z")
    except pa.ArrowInvalid as error:
        raise InvalidRequest(
            f"LIKE pattern {pattern[:80]!r} is too long", subject=pattern[:80], hint="simplify it"
        ) from error


def _to_regex(part: str | Wildcard) -> str:
    if isinstance(part, Wildcard):
        return ".*" if part is Wildcard.MANY else "."
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in part)
