"""The port for scalar SQL expressions: functions, CASE, CAST, LIKE, arithmetic between columns, date functions.

Invariant: only the text of a caller becomes SQL. Rows and column names travel as Arrow data. Suite:
`paimon.testing.contracts.expressions`.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from paimon.domain.predicate.expression import ScalarSql


class ExpressionEvaluator(Protocol):
    """Computes scalar SQL expressions over Arrow rows. Implementations may be used by several threads concurrently."""

    def find_type(self, expression: ScalarSql, schema: pa.Schema) -> pa.DataType:
        """Return the Arrow type of the values of an expression, without rows.

        Ordering: none. Idempotent. Atomicity: nothing is stored.

        Parameters
        ----------
        expression : ScalarSql
            The expression to check.
        schema : pyarrow.Schema
            The columns that it may read, by the names in `expression.columns`.

        Returns
        -------
        pyarrow.DataType
            The type of the result.

        Raises
        ------
        InvalidRequest
            A function does not exist, types do not fit, or the expression is not computed from one row.
        Unsupported
            The evaluator cannot represent the type of a column that the expression reads.
        MissingExtra
            The package of the evaluator is not installed.
        """

    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        """Compute the value of an expression for each row.

        Ordering: the values have the order of the rows. Idempotent, except for functions such as ``random()``.
        Atomicity: nothing is stored. Dates and times of day are those of `expression.time_zone`, whatever the zone of
        the machine is. Instants that are returned have the zone UTC.

        Parameters
        ----------
        expression : ScalarSql
            The expression to compute. An expression of another library ignores the time zone.
        rows : pyarrow.RecordBatch
            At least one column, and each column of `expression.columns` by that name.

        Returns
        -------
        pyarrow.Array
            One value for each row. Its type depends on the schema of the rows only.

        Raises
        ------
        InvalidRequest
            As `find_type`; or a value cannot be computed, such as a CAST of a text that is not a number, or in a time
            zone that is not known.
        Unsupported
            The evaluator cannot represent the type of a column that the expression reads.
        MissingExtra
            The package of the evaluator is not installed.
        """
