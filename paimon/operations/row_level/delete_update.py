"""Delete and update rows of all kinds of tables.

Invariant: a call makes one commit or none; after a refused commit its files are deleted. Source:
`DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from paimon.domain.assignment.expression import Assignment, ColumnValue, Expression, SqlValue, columns_of
from paimon.domain.commit.message import ReadState
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.schema.rules.row_level import check_deletable, check_updatable
from paimon.operations.commit.prepared_files import abort_on_refusal
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.read.evaluate import check_condition, find_sql_type
from paimon.operations.read.projection import bind_predicate
from paimon.operations.row_level.row_id_changes import selects_partitions, write_row_id_deletes
from paimon.operations.row_level.row_id_updates import write_row_id_changes
from paimon.operations.row_level.selected_rows import (
    SelectedChange,
    WrittenChanges,
    write_append_changes,
    write_keyed_changes,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows

WriteChanges = Callable[[TableContext, SelectedChange], WrittenChanges]
"""Writes the changes of selected rows."""


def write_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the changes of selected rows in this process."""
    write = write_keyed_changes if context.schema.primary_keys else write_append_changes
    return write(context, change)


@frozen(eq=False)
class RowChange:
    """The result of a delete or an update."""

    # Without snapshots if the table is empty
    commit: CommitResult
    # The number of deleted or updated rows
    rows: int


def delete_rows(
    context: TableContext,
    where: Predicate,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
    write: WriteChanges = write_changes,
    read_state: ReadState | None = None,
) -> RowChange:
    """Delete the rows for which the predicate is true; it applies to the columns as reads show them.

    `read_state` is a snapshot from before the condition was computed from tables; rows that another user changed since
    are a conflict. CommitConflict, also if the snapshot expired during the call: no row was deleted.
    """
    if context.options.data_evolution_enabled:
        write = write_row_id_deletes
    if not (context.options.data_evolution_enabled and selects_partitions(context, where)):
        check_deletable(context.table)
    return _change_rows(
        context,
        where,
        (),
        CommitRequest((), commit_user, properties=properties or {}, operation="DELETE", read_state=read_state),
        write,
    )


def update_rows(
    context: TableContext,
    values: Mapping[str, Expression],
    where: Predicate,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
    write: WriteChanges = write_changes,
    read_state: ReadState | None = None,
) -> RowChange:
    """Set columns of the rows for which the predicate is true; each expression sees the row before the change.

    The predicate applies to the columns as reads show them. `read_state` is a snapshot from before the condition and
    values were computed from tables; rows that another user changed since are a conflict. CommitConflict, also if the
    snapshot expired during the call: no row was updated.
    """
    if not values:
        raise InvalidRequest("An update must set at least one column", subject="set", hint="pass set={'column': value}")
    columns = check_updatable(context.table, values)
    assignments = [Assignment(column, values[column.name]) for column in columns]
    for assignment in assignments:
        _check_columns_exist(context, assignment)
    if context.options.data_evolution_enabled:
        write = write_row_id_changes
    return _change_rows(
        context,
        where,
        assignments,
        CommitRequest((), commit_user, properties=properties or {}, operation="UPDATE", read_state=read_state),
        write,
    )


def _check_columns_exist(context: TableContext, assignment: Assignment) -> None:
    fields, expression = context.schema.fields, assignment.expression
    for name in columns_of(expression):
        try:
            type_at(name, fields)
        except InvalidRequest as error:
            is_name_only = isinstance(expression, ColumnValue)
            quoted = f"write a text in quotes: \"'{name}'\"; " if is_name_only else ""
            raise InvalidRequest(error.message, subject=name, hint=f"{quoted}{error.hint or ''}") from error
    if isinstance(expression, SqlValue):
        find_sql_type(context.engine, expression.expression, fields)


def _change_rows(
    context: TableContext,
    where: Predicate,
    assignments: Sequence[Assignment],
    request: CommitRequest,
    write: WriteChanges,
) -> RowChange:
    predicate = bind_predicate(where, context.table, context.schema.fields)
    check_condition(context.engine, predicate, context.schema.fields)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        check_same_table(context)
        return RowChange(CommitResult(), 0)
    with check_unexpired(context, snapshot, "run the call again"):
        written = write(context, SelectedChange(snapshot, predicate, assignments, request.commit_user))
    # Old rows of append tables are found by their files; new versions of keyed rows hide those of other users.
    read_state = ReadState.of(snapshot) if context.schema.primary_keys else None
    commit = evolve(request, messages=written.messages, read_state=request.read_state or read_state, renumbers=True)
    with abort_on_refusal(context, written.messages, request.commit_user, snapshot):
        return RowChange(commit_rows(context, commit), written.rows)
