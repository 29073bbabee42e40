"""DELETE, UPDATE and MERGE INTO of Spark's SQL: Spark finds the rows and computes their values, and tasks change them.

Invariant: conditions and values are expressions that Spark resolved, so they have Spark's meaning, may contain
subqueries, and see the session. Each statement is one commit. It runs again if another writer changed the table.
"""

# The statement's expressions name columns by the ids of one relation, so that frame is filtered and projected:
#
#     table with a primary key   frame: key, new values      merged by its key: `paimon.spark.merge`
#     append table               frame: row number, values   `change_numbered_rows`; the numbered rows get the ids
#     append table, MERGE        frame: row number, deleted?, values; the inserted rows are written next to it
#
# MERGE INTO joins source and target in Spark. Each joined row gets the number of the first clause that applies:
#
#     MERGE INTO t USING s ON t.id = s.id                       action  key  values
#     WHEN MATCHED AND s.gone THEN DELETE                       D       7
#     WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount  U      8    …, 15
#     WHEN NOT MATCHED THEN INSERT *                            I       9    …, 3
#
# Rows with a primary key are then merged by it. An inserted key that exists, because ON is not the key, replaces its
# row.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from paimon.adapters.executors.spark import drop_cached_rows
from paimon.builders.merge_builder import MergeBuilder, retry_conflicts
from paimon.domain.assignment.expression import ColumnDefault, ColumnValue, Expression
from paimon.domain.commit.message import CommitMessage
from paimon.domain.predicate.expression import And, Predicate
from paimon.domain.row.literals import INTEGER_BITS
from paimon.domain.schema.rules.row_level import check_deletable, check_mergeable, check_updatable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.operations.commit.prepared_files import abort_on_failure
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.row_level.delete_update import RowChange
from paimon.operations.row_level.numbered_rows import (
    NumberedChange,
    WriteNumberedChange,
    change_numbered_rows,
    check_numbered_change,
    plan_numbered_rows,
)
from paimon.operations.row_level.selected_rows import WrittenChanges
from paimon.operations.table_context import commit_user_of
from paimon.results import find_own_reads
from paimon.spark.row_level.delete_update import delete, read_numbered_rows, write_changed_rows
from paimon.spark.row_level.merge import merge
from paimon.spark.session_catalog.changed_relation import ChangedRelation, iterate
from paimon.spark.session_catalog.jvm import Jvm, get_or_none
from paimon.spark.session_catalog.merge_bounds import JoinedSource, open_source
from paimon.spark.session_catalog.predicates import (
    COMPARED_TYPES,
    format_condition,
    read_predicates,
    to_conjunction,
    to_exact_conjunction,
    translate_predicate,
)
from paimon.spark.session_catalog.table_proxy import TableProxy
from paimon.spark.write import prepare_rows
from paimon.table import Table

