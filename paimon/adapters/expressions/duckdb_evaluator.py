"""Scalar SQL expressions computed by DuckDB, which is loaded with the first expression.

Invariant: the database has no access to files or the network, loads no extension, and sees no Python variable. Its time
zone is UTC. Each call has a cursor of its own, so threads do not share state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.decimal_overflow import widen_if_needed
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.extras import missing_extra
from paimon.domain.predicate.expression import ScalarSql
from paimon.domain.query_hints import suggest_function

_ROWS = "batch_rows"
_HINT = "functions and types are those of DuckDB; use CAST(x AS type) where types differ"
_SIMILAR = re.compile(r'Did you mean "([^"]*)"')
_NO_FUNCTION = re.compile(r"Function with name (\S+) does not exist")
_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


@frozen(eq=False)
class DuckdbEvaluator:
    """`paimon.ports.expressions.ExpressionEvaluator` with a DuckDB database in memory."""

    _locks: list[Any] = field(factory=lambda: [Lock()], init=False, repr=False)
    _connections: list[Any] = field(factory=list, init=False, repr=False)

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the database of the parent process, but do not let it be closed; called in a forked child."""
        for connection in self._connections:
            keep_for_ever(connection)
        self._connections.clear()
        self._locks[:] = [Lock()]

    def find_type(self, expression: ScalarSql, schema: pa.Schema) -> pa.DataType:
        """Return the Arrow type of the values of an expression, without rows.

        An expression that needs more than one row, such as an aggregate, is InvalidRequest.
        """
        found = self._compute(expression, _number_columns(expression, schema.empty_table()))
        if found.num_rows:
            raise _not_one_row_error(expression)
        return found.schema.field(0).type

    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        """Compute the value of an expression for each row. Any other number of values is InvalidRequest."""
        found = self._compute(expression, _number_columns(expression, pa.Table.from_batches([rows])))
        if found.num_rows != rows.num_rows:
            raise _not_one_row_error(expression)
        column = found.column(0)
        return combine_column(column)

    def _compute(self, expression: ScalarSql, rows: pa.Table) -> pa.Table:
        cursor = self._open_cursor(expression)
        import duckdb  # it is installed, because there is a cursor

        try:
            cursor.register(_ROWS, rows)
            return cursor.sql(f"SELECT ({expression.sql}) FROM {_ROWS}").to_arrow_table()
        except duckdb.Error as error:
            raise _to_error(expression, str(error)) from error
        finally:
            cursor.close()

    def _open_cursor(self, expression: ScalarSql) -> Any:
        with self._locks[0]:
            if not self._connections:
                self._connections.append(_connect(expression))
            return self._connections[0].cursor()


def _connect(expression: ScalarSql) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as missing:
        raise missing_extra(f"SQL expression {expression.text!r}", "duckdb", "sql") from missing
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


def _number_columns(expression: ScalarSql, rows: pa.Table) -> pa.Table:
    """Return the columns that the expression reads, under their numbers; one other column if it reads none."""
    if not expression.columns:
        return rows.select([0]).rename_columns(["row"])
    columns = [rows.column(name) for name in expression.columns]
    for name, column in zip(expression.columns, columns, strict=True):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns" and column.type.tz is not None:
            raise Unsupported(
                f"SQL expression {expression.text!r} over the nanoseconds with time zone of column {name!r}",
                hint="compare the column with a value",
            )
    columns = [widen_if_needed(column) if pa.types.is_decimal(column.type) else column for column in columns]
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def _to_error(expression: ScalarSql, text: str) -> InvalidRequest:
    """Return an error of DuckDB with the name of the function that it may mean."""
    what = (text.splitlines()[0].partition(": ")[2] or text).rstrip("!")
    near = _SIMILAR.search(text)
    unknown = _NO_FUNCTION.search(text)
    hint = _HINT if unknown is None else suggest_function(unknown[1], [] if near is None else [near[1]])
    return InvalidRequest(
        f"SQL expression {expression.text!r} cannot be computed: {what}", subject=expression.text, hint=hint
    )


def _not_one_row_error(expression: ScalarSql) -> InvalidRequest:
    return InvalidRequest(
        f"SQL expression {expression.text!r} does not have one value for each row",
        subject=expression.text,
        hint="aggregates and functions that return several rows are not possible here",
    )
