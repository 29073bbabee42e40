"""Clauses of MERGE INTO by the names of pypaimon, over the merge of this library.

Source: `pypaimon.table.data_evolution_merge_into`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, frozen

from paimon.compat.commit_message import CommitMessage, from_paimon_messages
from paimon.compat.refused import refuse
from paimon.compat.stored_table import StoredTable
from paimon.domain.assignment.expression import ColumnValue, Constant, Expression
from paimon.domain.errors import AmbiguousMerge

if TYPE_CHECKING:
    from paimon.builders.row_updates import TableUpdate as PaimonTableUpdate

_SOURCE, _TARGET = "s", "t"
"""The names of both sides in conditions and values."""
_ROW_ID = "_ROW_ID"


@frozen
class SourceColumnRef:
    """A column of the source."""

    column: str


@frozen
class TargetColumnRef:
    """A column of the table."""

    column: str


@frozen
class LiteralValue:
    """A value for all rows."""

    value: Any


def source_col(name: str) -> SourceColumnRef:
    """Return a reference to a column of the source."""
    return SourceColumnRef(name)


def target_col(name: str) -> TargetColumnRef:
    """Return a reference to a column of the table."""
    return TargetColumnRef(name)


def lit(value: Any) -> LiteralValue:
    """Return a value, also of a text that begins with ``s.`` or ``t.``."""
    return LiteralValue(value)


class WhenMatched:
    """What happens to rows that match; made by `WhenMatched.update` and `WhenMatched.delete`."""

    def __init__(
        self, action: str, *, update: str | Mapping[str, Any] | None = None, condition: str | None = None
    ) -> None:
        if action not in ("update", "delete"):
            raise ValueError("WhenMatched action must be 'update' or 'delete'.")
        if action == "update" and update is None:
            raise ValueError("WhenMatched.update requires an update spec.")
        if action == "delete" and update is not None:
            raise ValueError("WhenMatched.delete must not specify update.")
        self.update = update  # type: ignore[assignment, method-assign]
        self.condition = condition
        self.values = update
        self.deletes = action == "delete"
        self.delete = action == "delete"  # type: ignore[assignment, method-assign]

    @classmethod
    def update(cls, update: str | Mapping[str, Any] = "*", condition: str | None = None) -> WhenMatched:
        """Set columns of the rows that match."""
        return cls("update", update=update, condition=condition)

    @classmethod
    def delete(cls, condition: str | None = None) -> WhenMatched:
        """Delete the rows that match."""
        return cls("delete", condition=condition)


@define
class WhenNotMatched:
    """What is inserted for rows of the source without a match."""

    insert: str | Mapping[str, Any]
    condition: str | None = None


@define
class MergeClauses:
    """The clauses of `merge_into`, over a table and the names of its columns."""

    table: StoredTable
    on: Mapping[str, str]
    matched: Sequence[WhenMatched]
    not_matched: Sequence[WhenNotMatched]

    def check(self) -> None:
        """Check what pypaimon checks before it reads rows."""
        if not self.matched and not self.not_matched:
            raise ValueError("At least one of when_matched or when_not_matched must be non-empty.")
        for label, clauses in (("when_matched", self.matched), ("when_not_matched", self.not_matched)):
            if any(clause.condition is None for clause in clauses[:-1]):
                raise ValueError(f"Only the last {label} clause may omit its condition.")
        if not self.on:
            raise ValueError("merge_into needs at least one column in 'on'.")
        deletes = any(clause.deletes for clause in self.matched)
        if deletes and not self.table.options.deletion_vectors_enabled():
            raise ValueError("merge_into DELETE requires 'deletion-vectors.enabled' = 'true' on target table.")

    def update_values(self) -> list[dict[str, Expression]]:
        """Return the values of each update clause, without columns that keep their value."""
        keys = set(self.table.partition_keys)
        found = []
        for clause in self.matched:
            values: dict[str, Expression] = {} if clause.deletes else self._to_values(clause.values)
            moved = sorted(keys & {n for n, v in values.items() if v != ColumnValue(f"{_SOURCE}.{self.on.get(n)}")})
            if moved:
                raise ValueError(f"merge_into does not support updating partition columns {moved}.")
            found.append({name: value for name, value in values.items() if name not in keys})
        return found

    def insert_values(self) -> list[dict[str, Expression]]:
        """Return the values of each insert clause; key columns have those of the source."""
        keys = {target: ColumnValue(f"{_SOURCE}.{source}") for target, source in self.on.items()}
        return [{**keys, **self._to_values(clause.insert, is_insert=True)} for clause in self.not_matched]

    def _to_values(self, given: Any, is_insert: bool = False) -> dict[str, Expression]:
        names = self.table.field_names
        if isinstance(given, str) and given == "*":
            return {name: ColumnValue(f"{_SOURCE}.{self.on.get(name, name)}") for name in names}
        if not isinstance(given, Mapping):
            raise TypeError(f"SET spec must be '*' or a mapping, got {type(given).__name__}")
        if not given:
            raise ValueError("SET spec must not be empty")
        values: dict[str, Expression] = {}
        for name, value in given.items():
            if name not in names:
                raise ValueError(f"SET spec references unknown target column '{name}'")
            expression = _to_expression(value, names)
            if isinstance(expression, ColumnValue) and expression.name.startswith(f"{_TARGET}."):
                if is_insert:
                    raise ValueError(f"INSERT spec must not reference target columns (t.*), but found: {value!r}")
                if expression.name == f"{_TARGET}.{name}":
                    continue
            values[name] = expression
        return values


def _to_expression(value: Any, names: Sequence[str]) -> Expression:
    if isinstance(value, str) and value.startswith((f"{_SOURCE}.", f"{_TARGET}.")):
        column = value[2:]
        value = SourceColumnRef(column) if value.startswith(f"{_SOURCE}.") else TargetColumnRef(column)
    if isinstance(value, SourceColumnRef):
        return ColumnValue(f"{_SOURCE}.{value.column}")
    if isinstance(value, TargetColumnRef):
        if value.column not in names:
            raise ValueError(f"SET spec references unknown target column '{value.column}'")
        return ColumnValue(f"{_TARGET}.{value.column}")
    if isinstance(value, LiteralValue):
        return Constant(value.value)
    if callable(value):
        refuse("functions as values of merge_into", "call update_by_predicate")
    return Constant(value)


def merge_into(
    table: StoredTable,
    update: PaimonTableUpdate,
    source: Any,
    on: Sequence[str] | Mapping[str, str],
    when_matched: Sequence[WhenMatched],
    when_not_matched: Sequence[WhenNotMatched],
) -> list[CommitMessage]:
    """Write the changes of a merge."""
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in on}
    clauses = MergeClauses(table, pairs, list(when_matched), list(when_not_matched))
    clauses.check()
    updates, inserts = clauses.update_values(), clauses.insert_values()
    if not inserts and not any(updates) and not any(clause.deletes for clause in clauses.matched):
        return []  # each column is set to itself
    matches = " AND ".join(f"{_TARGET}.{_quote(key)} = {_SOURCE}.{_quote(name)}" for key, name in pairs.items())
    merge = update.merge(
        _read_source(source, _ROW_ID in pairs.values()), matches, source_alias=_SOURCE, target_alias=_TARGET
    )
    some = next((name for values in updates for name in values), None)
    for matched, values in zip(clauses.matched, updates, strict=True):
        if matched.deletes:
            merge = merge.when_matched_delete(matched.condition)
        elif values or some is not None:
            unchanged = {} if some is None else {some: ColumnValue(f"{_TARGET}.{some}")}
            merge = merge.when_matched_update(values or unchanged, matched.condition)
    for missing, values in zip(clauses.not_matched, inserts, strict=True):
        merge = merge.when_not_matched_insert(values, missing.condition)
    try:
        return from_paimon_messages(merge.prepare_commit(), table)
    except AmbiguousMerge as error:
        raise ValueError(f"MERGE matched multiple source rows to the same target row. {error}") from error


def _read_source(source: Any, with_row_ids: bool) -> Any:
    """Return what the merge of this library reads; a table is read in its present state."""
    inner = getattr(source, "inner", None)
    if inner is None:
        return source
    return inner.scan([*inner.table_schema.names, _ROW_ID]) if with_row_ids else inner.scan()


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
