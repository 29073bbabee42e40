"""Find the files that can contain a row that a predicate selects, by the statistics of all files at once.

Invariant: A file is marked unless its statistics prove that the predicate is true for none of its rows. The result
equals `prune_file.may_match` for each file. Truncated bounds are not always values of the file. An unknown
statistic proves nothing.
Source: `LeafPredicate.test(rowCount, …)`.
"""

# The statistics of all files are arrays, and a predicate becomes one mask for each of its nodes. For `a > 10 AND b IS
# NULL`:
#
#     file   a: min max   a: known   b: nulls   rows      a > 10     b IS NULL   AND
#       1        1   9      yes          0        5        no          no        no
#       2        5  20      yes          2        5        yes         yes       yes
#       3        ?   ?      no          -1        5        yes         yes       yes     unknown: not proven
#       4        -   -      no           5        5        no          yes       no      all values of a are null
#
# A mask means "can be true for a row". So it is wide: a node may be marked although no row fits, but never the other
# way round. NOT cannot be the complement of such a mask (a > 10 can be true for file 2, and so can its opposite), so it
# is pushed down to the leaves first (`_negate_predicate`), by the rules of three-valued logic.
#
# Values are compared as ordinals: integers or byte strings with the order of the type. Decimals are unscaled integers;
# a literal with more digits than the scale has no ordinal, and prunes nothing. Integers beyond 64 bits are compared as
# Python objects. A bound can be shorter than the value that it bounds, because long texts are truncated: it still
# is a bound, and only equality with one value (`_may_differ`) needs both bounds.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.columns.java_float_order import to_float_ordinal
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.types.arrow_arrays import TRUE, make_scalar, to_numpy
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    INTEGER_TYPES,
    TIMESTAMP_TYPES,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimeType,
)

Mask = npt.NDArray[np.bool_]
Ordinals: TypeAlias = Any
"""Values in a form with the same order: integers (numpy int64 or Python's), or byte strings (Arrow binary)."""

_INTEGER_ORDINALS = (*INTEGER_TYPES, BooleanType, DateType, TimeType, *TIMESTAMP_TYPES)


@frozen(eq=False)
class Bounds:
    """Statistics of one column in many files. All attributes are parallel, with one value for each file."""

    # the bounds of the values that are not null
    lower: Ordinals
    upper: Ordinals
    # False if the bound is unknown, so that its value has no meaning
    lower_known: Mask
    # as `lower_known`
    upper_known: Mask
    # -1 if unknown
    null_counts: npt.NDArray[np.int64]


def ordinal(value: Any, data_type: DataType) -> int | bytes | None:
    """Return the ordinal of an internal value among the values of its column; None if it has none."""
    if isinstance(data_type, _INTEGER_ORDINALS):
        return int(value)
    if isinstance(data_type, FloatType | DoubleType):
        return to_float_ordinal(float(value))
    if isinstance(data_type, CHARACTER_TYPES):
        return str(value).encode()
    if isinstance(data_type, BYTES_TYPES):
        return bytes(value)
    if isinstance(data_type, DecimalType):
        return _to_unscaled(Decimal(value), data_type.scale)
    return None


