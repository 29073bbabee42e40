"""Find the conditions of this library that a condition of another library implies, in order to prune.

Invariant: the implied condition is true for each row for which the other library's condition is true, in the meaning of
pyarrow, Polars and DuckDB alike. It may be true for more rows, so it never replaces the condition.
"""

# The other library evaluates its whole condition on the rows that pruning leaves. So an implied condition needs no
# equality, only width. For `(d > 0.5) & (upper(s) == "A")`, where d is a DOUBLE:
#
#     d > 0.5                 d > 0.5               here NaN is the largest number, so this is also true for NaN
#     upper(s) == "A"         nothing               every row may fit
#     both                    d > 0.5
#     not both                nothing               NOT (a AND b) = NOT a OR NOT b, and one of them may be any row
#
# NOT is moved down to the leaves first: the negation of a wider condition is narrower. At a leaf the libraries differ:
#
#     zeros       -0.0 equals 0.0 for them, not for Java     `equate_zeros` writes both, as for SQL statements
#     NaN         pyarrow: each comparison but <> is false. Polars, DuckDB: NaN is the largest, and equals itself. So
#                 NOT (d > 0.5) includes NaN, and <> NaN is true for every number
#     FLOAT       the literal 0.1 is a DOUBLE, which no FLOAT equals: `f > 0.1` becomes `f >= float(0.1)`
#     null        unknown in all; but `is_in` with a null in its list selects nulls, and NOT is_in is true for them
#     timestamps  Polars compares different units in the coarser one, so the literal is a range one unit wide
#
# Values of other kinds than their column (a text for a date) are left out, because each library converts them by rules
# of its own.

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Operator, Or, Predicate
from paimon.domain.predicate.expression_tree import Call, Constant, Field, Node, to_python
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.predicate.transform import OPPOSITE
from paimon.domain.predicate.zero_order import equate_zeros, is_floating
from paimon.domain.row.literals import round_to_single
from paimon.domain.types.arrow import UNIT_NANOS, timestamp_unit
from paimon.domain.types.data_types import (
    BYTES_TYPES,
    CHARACTER_TYPES,
    INTEGER_TYPES,
    BooleanType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    LocalZonedTimestampType,
    RowType,
    TimestampType,
    TimeType,
)

Bind = Callable[[Predicate, Sequence[DataField]], Predicate]
"""`bind.bind`."""
_COMPARISONS: Mapping[str, Operator] = {
    "equal": Operator.EQ,
    "not_equal": Operator.NE,
    "less": Operator.LT,
    "less_equal": Operator.LE,
    "greater": Operator.GT,
    "greater_equal": Operator.GE,
}
_MIRRORED: Mapping[Operator, Operator] = {
    Operator.LT: Operator.GT,
    Operator.GT: Operator.LT,
    Operator.LE: Operator.GE,
    Operator.GE: Operator.LE,
}
_WITH_EQUAL: Mapping[Operator, Operator] = {Operator.LT: Operator.LE, Operator.GT: Operator.GE}
_OPTIONS: Mapping[str, frozenset[str]] = {
    "is_null": frozenset(("_type_name", "nan_is_null")),
    "is_in": frozenset(("_type_name", "value_set", "null_matching_behavior")),
    "starts_with": frozenset(("_type_name", "pattern", "ignore_case")),
    "match_like": frozenset(("_type_name", "pattern", "ignore_case")),
}
"""The options of each function that are understood."""
_MOST_LEVELS = 100
_OF_A_PATH = frozenset(".[")
"""Signs in a name for which this library may take it for a path."""
_EVERYTHING, _NOTHING = Literal(True), Literal(False)
_TIMESTAMPS = (TimestampType, LocalZonedTimestampType)
_NULLS_MATCH = 0
_LARGEST_SINGLE = float.fromhex("0x1.fffffep+127")
_NANOS_PER_SECOND = 1_000_000_000
_SECONDS_PER_DAY = 86_400
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


def imply_condition(node: Node, fields: Sequence[DataField], bind: Bind, negated: bool = False) -> Predicate | None:
    """Return a condition on `fields` implied by the tree, or by its negation if `negated`; None for all rows."""
    if _is_deep(node):
        return None
    found = _Implication(fields, bind).imply(node, negated)
    return None if found == _EVERYTHING else found


