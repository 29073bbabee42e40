"""Run an UPDATE or DELETE whose subqueries name columns of the changed row: the engine finds the rows and their values.

A query returns the new values together with the primary key of each row, or with its number where the table has no
key. Then the rows are changed. The query runs again on the newest snapshot after another user changed the table.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from sqlglot import exp

from paimon.builders.merge_builder import retry_conflicts
from paimon.domain.assignment.expression import ColumnDefault, ColumnValue, Expression
from paimon.domain.schema.rules.row_level import check_updatable
from paimon.domain.types.sql_tokens import StatementReader
from paimon.domain.types.type_text import quote_identifier
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.row_level.delete_update import RowChange
from paimon.operations.row_level.numbered_rows import (
    NumberedChange,
    NumberedRows,
    change_numbered_rows,
    check_numbered_change,
    write_numbered_changes,
)
from paimon.operations.row_level.selected_rows import WrittenChanges
from paimon.operations.table_context import commit_user_of
from paimon.ports.queries import QuerySource
from paimon.sql.parse.parse_query import parse_query
from paimon.sql.parse.parse_rows import is_default
from paimon.sql.parse.statements import Delete, Query, TableName, Update
from paimon.sql.plan.plan_query import NumberedTable, PlannedQuery, plan_query, query_engine
from paimon.sql.run.result import StatementRun

if TYPE_CHECKING:
    from paimon.builders.merge_builder import MergeBuilder, MergeResult
    from paimon.table import Table

_SOURCE, _TARGET = "changes", "changed table"
"""The names of the sides of the merge. Values name columns of the source only."""


@frozen
class QueryChange:
    """The result of an UPDATE or DELETE: the number of changed rows, and the snapshots of the commit."""

    rows: int
    snapshot_ids: tuple[int, ...]


def change_by_query(run: StatementRun, table: Table, statement: Update | Delete) -> QueryChange:
    """Update or delete the rows that a query finds.

    Raises `CommitConflict`, with nothing changed, if other writers changed the table in each attempt.
    """
    if not table.primary_keys:
        return _change_numbered_rows(run, table, statement)
    if isinstance(statement, Update):
        check_updatable(table.definition, statement.assignments)
    query, reading = build_change_query(run, table, statement)
    merge = table.merge((), table.primary_keys, source_alias=_SOURCE, target_alias=_TARGET)
    if isinstance(statement, Delete):
        merge = merge.when_matched_delete()
    else:
        values: dict[str, Expression] = {
            column: ColumnDefault() if is_default(text) else ColumnValue(f"{_SOURCE}.{column}")
            for column, text in statement.assignments.items()
        }
        merge = merge.when_matched_update(values)
    done = merge_query(reading, merge, query)
    return QueryChange(done.updated + done.deleted, done.snapshot_ids)


def merge_query(run: StatementRun, merge: MergeBuilder, query: Query) -> MergeResult:
    """Run a merge whose source is a query, which may read the target table.

    The query is planned on the newest snapshots, and again after another writer changed the target.
    """

    def plan_source() -> tuple[str, Mapping[str, QuerySource]]:
        planned = plan_query(run.session, query, run.frames)
        return planned.sql, planned.sources

    workers, engine = run.session.workers, query_engine(run.session)
    if workers is not None:
        return workers.merge(merge, plan_source)
    return evolve(merge, source=lambda: engine.run(*plan_source())).execute()


def _change_numbered_rows(run: StatementRun, table: Table, statement: Update | Delete) -> QueryChange:
    assignments = statement.assignments if isinstance(statement, Update) else None
    columns = check_numbered_change(table.context, None if assignments is None else list(assignments))
    defaults = frozenset(column for column, text in (assignments or {}).items() if is_default(text))
    query, reading = build_change_query(run, table, statement)
    user = commit_user_of(table.context, None)

    def change() -> RowChange:
        """Run the query on the newest snapshot, and change the rows that it returns."""
        planned = plan_query(reading.session, query, reading.frames)
        rows = next(s.origin for s in planned.sources.values() if isinstance(s.origin, NumberedRows))
        found = NumberedChange(rows, columns, user, defaults)
        return change_numbered_rows(found, partial(write_found_rows, reading, planned))

    done = retry_conflicts(change)
    run_after_commit(table.context, done.commit.snapshot_ids)
    return QueryChange(done.rows, done.commit.snapshot_ids)


def write_found_rows(run: StatementRun, planned: PlannedQuery, change: NumberedChange) -> WrittenChanges:
    """Write the changes of the rows that a query finds, with the workers of the session if it has any.

    `planned` returns the numbers of the rows and their new values. The result is not committed yet.
    """
    workers, engine = run.session.workers, query_engine(run.session)
    if workers is not None:
        return workers.change_rows(change, planned.sql, planned.sources)
    return write_numbered_changes(change, engine.run(planned.sql, planned.sources), concurrent=True)


def build_change_query(run: StatementRun, table: Table, statement: Update | Delete) -> tuple[Query, StatementRun]:
    """Return the query for the rows that a statement changes, and the statement with the data frames of this query.

    Its columns are the primary key, or the row number in a table without one, then the new values except DEFAULT.
    """
    given = statement.assignments if isinstance(statement, Update) else {}
    assignments = {column: text for column, text in given.items() if not is_default(text)}
    values = _name_values(table, assignments)
    number = _find_free_name("row number", [column.name for column in table.table_schema.fields])
    keys = table.primary_keys or (number,)
    columns = [
        *map(quote_identifier, keys),
        *(f"({text}) AS {quote_identifier(values[column])}" for column, text in assignments.items()),
    ]
    # All parts of the name: a view or a frame can have the name of the table alone.
    name = ".".join(map(quote_identifier, run.session.qualify(statement.name).parts))
    alias = quote_identifier(statement.alias or statement.name.parts[-1])
    where = "TRUE" if statement.where is None else f"({statement.where})"
    is_sorted = not table.primary_keys and run.session.workers is None  # workers sort what they get
    order = " ORDER BY 1" if is_sorted else ""
    text = f"SELECT {', '.join(columns)} FROM {name} AS {alias} WHERE {where}{order}"
    if table.primary_keys:
        # Under the names of their columns, values that are all null get the types of these columns.
        renamed = [f"{value} AS {quote_identifier(column)}" for column, value in values.items()]
        text = f"SELECT {', '.join([*columns[: len(keys)], *renamed])} FROM ({text}) AS found"
        return parse_query(StatementReader(text)), run
    query = parse_query(StatementReader(text))
    frame = _find_free_name("changed table", run.frames)
    changed = next(node for node in query.tree.args.values() if isinstance(node, exp.From)).this
    read = evolve(query, tables={**query.tables, changed.name: TableName((frame,))})
    return read, evolve(run, frames={**run.frames, frame: NumberedTable(table, number)})


def _name_values(table: Table, assignments: Iterable[str]) -> dict[str, str]:
    """Return for each assigned column a name that no column of the table has."""
    prefix = "new_value"
    while any(column.name.lower().startswith(prefix) for column in table.table_schema.fields):
        prefix += "_"
    return {column: f"{prefix}{number}" for number, column in enumerate(assignments)}


def _find_free_name(name: str, others: Iterable[str]) -> str:
    """Return a name that no other one equals, whatever their case is."""
    taken: Container[str] = {other.lower() for other in others}
    while name in taken:
        name += "_"
    return name
