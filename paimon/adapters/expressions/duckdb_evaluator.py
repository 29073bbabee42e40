"""Scalar SQL expressions computed by DuckDB, which is loaded with the first expression.

Invariant: a database has no access to files or the network, loads no extension, and sees no Python variable. Each time
zone has its own database, because the settings are locked. Each call has a cursor of its own, so threads do not share
state.
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
from paimon.domain.types.type_text import quote_text

_ROWS = "batch_rows"
_HINT = "functions and types are those of DuckDB; use CAST(x AS type) where types differ"
_SIMILAR = re.compile(r'Did you mean "([^"]*)"')
_NO_FUNCTION = re.compile(r"Function with name (\S+) does not exist")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?")
_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET GLOBAL TimeZone = $zone",  # without GLOBAL, cursors have the zone of the machine
    "SET lock_configuration = true",
)


@frozen(eq=False)
class DuckdbEvaluator:
    """`paimon.ports.expressions.ExpressionEvaluator` with DuckDB databases in memory."""

    _locks: list[Any] = field(factory=lambda: [Lock()], init=False, repr=False)
    _connections: dict[str, Any] = field(factory=dict, init=False, repr=False)
    """By time zone."""

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the database of the parent process, but do not let it be closed; called in a forked child."""
        for connection in self._connections.values():
            keep_for_ever(connection)
        self._connections.clear()
        self._locks[:] = [Lock()]

    def find_type(self, expression: ScalarSql, schema: pa.Schema) -> pa.DataType:
        """Return the Arrow type of an expression, without rows; InvalidRequest for an aggregate or the like."""
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
            return _use_utc(cursor.sql(f"SELECT ({expression.sql}) FROM {_ROWS}").to_arrow_table())
        except duckdb.Error as error:
            raise _to_error(expression, str(error)) from error
        finally:
            cursor.close()

    def _open_cursor(self, expression: ScalarSql) -> Any:
        with self._locks[0]:
            if expression.time_zone not in self._connections:
                self._connections[expression.time_zone] = _connect(expression)
            return self._connections[expression.time_zone].cursor()


def _connect(expression: ScalarSql) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as missing:
        raise missing_extra(f"SQL expression {expression.text!r}", "duckdb", "sql") from missing
    connection = duckdb.connect(":memory:", config={"threads": 1})
    try:
        for setting in _SETTINGS:
            connection.execute(setting.replace("$zone", quote_text(_name_zone(expression.time_zone))))
    except duckdb.Error as error:
        raise _to_error(expression, str(error)) from error
    return connection


def _name_zone(zone: str) -> str:
    """Return the name that DuckDB has for a time zone of Spark, which may be an offset such as ``+09:00``."""
    offset = _OFFSET.fullmatch(zone)
    return zone if offset is None else f"GMT{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"


def _use_utc(found: pa.Table) -> pa.Table:
    """Return instants as those of UTC; DuckDB names the zone in their type."""
    field = found.schema.field(0)
    kind = _replace_zone(field.type)
    return found if kind == field.type else found.cast(pa.schema([field.with_type(kind)]))


def _replace_zone(kind: pa.DataType) -> pa.DataType:
    """Return a type of DuckDB whose instants, also those inside it, have the zone UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if not pa.types.is_nested(kind) or pa.types.is_union(kind):
        return kind
    parts = [part.with_type(_replace_zone(part.type)) for part in map(kind.field, range(kind.num_fields))]
    if pa.types.is_struct(kind):
        return pa.struct(parts)
    if pa.types.is_map(kind):
        return pa.map_(_replace_zone(kind.key_type), kind.item_field.with_type(_replace_zone(kind.item_type)))
    return pa.list_(parts[0], kind.list_size) if pa.types.is_fixed_size_list(kind) else pa.list_(parts[0])


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