@frozen(eq=False)
class _Implication:
    fields: Sequence[DataField]
    bind: Bind

    def imply(self, node: Node, negated: bool) -> Predicate:
        """Return an implied condition, bound; it has no NOT."""
        match node:
            case Constant(scalar=scalar):
                return self._imply_constant(scalar, negated)
            case Field():
                return self._imply_leaf(node, lambda kind: Compare(_name(node), Operator.EQ, not negated), BooleanType)
        if not _OPTIONS.get(node.function, frozenset()).issuperset(node.options):
            return _EVERYTHING  # of another release, which may mean something else
        handler = _CALLS.get(node.function)
        if handler is not None:
            try:
                return handler(self, node, negated)
            except (ValueError, LookupError):  # other arguments than those of the function that is known here
                return _EVERYTHING
        operator = _COMPARISONS.get(node.function)
        return _EVERYTHING if operator is None else self._imply_comparison(node, operator, negated)

    @staticmethod
    def _imply_constant(scalar: pa.Scalar, negated: bool) -> Predicate:
        if not scalar.is_valid:
            return _NOTHING
        return Literal(scalar.as_py() != negated) if pa.types.is_boolean(scalar.type) else _EVERYTHING

    def _imply_both(self, node: Call, negated: bool) -> Predicate:
        return _join([self.imply(part, negated) for part in node.arguments], is_or=negated)

    def _imply_either(self, node: Call, negated: bool) -> Predicate:
        return _join([self.imply(part, negated) for part in node.arguments], is_or=not negated)

    def _imply_opposite(self, node: Call, negated: bool) -> Predicate:
        return self.imply(node.arguments[0], not negated)

    def _imply_choice(self, node: Call, negated: bool) -> Predicate:
        condition, then, otherwise = node.arguments
        first = _join([self.imply(condition, False), self.imply(then, negated)], is_or=False)
        return _join(
            [first, _join([self.imply(condition, True), self.imply(otherwise, negated)], is_or=False)], is_or=True
        )

    def _imply_null(self, node: Call, negated: bool) -> Predicate:
        return self._imply_null_test(node, wants_null=not negated)

    def _imply_valid(self, node: Call, negated: bool) -> Predicate:
        return self._imply_null_test(node, wants_null=negated)

    def _imply_null_test(self, node: Call, wants_null: bool) -> Predicate:
        (column,) = node.arguments
        if not isinstance(column, Field) or (node.options and node.options["nan_is_null"].as_py() is not False):
            return _EVERYTHING
        return self._imply_leaf(column, lambda kind: IsNull(_name(column), negated=not wants_null))

    def _imply_nan(self, node: Call, negated: bool) -> Predicate:
        (column,) = node.arguments
        if negated or not isinstance(column, Field):
            return _EVERYTHING
        return self._imply_leaf(
            column, lambda kind: Compare(_name(column), Operator.EQ, math.nan) if is_floating(kind) else _EVERYTHING
        )

    def _imply_membership(self, node: Call, negated: bool) -> Predicate:
        (column,) = node.arguments
        values = node.options.get("value_set")
        if not isinstance(column, Field) or values is None or not values.is_valid:
            return _EVERYTHING
        nulls_match = values.values.null_count > 0 and node.options["null_matching_behavior"].as_py() == _NULLS_MATCH
        known = [scalar for scalar in values.values if scalar.is_valid]

        def make_leaf(kind: DataType) -> Predicate:
            """Return the condition on the values of the list."""
            name, literals = _name(column), [_fit(scalar, kind) for scalar in known]
            if isinstance(kind, _TIMESTAMPS) and not all(is_exact for _, is_exact in literals):
                return _EVERYTHING
            if not negated:
                found = equate_zeros(In(name, tuple(value for value, _ in literals)), self.fields)
                return _join([found, IsNull(name)], is_or=True) if nulls_match else found
            exact = [value for value, is_exact in literals if is_exact and value == value]
            return _join([In(name, tuple(exact), negated=True), IsNull(name)], is_or=True) if exact else _EVERYTHING

        return self._imply_leaf(column, make_leaf)

    def _imply_pattern(self, node: Call, negated: bool) -> Predicate:
        (column,) = node.arguments
        ignores_case = node.options.get("ignore_case")
        pattern = node.options.get("pattern")
        if negated or not isinstance(column, Field) or pattern is None or ignores_case is None or ignores_case.as_py():
            return _EVERYTHING
        text = pattern.as_py()
        text = text.decode() if isinstance(text, bytes) else text
        prefix = text if node.function == "starts_with" else text.split("%")[0].split("_")[0].split("\\")[0]
        escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return self._imply_leaf(column, lambda kind: Like(_name(column), f"{escaped}%", "\\"), *CHARACTER_TYPES)

    def _imply_comparison(self, node: Call, operator: Operator, negated: bool) -> Predicate:
        if len(node.arguments) != 2:
            return _EVERYTHING
        left, right = node.arguments
        if isinstance(left, Constant):
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        if isinstance(right, Constant) and not right.scalar.is_valid:
            return _NOTHING  # unknown, also if it is negated
        if not isinstance(left, Field) or not isinstance(right, Constant):
            return _EVERYTHING
        column, scalar = left, right.scalar
        return self._imply_leaf(column, lambda kind: self._compare(_name(column), operator, scalar, kind, negated))

    def _compare(self, name: str, operator: Operator, scalar: pa.Scalar, kind: DataType, negated: bool) -> Predicate:
        value, is_exact = _fit(scalar, kind)
        wanted = OPPOSITE[operator] if negated else operator
        if isinstance(kind, _TIMESTAMPS) and not is_exact:
            return _compare_units(name, wanted, scalar, kind)
        if not is_floating(kind):
            return Compare(name, wanted, value)
        if value != value and (negated or wanted is Operator.NE):
            return IsNull(name, negated=True)
        if not is_exact:
            if wanted is Operator.NE:
                return IsNull(name, negated=True)
            wanted = _WITH_EQUAL.get(wanted, wanted)
        found = equate_zeros(Compare(name, wanted, value), self.fields)
        if negated and wanted in (Operator.LT, Operator.LE):  # for pyarrow no comparison of NaN is true
            return _join([found, Compare(name, Operator.EQ, math.nan)], is_or=True)
        return found

    def _imply_leaf(self, column: Field, make: Callable[[DataType], Predicate], *types: type[DataType]) -> Predicate:
        """Return a condition on one column, bound; everything if there is none that is surely wide enough."""
        if _is_ambiguous(column.path, self.fields):
            return _EVERYTHING
        try:
            kind = type_at(_name(column), self.fields)
            if types and not isinstance(kind, types):
                return _EVERYTHING
            return self.bind(make(kind), self.fields)
        except (InvalidRequest, ValueError):
            return _EVERYTHING


