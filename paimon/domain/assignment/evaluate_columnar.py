"""Evaluate the expressions of an update on record batches.

Invariant: Each value and each refusal equals that of `evaluate_reference`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
    overflow_error,
    read_constant,
)
from paimon.domain.columns.accept import can_accept
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.evaluate_columnar import read_path
from paimon.domain.row.values import to_array
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import INTEGER_TYPES, DataField, DecimalType, DoubleType, FloatType
from paimon.domain.types.type_text import format_type

_NUMERIC_TYPES = (*INTEGER_TYPES, DecimalType, FloatType, DoubleType)
_LONG_DIGITS = 19
_KERNELS = {
    Operation.ADD: pc.add_checked,
    Operation.SUBTRACT: pc.subtract_checked,
    Operation.MULTIPLY: pc.multiply_checked,
    Operation.DIVIDE: pc.divide_checked,
}


def evaluate_column(expression: Expression, rows: pa.RecordBatch, column: DataField) -> pa.Array:
    """Return the new values of a column from the rows before; InvalidRequest for what does not fit."""
    match expression:
        case Constant(value=value):
            return _repeat_value(read_constant(value, column), column, rows.num_rows)
        case ColumnDefault():
            return _repeat_value(read_constant(column.default_value, column), column, rows.num_rows)
        case ColumnValue(name=name):
            return read_path(rows, name)
    try:
        return _fit_to_column(_evaluate_numbers(expression, rows), column)
    except pa.ArrowException as error:
        raise _not_set_error(column, error) from error


def fit_values(values: pa.Array, column: DataField) -> pa.Array:
    """Fit numbers to a column as arithmetic does, others of its type; InvalidRequest for other kinds."""
    kind = values.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    try:
        if is_number and isinstance(column.type, _NUMERIC_TYPES):
            return _fit_to_column(_to_number_array(values, column.name), column)
    except pa.ArrowException as error:
        raise _not_set_error(column, error) from error
    if is_number or not can_accept(column.type, kind):
        raise InvalidRequest(
            f"Column {column.name!r} of type {format_type(column.type)} cannot be set to a value of type {kind}",
            subject=column.name,
            hint=f"write CAST(… AS {format_type(column.type.with_nullable(True))})",
        )
    return values


def _not_set_error(column: DataField, error: Exception) -> InvalidRequest:
    return InvalidRequest(f"Column {column.name!r} cannot be set: {error}", subject=column.name)


def _repeat_value(value: Any, column: DataField, count: int) -> pa.Array:
    cell = to_array([value], column.type)
    return pa.nulls(count, cell.type) if value is None else pa.repeat(cell[0], count)


def _evaluate_numbers(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Evaluate to 64-bit integers, doubles, or decimals of 256 bits."""
    match expression:
        case Arithmetic(operation=operation, left=left, right=right):
            return _apply_operation(operation, _evaluate_numbers(left, rows), _evaluate_numbers(right, rows))
        case ColumnValue(name=name):
            return _to_number_array(read_path(rows, name), name)
        case Constant(value=bool() as value):
            raise InvalidRequest(f"{value!r} is not a number", subject=str(value))
        case Constant(value=None):
            return pa.nulls(rows.num_rows, pa.int64())
        case Constant(value=int() | float() | Decimal() as value):
            check_digits(value)
            is_wide = isinstance(value, int) and value.bit_length() > 63
            cell = pa.array([Decimal(value) if is_wide else value])
            return pa.repeat(_to_number_array(cell, str(value))[0], rows.num_rows)
    raise InvalidRequest(f"{getattr(expression, 'value', expression)!r} is not a number")


def _to_number_array(values: pa.Array, name: str) -> pa.Array:
    kind = values.type
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return values.cast(pa.decimal256(kind.precision, kind.scale))
    raise InvalidRequest(
        f"Column {name!r} has the type {kind}, and arithmetic needs numbers",
        subject=name,
        hint="write CAST(column AS BIGINT), or use a numeric column",
    )


def _apply_operation(operation: Operation, left: pa.Array, right: pa.Array) -> pa.Array:
    kinds = (left.type, right.type)
    exact = any(pa.types.is_decimal(k) for k in kinds)
    if operation is Operation.DIVIDE and exact:
        raise InvalidRequest(
            "DECIMAL values cannot be divided", hint="multiply by a decimal fraction: x * 0.5 instead of x / 2"
        )
    if operation is Operation.DIVIDE or any(pa.types.is_floating(k) for k in kinds):
        left, right = (v.cast(pa.float64(), safe=False) for v in (left, right))
    elif exact:
        left, right = (
            v if pa.types.is_decimal(v.type) else v.cast(pa.decimal256(_LONG_DIGITS, 0)) for v in (left, right)
        )
    return _KERNELS[operation](left, right)


def _fit_to_column(numbers: pa.Array, column: DataField) -> pa.Array:
    kind, target = column.type, arrow_type(column.type)
    if isinstance(kind, DecimalType) and not pa.types.is_floating(numbers.type):
        if not pa.types.is_decimal(numbers.type):
            numbers = numbers.cast(pa.decimal256(MOST_DIGITS, kind.scale))
        elif numbers.type.scale > kind.scale:
            numbers = pc.round(
                numbers.cast(pa.decimal256(MOST_DIGITS, numbers.type.scale)), kind.scale, "half_towards_infinity"
            )
        return numbers.cast(target)
    if isinstance(kind, INTEGER_TYPES):
        return numbers.cast(target)
    if isinstance(kind, FloatType | DoubleType):
        doubles = numbers.cast(pa.float64(), safe=False)
        made = doubles.cast(target, safe=False)
        overflows = pc.and_(pc.is_inf(made), pc.is_finite(doubles))
        if overflows.true_count:
            raise overflow_error(column, doubles.filter(overflows)[0].as_py())
        return made
    raise misfit_error(column)
