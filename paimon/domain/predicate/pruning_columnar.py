"""Which of many files may hold a row that a predicate selects, told by their statistics, for all files at once.

Law: a file is marked unless its statistics prove that no row of it makes the predicate true; equals
`pruning.may_match` file by file. Bounds are bounds: truncated ones need not be values of the file; what is not known
proves nothing. Source: `LeafPredicate.test(rowCount, …)`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

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
"""Values as what sorts like them: whole numbers (numpy, int64 or Python's), or byte strings (Arrow binary)."""

_WHOLE = (*INTEGER_TYPES, BooleanType, DateType, TimeType, *TIMESTAMP_TYPES)


@frozen(eq=False)
class Bounds:
    """Statistics of one column in many files; all parts are parallel.

    Parameters
    ----------
    lower, upper : Ordinals
        Bounds.
    lower_known, upper_known : mask
        Where the bounds mean anything.
    null_counts : array
        Number of nulls, -1 where unknown.
    """

    lower: Ordinals
    upper: Ordinals
    lower_known: Mask
    upper_known: Mask
    null_counts: npt.NDArray[np.int64]


def ordinal(value: Any, data_type: DataType) -> int | bytes | None:
    """What an internal value sorts by, among values of its column; None where there is no such thing."""
    if isinstance(data_type, _WHOLE):
        return int(value)
    if isinstance(data_type, FloatType | DoubleType):
        return float_ordinal(float(value))
    if isinstance(data_type, CHARACTER_TYPES):
        return str(value).encode()
    if isinstance(data_type, BYTES_TYPES):
        return bytes(value)
    if isinstance(data_type, DecimalType):
        return _unscaled(Decimal(value), data_type.scale)
    return None


def _unscaled(value: Decimal, scale: int) -> int | None:
    """The value in steps of 10^-scale; None where it lies between two. Without a context, which would round."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    shift = int(exponent) + scale
    whole: int
    whole, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if rest:
        return None
    return -whole if sign else whole


def float_ordinal(value: float) -> int:
    """Java's order of doubles as whole numbers: -0.0 before 0.0, every NaN last."""
    if value != value:
        return 2**63 - 1
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & (2**63 - 1)) - 1


def may_match_mask(
    predicate: Predicate,
    columns: Mapping[str, Bounds],
    types: Mapping[str, DataType],
    row_counts: npt.NDArray[np.int64],
) -> Mask:
    """Marks the files that may hold a row for which the predicate is true.

    Parameters
    ----------
    predicate : Predicate
        Bound: literals are internal values.
    columns : mapping
        Statistics by column; a column that is not there is unknown.
    types : mapping
        Types of the columns that the predicate names.
    row_counts : array
        Rows of each file.
    """
    return _Files(columns, types, row_counts).marked(predicate) & (row_counts > 0)