_CALLS: Mapping[str, Callable[[_Implication, Call, bool], Predicate]] = {
    "and": _Implication._imply_both,
    "and_kleene": _Implication._imply_both,
    "or": _Implication._imply_either,
    "or_kleene": _Implication._imply_either,
    "invert": _Implication._imply_opposite,
    "if_else": _Implication._imply_choice,
    "is_null": _Implication._imply_null,
    "is_valid": _Implication._imply_valid,
    "is_nan": _Implication._imply_nan,
    "is_in": _Implication._imply_membership,
    "starts_with": _Implication._imply_pattern,
    "match_like": _Implication._imply_pattern,
}


def _name(column: Field) -> str:
    return ".".join(column.path)


def _is_deep(node: Node) -> bool:
    """Return whether a tree is so deep that Python may not recurse to its leaves."""
    level = [node]
    for _ in range(_MOST_LEVELS):
        level = [argument for part in level if isinstance(part, Call) for argument in part.arguments]
        if not level:
            return False
    return True


def _is_ambiguous(path: tuple[str, ...], fields: Sequence[DataField]) -> bool:
    """Return whether this library may take the name of a path for another column: for a column called ``a.b``, too."""
    for part in path:
        if not _OF_A_PATH.isdisjoint(part) or any(field.name.startswith(f"{part}.") for field in fields):
            return True
        kind = next((field.type for field in fields if field.name == part), None)
        fields = kind.fields if isinstance(kind, RowType) else ()
    return False


