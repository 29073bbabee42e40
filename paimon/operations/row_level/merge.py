"""Merge a source into a table: bind the clauses, write the changes with the source, and commit once.

Invariant: a call makes one commit or none. A table, column or expression that cannot be merged is refused by name
before rows are read. Rows that another user changed after the snapshot that was read refuse the commit, so that the
caller can merge again. Source: `MergeIntoPaimonTable`, `PaimonMergeIntoResolver`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from attrs import evolve, field, frozen

from paimon.domain.assignment.expression import Assignment, ColumnValue, Expression, SqlValue
from paimon.domain.assignment.given_values import compute_late_input, to_expression
from paimon.domain.assignment.merge_clauses import SOURCE, TARGET, BoundMerge, MergeAction, MergeClause, MergeOn
from paimon.domain.assignment.merge_sql import MergeNames, bind_condition, bind_expression, parse_on
from paimon.domain.assignment.time_zones import UTC, use_zone_in_value
from paimon.domain.columns.accept import can_accept
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import type_at
from paimon.domain.predicate.scalar_sql import parse_condition
from paimon.domain.schema.rules.row_level import check_deletable, check_mergeable, check_updatable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_checks import check_mapping
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type
from paimon.operations.commit.prepared_files import abort_on_refusal
from paimon.operations.metadata.snapshots import check_unexpired
from paimon.operations.read.evaluate import check_condition, find_sql_type
from paimon.operations.row_level.merge_match import list_target_columns
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows


class MergeGroup(Enum):
    """The rows that a clause is about."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@frozen(eq=False)
class WhenClause:
    """One clause as the caller gave it."""

    group: MergeGroup
    action: MergeAction
    # None for all rows of the group
    condition: str | Predicate | None = None
    # New values by column; None sets all columns to those of the source with the same names
    values: Mapping[str, Any] | None = None


def _to_clauses(values: Iterable[WhenClause]) -> tuple[WhenClause, ...]:
    return tuple(values)


@frozen(eq=False)
class MergeRequest:
    """A MERGE as the caller gave it, without the source."""

    # The ON condition
    on: str | Sequence[str] | Predicate
    # Name of the target in SQL text
    target_alias: str = TARGET
    # Name of the source in SQL text
    source_alias: str = SOURCE
    # In the order given; the first one that applies to a row is used
    clauses: tuple[WhenClause, ...] = field(default=(), converter=_to_clauses)
    # Whether the text is a SQL statement: names ignore the case, and -0.0 equals 0.0
    is_statement: bool = False
    # The time zone of conditions and values
    time_zone: str = UTC

    def compute_late_inputs(self) -> MergeRequest:
        """Return the request with the values that subqueries in its clauses have now."""
        clauses = [
            evolve(
                clause,
                condition=compute_late_input(clause.condition),
                values=clause.values and {name: compute_late_input(value) for name, value in clause.values.items()},
            )
            for clause in self.clauses
        ]
        return evolve(self, clauses=clauses)

    def name_columns(self, target: Sequence[DataField], source: Sequence[DataField]) -> MergeNames:
        """Return the columns of both sides under the names of this request."""
        return MergeNames(
            tuple(target), tuple(source), self.target_alias, self.source_alias, self.is_statement, self.time_zone
        )


@frozen(eq=False)
class WrittenMerge:
    """What to commit, and how many rows each action changed."""

    messages: list[CommitMessage]
    counts: Mapping[MergeAction, int]


class MergeSource(Protocol):
    """The rows of a source, and how the changes of a merge are written with them."""

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""

    def write(
        self, context: TableContext, snapshot: Snapshot | None, merge: BoundMerge, commit_user: str
    ) -> WrittenMerge:
        """Write the changes of a merge into a snapshot (None: an empty table); if that fails, no file remains."""

    def drop(self) -> None:
        """Delete what the source stored; it is not written after this."""


def bind_merge(context: TableContext, source: Sequence[DataField], request: MergeRequest) -> BoundMerge:
    """Bind a MERGE to a table and the columns of a source."""
    _check_request(context, request)
    names = request.name_columns(list_target_columns(context), source)
    on = parse_on(request.on, names)
    if on.condition is not None:
        check_condition(context.engine, on.condition, names.fields)
    binding = _Binding(context, names, on)
    return BoundMerge(on, *(binding.bind_group(request, group) for group in MergeGroup))


def _check_request(context: TableContext, request: MergeRequest) -> None:
    check_mergeable(context.table)
    if not request.clauses:
        hint = "call when_matched_update_all(), when_not_matched_insert_all() or another clause before execute()"
        raise InvalidRequest("A merge needs at least one WHEN clause", subject="merge", hint=hint)
    aliases = (request.target_alias, request.source_alias)
    if aliases[0] == aliases[1] or any(not alias or "." in alias for alias in aliases):
        raise InvalidRequest(
            f"Aliases {aliases[0]!r} and {aliases[1]!r} do not name two sides",
            subject="alias",
            hint="use two different names without dots",
        )
    for group in MergeGroup:
        clauses = [clause for clause in request.clauses if clause.group is group]
        if any(clause.condition is None for clause in clauses[:-1]):
            raise InvalidRequest(
                f"A clause {group.value} without condition is followed by another one, which never applies",
                subject="condition",
                hint="give a condition to each clause but the last one",
            )


