"""Conditions of Polars computed by Polars, which is loaded with the first one; SQL goes to another evaluator.

Invariant: an expression whose value depends on other rows, such as an aggregate, is refused, because rows come in
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Protocol

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra
from paimon.domain.predicate.expression import ForeignExpression, ScalarSql
from paimon.ports.expressions import ExpressionEvaluator

_TRUTH = "truth"


class SqlEvaluator(ExpressionEvaluator, Protocol):
    """An evaluator of SQL that survives a fork."""

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the objects of the parent process; called in a forked child."""


@frozen(eq=False)
class PolarsEvaluator:
    """`paimon.ports.expressions.ExpressionEvaluator` for expressions of Polars, and for SQL through `sql`."""

    sql: SqlEvaluator

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the objects of the parent process; called in a forked child."""
        self.sql.abandon(keep_for_ever)

    def find_type(self, expression: ScalarSql, schema: pa.Schema) -> pa.DataType:
        """Return the Arrow type of the values; an expression over several rows is InvalidRequest."""
        if not isinstance(expression, ForeignExpression):
            return self.sql.find_type(expression, schema)
        found = _compute(expression, pa.RecordBatch.from_pylist([], schema), is_checked=True)
        return found.type

    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        """Return the value of an expression for each row."""
        if not isinstance(expression, ForeignExpression):
            return self.sql.evaluate(expression, rows)
        return _compute(expression, rows)


def _compute(expression: ForeignExpression, rows: pa.RecordBatch, is_checked: bool = False) -> pa.Array:
    try:
        import polars as pl
    except ModuleNotFoundError as missing:
        raise missing_extra(f"Polars expression {expression.text!r}", "polars") from missing
    frame = pl.from_arrow(pa.Table.from_batches([rows.rename_columns(list(expression.names))]))
    try:
        condition = pl.Expr.deserialize(BytesIO(expression.stored))
        if is_checked:
            _check_row_wise(expression, condition, frame)
        return frame.select(condition.alias(_TRUTH)).to_series().to_arrow()
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise InvalidRequest(
            f"Expression {expression.text!r} cannot be computed: {what}",
            subject=expression.text,
            hint="compare each column with a value of its type; cast one of both otherwise",
        ) from error


def _check_row_wise(expression: ForeignExpression, condition: Any, frame: Any) -> None:
    """Refuse a condition that Polars does not push down to a source, because it needs more than one row."""
    from polars.io.plugins import register_io_source

    def read(*_: object) -> Iterator[Any]:
        """Yield no row."""
        yield frame

    plan = register_io_source(read, schema=frame.schema).filter(condition).explain()
    if plan.startswith("FILTER") or "SELECTION" not in plan:
        raise InvalidRequest(
            f"Expression {expression.text!r} is not computed from one row.",
            subject=expression.text,
            hint="aggregates, windows and shifts are not possible here; filter the frame after reading it",
        )
