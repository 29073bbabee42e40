"""Run an UPDATE or DELETE whose subqueries name columns of the changed row: the engine finds the rows and their values.

A query returns the keys of the rows and their new values, and a merge by primary key changes the rows. The query runs
again on the newest snapshot after another user changed the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paimon.domain.types.type_text import quote_identifier
from paimon.sql.lexer import StatementReader
from paimon.sql.parse_query import parse_query
from paimon.sql.plan_query import plan_query, query_engine
from paimon.sql.statement_run import StatementRun
from paimon.sql.statements import Delete, Query, Update

if TYPE_CHECKING:
    from paimon.merge_builder import MergeResult
    from paimon.table import Table

_SOURCE, _TARGET = "changes", "changed table"
"""The names of the sides of the merge. Values name columns of the source only."""


def change_by_query(run: StatementRun, table: Table, statement: Update | Delete) -> MergeResult:
    """Update or delete the rows that a query finds.

    Parameters
    ----------
    run : StatementRun
        The statement that runs.
    table : Table
        A table with a primary key.
    statement : Update or Delete
        The statement.

    Returns
    -------
    MergeResult
        The snapshots, and the number of rows.

    Raises
    ------
    InvalidRequest
        The condition or a value is not valid, or the keys of the rows need more memory than the budget.
    CommitConflict
        Other users changed the table each time. Nothing was changed.
    """
    query = build_change_query(run, table, statement)

    def find_rows() -> Any:
        planned = plan_query(run.session, query, run.frames)
        return query_engine(run.session).run(planned.sql, planned.sources)

    merge = table.merge(find_rows, table.primary_keys, source_alias=_SOURCE, target_alias=_TARGET)
    if isinstance(statement, Delete):
        return merge.when_matched_delete().execute()
    values = _name_values(table, statement.assignments)
    return merge.when_matched_update({column: f"{_SOURCE}.{value}" for column, value in values.items()}).execute()


def build_change_query(run: StatementRun, table: Table, statement: Update | Delete) -> Query:
    """Return the query for the keys of the rows that a statement changes, and for their new values.

    Parameters
    ----------
    run : StatementRun
        The statement that runs.
    table : Table
        A table with a primary key.
    statement : Update or Delete
        The statement.

    Returns
    -------
    Query
        The columns of the primary key, and one column for each new value.

    Raises
    ------
    InvalidRequest
        The condition or a value is not valid SQL.
    """
    assignments = statement.assignments if isinstance(statement, Update) else {}
    values = _name_values(table, assignments)
    columns = [
        *map(quote_identifier, table.primary_keys),
        *(f"({text}) AS {quote_identifier(values[column])}" for column, text in assignments.items()),
    ]
    # All parts of the name: a view or a frame can have the name of the table alone.
    name = ".".join(map(quote_identifier, run.session.qualify(statement.name).parts))
    alias = quote_identifier(statement.alias or statement.name.parts[-1])
    where = "TRUE" if statement.where is None else f"({statement.where})"
    return parse_query(StatementReader(f"SELECT {', '.join(columns)} FROM {name} AS {alias} WHERE {where}"))


def _name_values(table: Table, assignments: Iterable[str]) -> dict[str, str]:
    """Return for each assigned column a name that no column of the table has."""
    prefix = "new_value"
    while any(column.name.lower().startswith(prefix) for column in table.table_schema.fields):
        prefix += "_"
    return {column: f"{prefix}{number}" for number, column in enumerate(assignments)}