@frozen(eq=False)
class _Files:
    columns: Mapping[str, Bounds]
    types: Mapping[str, DataType]
    row_counts: npt.NDArray[np.int64]

    def marked(self, predicate: Predicate) -> Mask:
        match predicate:
            case Literal(value):
                return self._all(value is True)
            case And(children):
                return self._folded(np.logical_and, children, True)
            case Or(children):
                return self._folded(np.logical_or, children, False)
            case Not(child):
                return self.marked(_negated(child))
            case IsNull(column, negated):
                return self._null(column, negated)
            case Compare(column, op, literal):
                return self._compared(column, op, literal)
            case In(column, literals, negated):
                return self._among(column, literals, negated)
            case Like(column, pattern, escape, negated):
                return self._like(column, None if negated else _prefix(pattern, escape))
        return self._all(True)

    def _all(self, value: bool) -> Mask:
        return np.full(len(self.row_counts), value)

    def _folded(self, fold: Callable[[Mask, Mask], Mask], children: Sequence[Predicate], start: bool) -> Mask:
        mask = self._all(start)
        for child in children:
            mask = fold(mask, self.marked(child))
        return mask

    def _bounds(self, column: str) -> Bounds | None:
        return self.columns.get(column) if column in self.types else None

    def _null(self, column: str, negated: bool) -> Mask:
        bounds = self._bounds(column)
        if bounds is None:
            return self._all(True)
        if negated:
            return np.less(bounds.null_counts, self.row_counts)
        return np.not_equal(bounds.null_counts, 0)

    def _compared(self, column: str, op: Operator, literal: Any) -> Mask:
        if literal is None:
            return self._all(False)
        bounds = self._bounds(column)
        if bounds is None:
            return self._all(True)
        value = ordinal(literal, self.types[column])
        fits = self._all(True) if value is None else _TESTS[op](bounds, value)
        return self._null(column, negated=True) & fits

    def _among(self, column: str, literals: Sequence[Any], negated: bool) -> Mask:
        if not negated:
            return self._folded(np.logical_or, [Compare(column, Operator.EQ, v) for v in literals], False)
        unequal = self._folded(np.logical_and, [Compare(column, Operator.NE, v) for v in literals], True)
        return self._null(column, negated=True) & unequal

    def _like(self, column: str, prefix: str | None) -> Mask:
        bounds = self._bounds(column)
        if bounds is None:
            return self._all(True)
        if not prefix or not isinstance(self.types[column], CHARACTER_TYPES):
            return self._null(column, negated=True)
        low = prefix.encode()
        fits = _upper(pc.greater_equal, bounds, low)
        after = _after(low)
        if after is not None:
            fits &= _lower(pc.less, bounds, after)
        return self._null(column, negated=True) & fits


def _negated(predicate: Predicate) -> Predicate:
    """A predicate that is true exactly where this one is false."""
    match predicate:
        case Literal(value):
            return Literal(None if value is None else not value)
        case And(children):
            return Or(tuple(map(_negated, children)))
        case Or(children):
            return And(tuple(map(_negated, children)))
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


def _known(kernel: Callable[..., Any], values: Ordinals, known: Mask, value: int | bytes) -> Mask:
    """The comparison where values are known; where none is, they need not even be of the value's kind."""
    return _compare(kernel, values, value) if bool(known.any()) else known


def _lower(kernel: Callable[..., Any], bounds: Bounds, value: int | bytes) -> Mask:
    return _known(kernel, bounds.lower, bounds.lower_known, value) | ~bounds.lower_known


def _upper(kernel: Callable[..., Any], bounds: Bounds, value: int | bytes) -> Mask:
    return _known(kernel, bounds.upper, bounds.upper_known, value) | ~bounds.upper_known


def _unequal(bounds: Bounds, value: int | bytes) -> Mask:
    both = bounds.lower_known & bounds.upper_known
    equal = (_known(pc.equal, bound, both, value) for bound in (bounds.lower, bounds.upper))
    found: Mask = ~np.logical_and.reduce([both, *equal])
    return found


_TESTS: Mapping[Operator, Callable[[Bounds, int | bytes], Mask]] = {
    Operator.EQ: lambda b, value: _lower(pc.less_equal, b, value) & _upper(pc.greater_equal, b, value),
    Operator.NE: _unequal,
    Operator.LT: lambda b, value: _lower(pc.less, b, value),
    Operator.LE: lambda b, value: _lower(pc.less_equal, b, value),
    Operator.GT: lambda b, value: _upper(pc.greater, b, value),
    Operator.GE: lambda b, value: _upper(pc.greater_equal, b, value),
}


def _prefix(pattern: str, escape: str | None) -> str:
    """The text that every match begins with."""
    kept: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            character = next(characters, "")
        elif character in "%_":
            break
        kept.append(character)
    return "".join(kept)


def _after(prefix: bytes) -> bytes | None:
    """The smallest byte string above all that begin with `prefix`; None where there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
