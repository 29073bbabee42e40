"""Evaluate conditions and assigned expressions, parts of which may be scalar SQL or expressions of other libraries.

Invariant: the core computes what it can itself. Each such part becomes a computed column first, and the core evaluates
the rest over these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.evaluate_columnar import evaluate, read_path
from paimon.domain.predicate.expression import Compare, ForeignExpression, Operator, Predicate, ScalarSql, SqlCondition
from paimon.domain.predicate.foreign import PYARROW, evaluate_pyarrow
from paimon.domain.predicate.transform import map_leaves
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField
from paimon.operations.read.projection import resolve_paths
from paimon.ports.engine import Engine
from paimon.ports.expressions import ExpressionEvaluator

if TYPE_CHECKING:
    from paimon.domain.assignment.expression import Expression


def evaluate_condition(engine: Engine, condition: Predicate, rows: pa.RecordBatch) -> pa.BooleanArray:
    """Return for each row whether it satisfies a bound condition, without nulls: unknown counts as False."""
    computed: list[pa.Array] = []

    def compute(part: SqlCondition) -> Predicate:
        """Compute a scalar SQL expression, and return a condition on its column."""
        computed.append(_check_truth(part.expression, evaluate_sql(engine, part.expression, rows)))
        return Compare(_name_computed(len(computed) - 1), Operator.EQ, not part.negated)

    plain = map_leaves(condition, lambda leaf: leaf, compute)
    for position, values in enumerate(computed):
        rows = rows.append_column(_name_computed(position), values)
    return evaluate(plain, rows)


def _name_computed(position: int) -> str:
    return f"\0sql{position}"  # no column of a table contains a NUL


def _check_truth(expression: ScalarSql, values: pa.Array) -> pa.Array:
    if pa.types.is_null(values.type):
        return values.cast(pa.bool_())
    if not pa.types.is_boolean(values.type):
        raise _not_a_truth_error(expression, values.type)
    return values


def _not_a_truth_error(expression: ScalarSql, kind: pa.DataType) -> InvalidRequest:
    return InvalidRequest(
        f"{expression.kind} {expression.text!r} is not a condition, but a value of type {kind}",
        subject=expression.text,
        hint="compare it with a value",
    )


def evaluate_expression(engine: Engine, expression: Expression, rows: pa.RecordBatch, column: DataField) -> pa.Array:
    """Return the new values of a column for all rows, in a type that the column accepts."""
    from paimon.domain.assignment.evaluate_columnar import evaluate_column, fit_values  # loaded when rows are changed
    from paimon.domain.assignment.expression import SqlValue

    if isinstance(expression, SqlValue):
        return fit_values(evaluate_sql(engine, expression.expression, rows), column)
    return evaluate_column(expression, rows, column)


def evaluate_sql(engine: Engine, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
    """Return the value of a scalar SQL expression for each row; `rows` has at least one column."""
    columns = [read_path(rows, name) for name in expression.columns] or [rows.column(0)]
    batch = pa.RecordBatch.from_arrays(columns, list(expression.columns) or ["row"])
    if isinstance(expression, ForeignExpression) and expression.library == PYARROW:
        return evaluate_pyarrow(expression, batch)
    return _get_evaluator(engine, expression).evaluate(expression, batch)


def check_condition(engine: Engine, condition: Predicate, fields: Sequence[DataField]) -> None:
    """Check the scalar SQL expressions of a bound condition before rows are read."""

    def check(part: SqlCondition) -> Predicate:
        """Check one expression."""
        kind = find_sql_type(engine, part.expression, fields)
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise _not_a_truth_error(part.expression, kind)
        return part

    map_leaves(condition, lambda leaf: leaf, check)


def find_sql_type(engine: Engine, expression: ScalarSql, fields: Sequence[DataField]) -> pa.DataType:
    """Return the Arrow type of a scalar SQL expression."""
    paths = resolve_paths(fields, expression.columns)
    names = {name: arrow_type(path[-1].type) for name, path in zip(expression.columns, paths, strict=True)}
    schema = pa.schema(names or {"row": pa.int64()})
    if isinstance(expression, ForeignExpression) and expression.library == PYARROW:
        return evaluate_pyarrow(expression, pa.RecordBatch.from_pylist([], schema)).type
    return _get_evaluator(engine, expression).find_type(expression, schema)


def _get_evaluator(engine: Engine, expression: ScalarSql) -> ExpressionEvaluator:
    if engine.expressions is None:
        raise Unsupported(
            f"{expression.kind} {expression.text!r} without an evaluator of expressions",
            hint="set the field 'expressions' of the engine",
        )
    return engine.expressions
