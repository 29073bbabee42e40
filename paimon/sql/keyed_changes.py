"""Run an UPDATE or DELETE whose subqueries name columns of the changed row: the engine finds the rows and their values.

A query returns the keys of the rows and their new values, and a merge by primary key changes the rows. The query runs
again on the newest snapshot if another user changed the table meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paimon.sql.lexer import StatementReader
from paimon.sql.parse_query import parse_query
from paimon.sql.plan_query import plan_query, query_engine
from paimon.sql.statement_run import StatementRun
from paimon.sql.statements import Delete, Update

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
    assignments = statement.assignments if isinstance(statement, Update) else {}
    values = _name_values(table, len(assignments))
    name = ".".join(map(_quote, statement.name.parts))
    columns = [
        *map(_quote, table.primary_keys),
        *(f"({text}) AS {_quote(value)}" for value, text in zip(values, assignments.values(), strict=True)),
    ]
    alias = statement.alias or statement.name.parts[-1]
    text = f"SELECT {', '.join(columns)} FROM {name} AS {_quote(alias)} WHERE {statement.where or 'TRUE'}"
    query = parse_query(StatementReader(text))

    def find_rows() -> Any:
        planned = plan_query(run.session, query, run.frames)
        return query_engine(run.session).run(planned.sql, planned.sources)

    merge = table.merge(find_rows, table.primary_keys, source_alias=_SOURCE, target_alias=_TARGET)
    if isinstance(statement, Delete):
        return merge.when_matched_delete().execute()
    updates = {column: f"{_SOURCE}.{value}" for column, value in zip(assignments, values, strict=True)}
    return merge.when_matched_update(updates).execute()


def _name_values(table: Table, count: int) -> list[str]:
    """Return names that no column of the table has."""
    prefix = "new_value"
    while any(column.name.lower().startswith(prefix) for column in table.table_schema.fields):
        prefix += "_"
    return [f"{prefix}{number}" for number in range(count)]


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