def _compare_units(name: str, wanted: Operator, scalar: pa.Scalar, kind: DataType) -> Predicate:
    """Return a comparison that is wide enough if both sides are cut to the coarser unit, as Polars does."""
    if wanted is Operator.NE:
        return IsNull(name, negated=True)
    assert isinstance(kind, _TIMESTAMPS)
    unit = UNIT_NANOS[scalar.type.unit]
    slack = max(unit, UNIT_NANOS[timestamp_unit(kind.precision)])
    lower = Compare(name, Operator.GE, _to_timestamp_text(scalar.value * unit - slack))
    upper = Compare(name, Operator.LE, _to_timestamp_text(scalar.value * unit + slack))
    if wanted is Operator.EQ:
        return And((lower, upper))
    return lower if wanted in (Operator.GT, Operator.GE) else upper


def _join(parts: list[Predicate], is_or: bool) -> Predicate:
    """Combine conditions, and leave out constants."""
    absorbing, neutral = (_EVERYTHING, _NOTHING) if is_or else (_NOTHING, _EVERYTHING)
    kept = [part for part in parts if part != neutral]
    if absorbing in kept or not kept:
        return absorbing if kept else neutral
    return kept[0] if len(kept) == 1 else (Or if is_or else And)(tuple(kept))


def _fit(scalar: pa.Scalar, kind: DataType) -> tuple[Any, bool]:
    """Return a literal for `bind`, and whether the type holds it exactly; ValueError for another kind."""
    given = scalar.type
    if pa.types.is_dictionary(given):
        raise ValueError("a dictionary")
    if is_floating(kind):
        return _fit_floating(to_python(scalar), isinstance(kind, FloatType))
    if isinstance(kind, _TIMESTAMPS):
        if not pa.types.is_timestamp(given) or (given.tz is None) != isinstance(kind, TimestampType):
            raise ValueError("no timestamp of this kind")
        is_same_unit = given.unit == timestamp_unit(kind.precision)
        return _to_timestamp_text(scalar.value * UNIT_NANOS[given.unit]), is_same_unit
    if isinstance(kind, TimeType):
        if not pa.types.is_time(given):
            raise ValueError("no time of day")
        return _to_time_text(scalar.value * UNIT_NANOS[given.unit]), True  # Python has no nanoseconds
    if not any(isinstance(kind, types) and is_kind(given) for types, is_kind in _KINDS):
        raise ValueError("a literal of another kind")
    return to_python(scalar), True


def _fit_floating(value: Any, is_single: bool) -> tuple[float, bool]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no number, or a DECIMAL, which each library rounds in its own way")
    number = float(value)
    if number != number:
        return number, True
    if is_single and abs(number) > _LARGEST_SINGLE and not math.isinf(number):
        raise ValueError("beyond the largest FLOAT")
    rounded = round_to_single(number) if is_single else number
    return rounded, rounded == value


def _is_number(given: pa.DataType) -> bool:
    return bool(pa.types.is_integer(given) or pa.types.is_decimal(given))


def _is_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))


def _is_binary(given: pa.DataType) -> bool:
    return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given) or pa.types.is_binary_view(given))


_KINDS: Sequence[tuple[tuple[type[DataType], ...], Callable[[pa.DataType], bool]]] = (
    ((*INTEGER_TYPES, DecimalType), _is_number),
    (CHARACTER_TYPES, _is_text),
    (BYTES_TYPES, _is_binary),
    ((BooleanType,), pa.types.is_boolean),
    ((DateType,), pa.types.is_date32),
)
"""The literals that are of the kind of a column."""


def _to_time_text(nanos: int) -> str:
    """Return a time of day as text; ValueError beyond a day."""
    clock, fraction = divmod(nanos, _NANOS_PER_SECOND)
    if not 0 <= clock < _SECONDS_PER_DAY:
        raise ValueError("no time of day")
    return f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}.{fraction:09}"


def _to_timestamp_text(nanos: int) -> str:
    """Return a time in UTC as text; ValueError beyond the year 9999."""
    seconds, fraction = divmod(nanos, _NANOS_PER_SECOND)
    days, clock = divmod(seconds, _SECONDS_PER_DAY)
    try:
        day = datetime.date.fromordinal(days + _EPOCH_DAY)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    return f"{day.isoformat()} {_to_time_text(clock * _NANOS_PER_SECOND + fraction)}"
