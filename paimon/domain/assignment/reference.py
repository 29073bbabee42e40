"""One row's value of an expression: the readable twin of `columnar`.

Law: whole numbers are 64 bits wide and never wrap; with a DECIMAL they are exact; with FLOAT or DOUBLE, and in every
division, numbers are doubles. A null anywhere gives null. What is put into a column fits it: a DECIMAL is rounded half
up to its scale, a FLOAT to its precision, nothing else is rounded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from typing import Any

from paimon.domain.assignment.expression import (
    Arithmetic,
    ColumnValue,
    Constant,
    Expression,
    Operation,
    misfit,
)
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.literals import literal
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    BigIntType,
    DataField,
    DecimalType,
    DoubleType,
    FloatType,
)

_EXACT = Context(prec=MAX_PREC, Emax=10**17, Emin=-(10**17))
_DIGITS = 76


def assigned(expression: Expression, row: Mapping[str, Any], column: DataField) -> Any:
    """The internal value that the column gets in a row of internal values.

    Raises
    ------
    InvalidRequest
        The value cannot be computed, or does not fit the column.
    """
    match expression:
        case Constant(value=value):
            return literal(value, column.type)
        case ColumnValue(name=name):
            return row[name]
    return _fitted(_number(expression, row), column)


def _number(expression: Expression, row: Mapping[str, Any]) -> int | Decimal | float | None:
    match expression:
        case Arithmetic(operation=operation, left=left, right=right):
            return _combined(operation, _number(left, row), _number(right, row))
        case Constant(value=value) | ColumnValue(name=value):
            number = row[value] if isinstance(expression, ColumnValue) else value
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | Decimal | float)):
                raise InvalidRequest(f"{number!r} is no number", subject=str(number))
            return number
    raise InvalidRequest(f"{expression!r} is no number")


def _combined(operation: Operation, left: Any, right: Any) -> int | Decimal | float | None:
    if left is None or right is None:
        return None
    if operation is Operation.DIVIDE:
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            raise InvalidRequest("decimals are not divided", hint="multiply by a decimal fraction")
        if right == 0:
            raise InvalidRequest("division by zero")
        return float(left) / float(right)
    if isinstance(left, float) or isinstance(right, float):
        return float(_of(operation, float(left), float(right)))
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _of_decimals(operation, Decimal(left), Decimal(right))
    number: int = _of(operation, left, right)
    literal(number, BigIntType())  # refuses what needs more than 64 bits
    return number


def _of(operation: Operation, left: Any, right: Any) -> Any:
    match operation:
        case Operation.ADD:
            return left + right
        case Operation.SUBTRACT:
            return left - right
    return left * right


def _of_decimals(operation: Operation, left: Decimal, right: Decimal) -> Decimal:
    match operation:
        case Operation.ADD:
            number = _EXACT.add(left, right)
        case Operation.SUBTRACT:
            number = _EXACT.subtract(left, right)
        case _:
            number = _EXACT.multiply(left, right)
    if number.adjusted() >= _DIGITS:
        raise InvalidRequest(f"{number} has more than {_DIGITS} digits")
    return number


def _fitted(number: int | Decimal | float | None, column: DataField) -> Any:
    kind = column.type
    if number is None:
        return None
    if isinstance(kind, DecimalType) and not isinstance(number, float):
        exact = Decimal(number).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _EXACT)
        return literal(exact, kind)
    if isinstance(kind, INTEGER_TYPES):
        if number != int(number):
            raise misfit(column)
        return literal(int(number), kind)
    if isinstance(kind, FloatType):
        return _single(float(number))
    if isinstance(kind, DoubleType):
        return float(number)
    raise misfit(column)


def _single(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