def _to_unscaled(value: Decimal, scale: int) -> int | None:
    """Return a value in units of ``10**-scale``, or None; without a decimal context, which rounds."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    shift = int(exponent) + scale
    whole: int
    whole, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if rest:
        return None
    return -whole if sign else whole


def may_match_mask(
    predicate: Predicate,
    columns: Mapping[str, Bounds],
    types: Mapping[str, DataType],
    row_counts: npt.NDArray[np.int64],
) -> Mask:
    """Mark the files that can contain a row for which the bound predicate is true; never a file without rows.

    `types` covers the columns that the predicate names. A column that is missing in `columns` is unknown.
    """
    return _Files(columns, types, row_counts).mask_matching(predicate) & (row_counts > 0)


@frozen(eq=False)
class _Files:
    """The statistics of all files, on which one predicate is evaluated."""

    columns: Mapping[str, Bounds]
    types: Mapping[str, DataType]
    row_counts: npt.NDArray[np.int64]

    def mask_matching(self, predicate: Predicate) -> Mask:
        """Mark the files that can contain a row for which this node is true."""
        match predicate:
            case Literal(value):
                return self._constant_mask(value is True)
            case And(children):
                return self._fold_children(np.logical_and, children, True)
            case Or(children):
                return self._fold_children(np.logical_or, children, False)
            case Not(child):
                return self.mask_matching(_negate_predicate(child))
            case IsNull(column, negated):
                return self._null_mask(column, negated)
            case Compare(column, op, literal):
                return self._comparison_mask(column, op, literal)
            case In(column, literals, negated):
                return self._in_mask(column, literals, negated)
            case Like(column, pattern, escape, negated):
                return self._like(column, None if negated else _like_prefix(pattern, escape))
        return self._constant_mask(True)

    def _constant_mask(self, value: bool) -> Mask:
        return np.full(len(self.row_counts), value)

    def _fold_children(self, fold: Callable[[Mask, Mask], Mask], children: Sequence[Predicate], start: bool) -> Mask:
        mask = self._constant_mask(start)
        for child in children:
            mask = fold(mask, self.mask_matching(child))
        return mask

    def _bounds(self, column: str) -> Bounds | None:
        return self.columns.get(column) if column in self.types else None

    def _null_mask(self, column: str, negated: bool) -> Mask:
        bounds = self._bounds(column)
        if bounds is None:
            return self._constant_mask(True)
        if negated:
            return np.less(bounds.null_counts, self.row_counts)
        return np.not_equal(bounds.null_counts, 0)

    def _comparison_mask(self, column: str, op: Operator, literal: Any) -> Mask:
        if literal is None:
            return self._constant_mask(False)
        bounds = self._bounds(column)
        if bounds is None:
            return self._constant_mask(True)
        value = ordinal(literal, self.types[column])
        fits = self._constant_mask(True) if value is None else _TESTS[op](bounds, value)
        return self._null_mask(column, negated=True) & fits

    def _in_mask(self, column: str, literals: Sequence[Any], negated: bool) -> Mask:
        if not negated:
            return self._fold_children(np.logical_or, [Compare(column, Operator.EQ, v) for v in literals], False)
        unequal = self._fold_children(np.logical_and, [Compare(column, Operator.NE, v) for v in literals], True)
        return self._null_mask(column, negated=True) & unequal

    def _like(self, column: str, prefix: str | None) -> Mask:
        bounds = self._bounds(column)
        if bounds is None:
            return self._constant_mask(True)
        if not prefix or not isinstance(self.types[column], CHARACTER_TYPES):
            return self._null_mask(column, negated=True)
        low = prefix.encode()
        fits = _compare_upper(pc.greater_equal, bounds, low)
        after = _next_prefix(low)
        if after is not None:
            fits &= _compare_lower(pc.less, bounds, after)
        return self._null_mask(column, negated=True) & fits


def _negate_predicate(predicate: Predicate) -> Predicate:
    """Return a predicate that is true exactly where the given one is false."""
    match predicate:
        case Literal(value):
            return Literal(None if value is None else not value)
        case And(children):
            return Or(tuple(map(_negate_predicate, children)))
        case Or(children):
            return And(tuple(map(_negate_predicate, children)))
        case Not(child):
            return child
        case IsNull(column, negated):
            return IsNull(column, not negated)
        case Compare(column, op, literal):
            return Compare(column, _OPPOSITE[op], literal)
        case In(column, literals, negated):
            return In(column, literals, not negated)
        case Like(column, pattern, escape, negated):
            return Like(column, pattern, escape, not negated)
    return Literal(True)


_OPPOSITE: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}

_NUMPY: Mapping[Any, Callable[[Any, Any], Any]] = {
    pc.less: np.less,
    pc.less_equal: np.less_equal,
    pc.greater: np.greater,
    pc.greater_equal: np.greater_equal,
    pc.equal: np.equal,
}


def _compare(kernel: Callable[..., Any], values: Ordinals, value: int | bytes) -> Mask:
    if isinstance(values, pa.Array):
        return to_numpy(kernel(values, make_scalar(value, pa.binary())).fill_null(TRUE))
    if isinstance(value, bytes) or not -(2**63) <= value < 2**63:
        values = values.astype(object)
    return np.asarray(_NUMPY[kernel](values, value), dtype=bool)


def _compare_known(kernel: Callable[..., Any], values: Ordinals, known: Mask, value: int | bytes) -> Mask:
    """Compare only if any value is known; values that are all unknown can have another type than the literal."""
    return _compare(kernel, values, value) if bool(known.any()) else known


def _compare_lower(kernel: Callable[..., Any], bounds: Bounds, value: int | bytes) -> Mask:
    return _compare_known(kernel, bounds.lower, bounds.lower_known, value) | ~bounds.lower_known


def _compare_upper(kernel: Callable[..., Any], bounds: Bounds, value: int | bytes) -> Mask:
    return _compare_known(kernel, bounds.upper, bounds.upper_known, value) | ~bounds.upper_known


def _may_differ(bounds: Bounds, value: int | bytes) -> Mask:
    both = bounds.lower_known & bounds.upper_known
    equal = (_compare_known(pc.equal, bound, both, value) for bound in (bounds.lower, bounds.upper))
    found: Mask = ~np.logical_and.reduce([both, *equal])
    return found


_TESTS: Mapping[Operator, Callable[[Bounds, int | bytes], Mask]] = {
    Operator.EQ: lambda b, value: _compare_lower(pc.less_equal, b, value) & _compare_upper(pc.greater_equal, b, value),
    Operator.NE: _may_differ,
    Operator.LT: lambda b, value: _compare_lower(pc.less, b, value),
    Operator.LE: lambda b, value: _compare_lower(pc.less_equal, b, value),
    Operator.GT: lambda b, value: _compare_upper(pc.greater, b, value),
    Operator.GE: lambda b, value: _compare_upper(pc.greater_equal, b, value),
}


def _like_prefix(pattern: str, escape: str | None) -> str:
    """Return the text with which every match begins."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            character = next(characters, "")
        elif character in "%_":
            break
        parts.append(character)
    return "".join(parts)


def _next_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest byte string that is larger than all with this prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