@frozen(eq=False)
class _Binding:
    """What all clauses of a MERGE are bound to."""

    context: TableContext
    names: MergeNames
    on: MergeOn

    def bind_group(self, request: MergeRequest, group: MergeGroup) -> tuple[MergeClause, ...]:
        """Return the clauses of one group over canonical names."""
        return tuple(self.bind_clause(clause) for clause in request.clauses if clause.group is group)

    def bind_clause(self, clause: WhenClause) -> MergeClause:
        """Return a clause over canonical names."""
        names = self._names_of(clause.group)
        condition = None
        if clause.condition is not None:
            given = clause.condition
            condition = bind_condition(given if isinstance(given, Predicate) else parse_condition(given), names)
            check_condition(self.context.engine, condition, names.fields)
        if clause.action is MergeAction.DELETE:
            check_deletable(self.context.table)
            return MergeClause(clause.action, condition)
        assignments = [self._bind_value(name, value, names) for name, value in self._list_values(clause, names)]
        if clause.action is MergeAction.UPDATE:
            assignments = self._check_update(assignments)
        return MergeClause(clause.action, condition, assignments)

    def _names_of(self, group: MergeGroup) -> MergeNames:
        match group:
            case MergeGroup.NOT_MATCHED:
                return self.names.of_side(SOURCE)
            case MergeGroup.NOT_MATCHED_BY_SOURCE:
                return self.names.of_side(TARGET)
        return self.names

    def _list_values(self, clause: WhenClause, names: MergeNames) -> list[tuple[str, Expression]]:
        """Return the columns that a clause sets, and their expressions over canonical names."""
        if clause.values is not None:
            values = check_mapping(clause.values, "set" if clause.action is MergeAction.UPDATE else "values")
            if not values:
                raise InvalidRequest(f"A clause {clause.group.value} sets no column", subject="set")
            return [(name, bind_expression(to_expression(value), names)) for name, value in values.items()]
        known = [f.name for f in names.source]
        found = {f.name: names.find_path(f.name, names.source) for f in self.context.schema.fields}
        for column in self.context.schema.fields:
            if found[column.name] not in known:
                raise InvalidRequest(
                    f"The source has no column {column.name!r}",
                    subject=column.name,
                    hint=did_you_mean(column.name, known) or "name the columns to set",
                )
        return [(name, ColumnValue(f"{SOURCE}.{path}")) for name, path in found.items()]

    def _bind_value(self, name: str, expression: Expression, names: MergeNames) -> Assignment:
        columns = {f.name: f for f in self.context.schema.fields}
        if name not in columns:
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, columns))
        column = columns[name]
        expression = use_zone_in_value(expression, column, names.fields, names.time_zone)
        if isinstance(expression, SqlValue):
            find_sql_type(self.context.engine, expression.expression, names.fields)
        if isinstance(expression, ColumnValue):
            kind = type_at(expression.name, names.fields)
            if not can_accept(column.type, arrow_type(kind)):
                raise InvalidRequest(
                    f"Column {name!r} of type {format_type(column.type)} cannot be set to {expression.name!r} of type "
                    f"{format_type(kind)}",
                    subject=name,
                    hint=f"write CAST({expression.name} AS {format_type(column.type.with_nullable(True))})",
                )
        return Assignment(column, expression)

    def _check_update(self, assignments: Sequence[Assignment]) -> list[Assignment]:
        """Check that the columns can be set; leave out keys that are set to the value that they have."""
        table = self.context.table
        equal = {target: ColumnValue(f"{SOURCE}.{source}") for target, source in self.on.pairs}
        stays = table.schema.partition_keys if table.options.data_evolution_enabled else ()
        fixed = {*table.schema.primary_keys, *stays}
        changed = [a for a in assignments if a.column.name not in fixed or equal.get(a.column.name) != a.expression]
        check_updatable(table, [a.column.name for a in changed], moves_rows=not stays)
        return changed


@frozen(eq=False)
class MergeChange:
    """What a merge did: its commit, without snapshots if no row changed, and the numbers of rows."""

    commit: CommitResult
    inserted: int
    updated: int
    deleted: int


def merge_source(
    context: TableContext,
    snapshot: Snapshot | None,
    source: MergeSource,
    request: MergeRequest,
    commit_user: str,
    properties: Mapping[str, str] | None = None,
    state: ReadState | None = None,
) -> MergeChange:
    """Merge a source into a table.

    The rows of `snapshot` (None: an empty table) are merged; the source was read at this time or later. `state` is the
    oldest snapshot that was read, if the source was read before. CommitConflict: another user changed rows, and nothing
    was changed.
    """
    merge = bind_merge(context, source.fields, request)
    with check_unexpired(context, snapshot, "run the merge again"):
        written = source.write(context, snapshot, merge, commit_user)
    commit = CommitRequest(
        written.messages,
        commit_user,
        properties=properties or {},
        operation="MERGE",
        read_state=state or ReadState.of(snapshot),
        renumbers=True,
    )
    numbers = [written.counts.get(a, 0) for a in (MergeAction.INSERT, MergeAction.UPDATE, MergeAction.DELETE)]
    with abort_on_refusal(context, written.messages, commit_user, snapshot):
        return MergeChange(commit_rows(context, commit), *numbers)