_ATTRIBUTE, _BY_SOURCE = "AttributeReference", "notMatchedBySourceActions"
_WIDER = {"SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""Types to which Spark casts a smaller integer column to compare it with a source, and their bits."""
_SOURCE, _TARGET = "changes", "changed table"
"""The names of the sides of the merge. Values name columns of the source only."""
_ACTION, _MARK, _DELETED, _NUMBER = "__action", "__source", "__deleted", "__row_number"
"""The names of columns that a statement adds, which begin the names that it uses; see `RowChanges.suffix`."""


class StaleReads(Exception):
    """A subquery or the source of a statement read another snapshot of the table than the one that is changed.

    It is no `CommitConflict`, because Spark planned these reads with the statement: each attempt has the same rows.
    """


@frozen(eq=False)
class RowChanges:
    """The rows that one statement changes; `relation` is the table in its plan."""

    jvm: Jvm
    table: TableProxy
    opened: Table
    relation: ChangedRelation
    # Ends the names of added columns, so that no column of the statement has one of them
    suffix: str = ""

    def delete(self, condition: Any) -> None:
        """Delete the rows for which a condition is true."""
        predicate = self._find_predicate(condition, is_exact=True)
        if predicate is None:
            self._change(condition, {})
        else:
            delete(self.opened, predicate, spark=self.jvm.spark)

    def update(self, condition: Any, assignments: Any) -> None:
        """Assign values to columns of the rows for which a condition is true; None selects all rows."""
        values = self.relation.read_assignments(assignments)
        check_updatable(self.opened.definition, values)
        if values:  # rows without new values would be deleted
            self._change(condition, values)

    def _change(self, condition: Any, values: Mapping[str, Any]) -> None:
        if not self.opened.primary_keys:
            self._change_numbered(condition, values)
            return

        def find_rows() -> DataFrame:
            """Find the rows at the newest snapshot."""
            self.table.renew()
            found = self._filter(self.relation.read(), condition)
            keys = [self.relation.find_stored(name).alias(name) for name in self.opened.primary_keys]
            rows = found.select(*keys, *(self._column(value).alias(name) for name, value in values.items()))
            return self._check_reads(rows, self.table.find_snapshot())

        builder = self._merge_by_key(find_rows)
        if not values:
            builder.when_matched_delete().execute()
            return
        assigned: dict[str, Expression] = {name: ColumnValue(f"{_SOURCE}.{name}") for name in values}
        builder.when_matched_update(assigned).execute()

    def _merge_by_key(self, find_rows: Any) -> MergeBuilder:
        return merge(find_rows, self.opened, list(self.opened.primary_keys), source_alias=_SOURCE, target_alias=_TARGET)

    def _change_numbered(self, condition: Any, values: Mapping[str, Any]) -> None:
        columns = check_numbered_change(self.opened.context, list(values) if values else None)

        def find(frame: DataFrame, number: str) -> DataFrame:
            """Return the numbers of the rows, and their new values."""
            found = self._filter(frame, condition)
            return found.select(
                number, *(self._column(value).alias(f"v{i}") for i, value in enumerate(values.values()))
            )

        def write(change: NumberedChange) -> WrittenChanges:
            """Find the rows among the numbered ones, and write their changes."""
            rows = find(*self._number_rows(change))
            return write_changed_rows(self._check_reads(rows, change.rows.snapshot), change)

        self._commit_numbered([condition, *values.values()], columns, write, self._find_predicate(condition))

    def _number_rows(self, change: NumberedChange) -> tuple[DataFrame, str]:
        """Return the rows of an append table under the ids of the relation, and the name of their number, quoted."""
        numbered = read_numbered_rows(self.jvm.spark, change.rows)
        return self.relation.rename(numbered), f"`{change.rows.number_name}`"

    def _commit_numbered(
        self,
        expressions: Iterable[Any],
        columns: tuple[DataField, ...],
        write: WriteNumberedChange,
        predicate: Predicate | None,
        marks_deletes: bool = False,
    ) -> None:
        """Change rows that `write` finds at the newest snapshot, again after a conflict.

        `expressions` name the columns that it reads; `predicate` is true for each row that it may change.
        """
        context = self.opened.context
        number = _find_free((_NUMBER + self.suffix,), self.table.spark_schema.names)
        needed, user = self.relation.list_needed(expressions), commit_user_of(context, None)

        def change() -> RowChange:
            """Change the rows that the statement finds at the newest snapshot."""
            rows = plan_numbered_rows(context, latest_snapshot(context), needed, predicate, number)
            return change_numbered_rows(NumberedChange(rows, columns, user, frozenset(), marks_deletes), write)

        done = retry_conflicts(change)
        run_after_commit(context, done.commit.snapshot_ids)

    def merge(self, command: Any) -> None:
        """Run a MERGE INTO."""
        names = [*self.relation.attributes, *(str(a.name()) for a in iterate(command.sourceTable().output()))]
        added = (_ACTION, _MARK, _DELETED, _NUMBER)
        changes = evolve(self, suffix=_find_free(added, names).removeprefix(added[0]))
        clauses = self._read_clauses(command)
        by_source = any(clause.side == _BY_SOURCE for clause in clauses)
        pairs = {} if by_source else self._find_pairs(command.mergeCondition())
        frame = self.relation.to_frame(command.sourceTable())
        with open_source(frame, _MARK + changes.suffix, pairs, self.table.read_state()) as source:
            if self.opened.primary_keys:
                changes._merge_keyed(command, clauses, source)
            else:
                changes._merge_numbered(command, clauses, source)

    def _find_pairs(self, condition: Any) -> dict[str, Column]:
        """Return the values of the source that an ON condition compares with columns of the table for equality."""
        own = self.relation.stored
        types = {f.name: f.type for f in self.opened.table_schema.fields}
        pairs: dict[str, Column] = {}
        for node in _split_conjunction(condition):
            sides = (node.left(), node.right()) if node.getClass().getSimpleName() == "EqualTo" else ()
            for column, value in zip(sides, sides[::-1], strict=True):
                is_cast = column.getClass().getSimpleName() == "Cast"
                bits = _WIDER.get(str(column.dataType().sql()), 0) if is_cast else 0
                column = column.child() if is_cast else column
                name = own.get(column.exprId().id()) if column.getClass().getSimpleName() == _ATTRIBUTE else None
                used = {a.exprId().id() for a in iterate(value.references().toSeq())}
                if name is None or not used or not used.isdisjoint(own) or not value.deterministic():
                    continue
                kind = types[name]
                if isinstance(kind, COMPARED_TYPES) and (not is_cast or INTEGER_BITS.get(type(kind), 65) <= bits):
                    pairs[name] = self._column(value)
        return pairs

    def _merge_keyed(self, command: Any, clauses: Sequence[MergeClause], source: JoinedSource) -> None:
        builder = self._merge_by_key(lambda: self._join(command, clauses, source))
        for number, clause in enumerate(clauses):
            condition = f"{_SOURCE}.{_ACTION}{self.suffix} = {number}"
            builder = clause.add_to(builder, condition, self.opened.primary_keys, self.table.spark_schema.names)
        if builder.request.clauses:  # else each clause assigns columns to themselves
            builder.execute()

    def _read_clauses(self, command: Any) -> list[MergeClause]:
        clauses = []
        for side in ("matchedActions", "notMatchedActions", _BY_SOURCE):
            for action in iterate(getattr(command, side)()):
                kind = str(action.getClass().getSimpleName()).removesuffix("Action").lower()
                values = {} if kind == "delete" else self.relation.read_assignments(action.assignments())
                clauses.append(MergeClause(side, kind, get_or_none(action.condition()), values))
        return clauses

    def _merge_numbered(self, command: Any, clauses: Sequence[MergeClause], source: JoinedSource) -> None:
        """Merge into an append table: numbered rows change, and inserted rows are written in the same commit."""
        context, schema = self.opened.context, self.table.spark_schema
        changing = [clause for clause in clauses if clause.kind != "insert"]
        names = [name for name in schema.names if any(name in clause.values for clause in changing)]
        check_mergeable(context.table)
        columns = check_numbered_change(context, names, moves_rows=True)
        if any(clause.kind == "delete" for clause in changing):
            check_deletable(context.table)

        def write(change: NumberedChange) -> WrittenChanges:
            """Join the numbered rows with the source, and write what changes and what is inserted."""
            target, number = self._number_rows(change)
            keys = {change.rows.number_name: F.col(number)}
            joined = self._find_actions(command, clauses, source.frame, target, keys)
            chosen = self._choose_numbered(clauses, names, number)
            rows = self._check_reads(joined.select(*chosen), change.rows.snapshot).persist()
            # without new values, only rows to delete change
            found = rows.where(
                f"{number} IS NOT NULL" if names else f"{number} IS NOT NULL AND {_DELETED}{self.suffix}"
            )
            found = found.select(*rows.columns[: 2 + len(names)])
            inserted = rows.where(f"{number} IS NULL").select(*rows.columns[2 + len(names) :])
            messages: list[CommitMessage] = []
            try:
                with abort_on_failure(context, messages, change.commit_user, change.rows.snapshot):
                    written = write_changed_rows(found, change) if changing else WrittenChanges([], 0)
                    messages.extend(written.messages)
                    if len(changing) < len(clauses):
                        messages.extend(prepare_rows(inserted.toDF(*schema.names), self.opened, change.commit_user))
            finally:
                drop_cached_rows(rows)
            return WrittenChanges(messages, written.rows)

        read = [command.mergeCondition(), *(e for c in clauses for e in (c.condition, *c.values.values()))]
        kept = [self.relation.attributes[name] for name in names]
        by_source = any(clause.side == _BY_SOURCE for clause in clauses)
        predicate = None if by_source else self._find_predicate(command.mergeCondition())
        if source.bounds is not None:
            predicate = source.bounds if predicate is None else And((predicate, source.bounds))
        self._commit_numbered([*read, *kept], columns, write, predicate, marks_deletes=True)

    def _choose_numbered(self, clauses: Sequence[MergeClause], names: Sequence[str], number: str) -> list[Column]:
        """Return the number of a row, whether it is deleted, its new values, and the values of an inserted row."""
        action = _ACTION + self.suffix
        deleted = [position for position, clause in enumerate(clauses) if clause.kind == "delete"]
        columns = [F.col(number), F.col(action).isin(deleted).alias(_DELETED + self.suffix)]
        for name in names:
            old = self.relation.find_stored(name)
            columns.append(self._choose_value(name, clauses, old, ("update",)).alias(f"u{len(columns)}"))
        for field in self.table.spark_schema:
            default = F.lit(field.metadata.get("default"))
            columns.append(self._choose_value(field.name, clauses, default, ("insert",)).alias(f"i{len(columns)}"))
        return columns

    def _join(self, command: Any, clauses: Sequence[MergeClause], source: JoinedSource) -> DataFrame:
        """Return the rows to change: their keys, the number of the clause, and the values that clauses assign."""
        self.table.renew()
        keys = {name: self.relation.find_stored(name) for name in self.opened.primary_keys}
        bounds = None if source.bounds is None else format_condition(source.bounds, self.table.spark_schema.names)
        found = self._find_actions(command, clauses, source.frame, self.relation.read(bounds), keys)
        names = [name for name in self.table.spark_schema.names if any(name in clause.values for clause in clauses)]
        rows = found.select(
            _ACTION + self.suffix,
            *(self._choose_value(name, clauses, key, ("insert",)).alias(name) for name, key in keys.items()),
            *(self._choose_value(name, clauses, F.lit(None)).alias(name) for name in names if name not in keys),
        )
        return self._check_reads(rows, self.table.find_snapshot())

    def _find_actions(
        self,
        command: Any,
        clauses: Sequence[MergeClause],
        source: DataFrame,
        target: DataFrame,
        keys: Mapping[str, Column],
    ) -> DataFrame:
        """Join the source with the table; each row gets the number of the first clause that applies to it.

        `keys` are columns of the table without nulls, by which a row is known to be in it.
        """
        action, mark = _ACTION + self.suffix, _MARK + self.suffix
        by_source = any(clause.side == _BY_SOURCE for clause in clauses)
        kind = "full_outer" if by_source else "left_outer"
        joined = source.join(target, self._column(command.mergeCondition()), kind)
        in_target = next(iter(keys.values())).isNotNull()
        sides = {
            "matchedActions": F.col(mark).isNotNull() & in_target,
            "notMatchedActions": F.col(mark).isNotNull() & ~in_target,
            _BY_SOURCE: F.col(mark).isNull(),
        }
        number = F.lit(None).cast("int")
        for position, clause in reversed(list(enumerate(clauses))):
            applies = sides[clause.side]
            if clause.condition is not None:
                applies &= self._column(clause.condition)
            number = F.when(applies, self._check_keys(clause, keys, position)).otherwise(number)
        return joined.withColumn(action, number).where(F.col(action).isNotNull())

    def _check_reads(self, rows: DataFrame, snapshot: Snapshot | None) -> DataFrame:
        """Return the rows to change at a snapshot; raises `StaleReads`."""
        own = find_own_reads(self.opened.definition, rows)
        if own is None or own.state.is_state_of(snapshot):
            return rows
        raise StaleReads

    def _check_keys(self, clause: MergeClause, keys: Mapping[str, Column], position: int) -> Column:
        """Return the number of a clause; Spark fails if the clause gives a row another key."""
        number = F.lit(position)
        for name in keys:
            if clause.kind == "update" and name in clause.values:
                text = f"UPDATE in MERGE INTO {self.table.title} changes column {name!r} of the primary key."
                same = self._column(clause.values[name]).eqNullSafe(self.relation.find_compared(name))
                number = F.when(same, number).otherwise(F.raise_error(text).cast("int"))
        return number

    def _choose_value(
        self, name: str, clauses: Sequence[MergeClause], default: Column, kinds: Sequence[str] = ("update", "insert")
    ) -> Column:
        """Return the value of a column by the number of the clause, of clauses of these kinds."""
        kind = self.table.spark_schema[name].dataType
        value = default.cast(kind)
        for number, clause in enumerate(clauses):
            if clause.kind in kinds and name in clause.values:
                given = self._column(clause.values[name]).cast(kind)
                value = F.when(F.col(_ACTION + self.suffix) == number, given).otherwise(value)
        return value

    def _filter(self, frame: DataFrame, condition: Any) -> DataFrame:
        return frame if condition is None else frame.where(self._column(condition))

    def _column(self, expression: Any) -> Column:
        return self.relation.to_column(expression)

    def _find_predicate(self, condition: Any, is_exact: bool = False) -> Predicate | None:
        """Return what a scan evaluates of a condition: its parts that name stored columns of the table alone.

        An exact one is true for the same rows as the condition; None if there is none.
        """
        found, fields = [], {f.name: f for f in self.opened.table_schema.fields}
        for node in _split_conjunction(condition):
            names = {self.relation.stored.get(a.exprId().id()) for a in iterate(node.references().toSeq())}
            translated = None if None in names else translate_predicate(self.jvm, node)
            if translated is not None:
                found += read_predicates(self.jvm, translated)
            elif is_exact:
                return None
        return to_exact_conjunction(found, fields) if is_exact else to_conjunction(found, fields)


@frozen(eq=False)
class MergeClause:
    """A clause of MERGE INTO: `side` is Spark's name of its list; `kind` is ``update``, ``delete`` or ``insert``."""

    side: str
    kind: str
    condition: Any
    values: Mapping[str, Any]

    def add_to(
        self, builder: MergeBuilder, condition: str, keys: Sequence[str], columns: Sequence[str]
    ) -> MergeBuilder:
        """Add what the clause does to a merge by key, which has the computed values in its source.

        `columns` are those of the table: an inserted row replaces all of them in the row with its key.
        """
        assigned: dict[str, Expression] = {name: ColumnValue(f"{_SOURCE}.{name}") for name in self.values}
        changed = {name: value for name, value in assigned.items() if name not in keys}
        match self.kind:
            case "delete":
                return builder.when_matched_delete(condition)
            case "update":
                return builder.when_matched_update(changed, condition) if changed else builder
        replaced = {name: assigned.get(name, ColumnDefault()) for name in columns if name not in keys}
        builder = builder.when_matched_update(replaced, condition) if replaced else builder
        return builder.when_not_matched_insert(assigned, condition)


def _find_free(names: Sequence[str], taken: Iterable[str]) -> str:
    """Return the first name with the underscores after which none of the names is taken, in whatever case."""
    known, end = {name.lower() for name in taken}, ""
    while any(name + end in known for name in names):
        end += "_"
    return names[0] + end


def _split_conjunction(condition: Any) -> list[Any]:
    """Return the parts of a condition of Spark that must all be true."""
    nodes, found = [] if condition is None else [condition], []
    for node in nodes:  # grows
        if node.getClass().getSimpleName() == "And":
            nodes += [node.left(), node.right()]
        else:
            found.append(node)
    return found
