"""Deleting and updating rows: the two verbs, for all kinds of tables.

Law: one commit or none; what a refused commit wrote is removed. Source: `DeleteFromPaimonTableCommand`,
`UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from paimon.domain.assignment.expression import Assignment, ColumnValue, Constant, Expression, columns_of
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.rules.row_level import check_deletable, check_updatable
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.abort import aborted_on_refusal
from paimon.operations.commit.request import CommitRequest, CommitResult
from paimon.operations.read.projection import bound
from paimon.operations.read.snapshots import latest_snapshot
from paimon.operations.rows.append_rows import append_table_messages
from paimon.operations.rows.keyed_rows import keyed_table_messages
from paimon.operations.rows.matches import find_rows
from paimon.operations.write.commit_written import commit_written
from paimon.ports.engine import Engine


@frozen(eq=False)
class RowChange:
    """What was done: the commit, and how many rows were deleted or updated."""

    commit: CommitResult
    rows: int


def delete_rows(
    engine: Engine,
    table: TableDefinition,
    where: Predicate,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
) -> RowChange:
    """Delete the rows where the predicate is true.

    Raises
    ------
    InvalidRequest, Unsupported
        The table takes no deletes, or the predicate does not fit it.
    CommitConflict
        The same files changed meanwhile; nothing was deleted.
    """
    check_deletable(table)
    return _changed(engine, table, where, (), commit_user, properties or {}, "DELETE")


def update_rows(
    engine: Engine,
    table: TableDefinition,
    values: Mapping[str, Expression],
    where: Predicate,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
) -> RowChange:
    """Set columns of the rows where the predicate is true; every expression sees the row as it was.

    Raises
    ------
    InvalidRequest, Unsupported
        The table takes no updates, a column cannot be set, or a value does not fit it.
    CommitConflict
        The same files changed meanwhile; nothing was updated.
    """
    if not values:
        raise InvalidRequest("an update sets no column", subject="set", hint="set={'column': value}")
    columns = check_updatable(table, values)
    assignments = [Assignment(column, values[column.name]) for column in columns]
    for assignment in assignments:
        _check_reads(table, assignment)
    return _changed(engine, table, where, assignments, commit_user, properties or {}, "UPDATE")


def _check_reads(table: TableDefinition, assignment: Assignment) -> None:
    known = table.schema.names
    for name in columns_of(assignment.expression):
        if name not in known:
            lone = isinstance(assignment.expression, ColumnValue)
            quoted = f"a text stands in quotes: \"'{name}'\"; " if lone else ""
            hint = f"{quoted}{did_you_mean(name, known) or ''}"
            raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=hint)


def _changed(
    engine: Engine,
    table: TableDefinition,
    where: Predicate,
    assignments: Sequence[Assignment],
    commit_user: str,
    properties: Mapping[str, str],
    operation: str,
) -> RowChange:
    predicate = bound(where, table, table.schema.fields)
    snapshot = latest_snapshot(engine, table.paths)
    if snapshot is None:
        return RowChange(CommitResult(), 0)
    if table.schema.primary_keys:
        messages, rows = keyed_table_messages(engine, table, snapshot, predicate, assignments, commit_user)
    else:
        found = find_rows(engine, table, snapshot, predicate)
        rows = sum(matches.count for matches in found)
        messages = append_table_messages(engine, table, snapshot, found, assignments, commit_user)
    request = CommitRequest(messages, commit_user, properties=properties, operation=operation)
    with aborted_on_refusal(engine, table, messages, commit_user, snapshot):
        return RowChange(commit_written(engine, table, request), rows)


def expression_of(value: Any) -> Expression:
    """What a column is set to: text is SQL, everything else a value of the column."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        from paimon.domain.assignment.sql import parse_expression  # the parser is only loaded for text

        return parse_expression(value)
    return Constant(value)


