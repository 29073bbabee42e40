"""Evaluate the expression of an update on one row: the reference for `evaluate_columnar`.

Invariant: Integers have 64 bits and never overflow silently; a longer constant is a DECIMAL. Together with a DECIMAL
they are exact. Together with FLOAT or DOUBLE, and in a division, numbers are doubles; a division of a DECIMAL is
refused. A null operand makes the result null. A DECIMAL is rounded half up to the scale of its column, and a FLOAT to
single precision; a number beyond the largest FLOAT is refused. Nothing else is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from typing import Any

from paimon.domain.assignment.expression import (
    MOST_DIGITS,
    Arithmetic,
    ColumnDefault,
    ColumnValue,
    Constant,
    Expression,
    Operation,
    check_digits,
    misfit_error,
    read_constant,
    to_single,
)
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.literals import parse_literal
from paimon.domain.types.data_types import INTEGER_TYPES, BigIntType, DataField, DecimalType, DoubleType, FloatType

_EXACT = Context(prec=MAX_PREC, Emax=10**17, Emin=-(10**17))


def evaluate_assignment(expression: Expression, row: Mapping[str, Any], column: DataField) -> Any:
    """Return the new internal value of a column in one row; None is null.

    `row` holds the internal values before the update by column name. A value that cannot be computed, or does not fit
    the column, raises `InvalidRequest`.
    """
    match expression:
        case Constant(value=value):
            return read_constant(value, column)
        case ColumnDefault():
            return read_constant(column.default_value, column)
        case ColumnValue(name=name):
            return row[name]
    return _fit_to_column(_evaluate_number(expression, row), column)


def _evaluate_number(expression: Expression, row: Mapping[str, Any]) -> int | Decimal | float | None:
    match expression:
        case Arithmetic(operation=operation, left=left, right=right):
            return _apply_operation(operation, _evaluate_number(left, row), _evaluate_number(right, row))
        case Constant(value=value) | ColumnValue(name=value):
            number = row[value] if isinstance(expression, ColumnValue) else value
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | Decimal | float)):
                raise InvalidRequest(f"{number!r} is not a number", subject=str(number))
            if number is not None and isinstance(expression, Constant):
                check_digits(number)
                return Decimal(number) if isinstance(number, int) and number.bit_length() > 63 else number
            return number
    raise InvalidRequest(f"{expression!r} is not a number")


def _apply_operation(operation: Operation, left: Any, right: Any) -> int | Decimal | float | None:
    if left is None or right is None:
        return None
    if operation is Operation.DIVIDE:
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            raise InvalidRequest(
                "DECIMAL values cannot be divided", hint="multiply by a decimal fraction: x * 0.5 instead of x / 2"
            )
        if right == 0:
            raise InvalidRequest("The divisor is zero")
        return float(left) / float(right)
    if isinstance(left, float) or isinstance(right, float):
        return float(_compute(operation, float(left), float(right)))
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _compute_decimal(operation, Decimal(left), Decimal(right))
    number: int = _compute(operation, left, right)
    parse_literal(number, BigIntType())  # refuses numbers that need more than 64 bits
    return number


def _compute(operation: Operation, left: Any, right: Any) -> Any:
    match operation:
        case Operation.ADD:
            return left + right
        case Operation.SUBTRACT:
            return left - right
    return left * right


def _compute_decimal(operation: Operation, left: Decimal, right: Decimal) -> Decimal:
    match operation:
        case Operation.ADD:
            number = _EXACT.add(left, right)
        case Operation.SUBTRACT:
            number = _EXACT.subtract(left, right)
        case _:
            number = _EXACT.multiply(left, right)
    if number.adjusted() >= MOST_DIGITS:
        raise InvalidRequest(f"Number {number} has more than {MOST_DIGITS} digits")
    return number


def _fit_to_column(number: int | Decimal | float | None, column: DataField) -> Any:
    kind = column.type
    if number is None:
        return None
    if isinstance(kind, DecimalType) and not isinstance(number, float):
        exact = Decimal(number).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _EXACT)
        return parse_literal(exact, kind)
    if isinstance(kind, INTEGER_TYPES):
        if (isinstance(number, float) and not math.isfinite(number)) or number != int(number):
            raise misfit_error(column)
        return parse_literal(int(number), kind)
    if isinstance(kind, FloatType):
        return to_single(float(number), column)
    if isinstance(kind, DoubleType):
        return float(number)
    raise misfit_error(column)
