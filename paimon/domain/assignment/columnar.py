"""The values of an expression for many rows: the fast twin of `reference`.

Law: for every row it answers what the reference answers, and refuses what the reference refuses.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.assignment.expression import Arithmetic, ColumnValue, Constant, Expression, Operation, misfit
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.values import literal, to_array
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import INTEGER_TYPES, DataField, DecimalType, DoubleType, FloatType

_LONG_DIGITS = 19
_MOST_DIGITS = 76
_KERNELS = {
    Operation.ADD: pc.add_checked,
    Operation.SUBTRACT: pc.subtract_checked,
    Operation.MULTIPLY: pc.multiply_checked,
    Operation.DIVIDE: pc.divide_checked,
}


def assigned_column(expression: Expression, rows: pa.RecordBatch, column: DataField) -> pa.Array:
    """What the column gets in each row: an array that its type accepts.

    Raises
    ------
    InvalidRequest
        A value cannot be computed, or does not fit the column.
    """
    match expression:
        case Constant(value=value):
            cell = to_array([literal(value, column.type)], column.type)
            return pa.repeat(cell[0], rows.num_rows) if value is not None else pa.nulls(rows.num_rows, cell.type)
        case ColumnValue(name=name):
            return rows[name]
    try:
        return _fitted(_numbers(expression, rows), column)
    except pa.ArrowException as error:
        raise InvalidRequest(f"column {column.name!r} cannot be set: {error}", subject=column.name) from error


def _numbers(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Numbers as 64-bit integers, doubles, or decimals of 256 bits."""
    match expression:
        case Arithmetic(operation=operation, left=left, right=right):
            return _combined(operation, _numbers(left, rows), _numbers(right, rows))
        case ColumnValue(name=name):
            return _number(rows[name], name)
        case Constant(value=bool() as value):
            raise InvalidRequest(f"{value!r} is no number", subject=str(value))
        case Constant(value=None):
            return pa.nulls(rows.num_rows, pa.int64())
        case Constant(value=int() | float() | Decimal() as value):
            cell = pa.array([value])
            return pa.repeat(_number(cell, str(value))[0], rows.num_rows)
    raise InvalidRequest(f"{getattr(expression, 'value', expression)!r} is no number")


def _number(values: pa.Array, name: str) -> pa.Array:
    kind = values.type
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return values.cast(pa.decimal256(kind.precision, kind.scale))
    raise InvalidRequest(f"{name!r} is no number but {kind}", subject=name)


def _combined(operation: Operation, left: pa.Array, right: pa.Array) -> pa.Array:
    kinds = (left.type, right.type)
    exact = any(pa.types.is_decimal(k) for k in kinds)
    if operation is Operation.DIVIDE and exact:
        raise InvalidRequest("decimals are not divided", hint="multiply by a decimal fraction")
    if operation is Operation.DIVIDE or any(pa.types.is_floating(k) for k in kinds):
        left, right = (v.cast(pa.float64(), safe=False) for v in (left, right))
    elif exact:
        left, right = (
            v if pa.types.is_decimal(v.type) else v.cast(pa.decimal256(_LONG_DIGITS, 0)) for v in (left, right)
        )
    return _KERNELS[operation](left, right)


def _fitted(numbers: pa.Array, column: DataField) -> pa.Array:
    kind, target = column.type, arrow_type(column.type)
    if isinstance(kind, DecimalType) and not pa.types.is_floating(numbers.type):
        if not pa.types.is_decimal(numbers.type):
            numbers = numbers.cast(pa.decimal256(_MOST_DIGITS, kind.scale))
        elif numbers.type.scale > kind.scale:
            numbers = pc.round(numbers.cast(pa.decimal256(_MOST_DIGITS, numbers.type.scale)), kind.scale,
                               "half_towards_infinity")  # fmt: skip
        return numbers.cast(target)
    if isinstance(kind, INTEGER_TYPES):
        return numbers.cast(target)
    if isinstance(kind, FloatType | DoubleType):
        return numbers.cast(pa.float64(), safe=False).cast(target, safe=False)
    raise misfit(column)
