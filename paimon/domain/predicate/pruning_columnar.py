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
        Bounds, meaningful where `known`.
    known : mask
        Where both bounds are known.
    null_counts : array
        Number of nulls, -1 where unknown.
    """

    lower: Ordinals
    upper: Ordinals
    known: Mask
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
        scaled = Decimal(value).scaleb(data_type.scale)
        return int(scaled) if scaled == scaled.to_integral_value() else None
    return None


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
    return _Files(columns, types, row_counts).marked(predicate)


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

    def _null(self, column: str, negated: bool) -> Mask:
        bounds = self.columns.get(column)
        if bounds is None:
            return self._all(True)
        if negated:
            return np.less(bounds.null_counts, self.row_counts)
        return np.not_equal(bounds.null_counts, 0)

    def _compared(self, column: str, op: Operator, literal: Any) -> Mask:
        if literal is None:
            return self._all(False)
        value = ordinal(literal, self.types[column]) if column in self.types else None
        bounds = self.columns.get(column)
        if bounds is None:
            return self._all(True)
        if value is None:
            return self._null(column, negated=True)
        return self._within(column, bounds, _TESTS[op](bounds, value))

    def _within(self, column: str, bounds: Bounds, fits: Mask) -> Mask:
        return self._null(column, negated=True) & (fits | ~bounds.known)

    def _among(self, column: str, literals: Sequence[Any], negated: bool) -> Mask:
        if not negated:
            given = [v for v in literals if v is not None]
            return self._folded(np.logical_or, [Compare(column, Operator.EQ, v) for v in given], False)
        if any(v is None for v in literals):
            return self._all(False)
        return self._folded(np.logical_and, [Compare(column, Operator.NE, v) for v in literals], True)

    def _like(self, column: str, prefix: str | None) -> Mask:
        bounds = self.columns.get(column)
        if bounds is None:
            return self._all(True)
        if not prefix or not isinstance(self.types.get(column), CHARACTER_TYPES):
            return self._null(column, negated=True)
        low = prefix.encode()
        fits = _compare(pc.greater_equal, bounds.upper, low)
        after = _after(low)
        if after is not None:
            fits &= _compare(pc.less, bounds.lower, after)
        return self._within(column, bounds, fits)


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
        return np.asarray(kernel(values, pa.scalar(value, pa.binary())).fill_null(True).to_numpy(zero_copy_only=False))
    if isinstance(value, bytes) or not -(2**63) <= value < 2**63:
        values = values.astype(object)
    return np.asarray(_NUMPY[kernel](values, value), dtype=bool)


def _equal_test(bounds: Bounds, value: int | bytes) -> Mask:
    return _compare(pc.less_equal, bounds.lower, value) & _compare(pc.greater_equal, bounds.upper, value)


def _unequal_test(bounds: Bounds, value: int | bytes) -> Mask:
    return ~(_compare(pc.equal, bounds.lower, value) & _compare(pc.equal, bounds.upper, value))


_TESTS: Mapping[Operator, Callable[[Bounds, int | bytes], Mask]] = {
    Operator.EQ: _equal_test,
    Operator.NE: _unequal_test,
    Operator.LT: lambda bounds, value: _compare(pc.less, bounds.lower, value),
    Operator.LE: lambda bounds, value: _compare(pc.less_equal, bounds.lower, value),
    Operator.GT: lambda bounds, value: _compare(pc.greater, bounds.upper, value),
    Operator.GE: lambda bounds, value: _compare(pc.greater_equal, bounds.upper, value),
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
