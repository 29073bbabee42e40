"""The table in the plan of a statement that changes rows: its columns, and the values that the statement assigns.

Invariant: expressions of the statement name columns by ids. Each frame has its columns under these ids.
"""

# Spark pads texts of CHAR columns where it reads a table. The padded ones have ids of their own:
#
#     UPDATE t SET v = 1 WHERE c = 'ab'
#       Project [id#1, readSidePadding(c#2, 5) AS c#7, v#3]      the condition is c#7 = 'ab   '
#       +- RelationV2 [id#1, c#2, v#3]                           keys and old values are those that are stored

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import define
from pyspark.sql import Column, DataFrame

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.spark.session_catalog.jvm import Jvm

_CATALYST = "org.apache.spark.sql.catalyst"
_ATTRIBUTE, _FIELD, _PADDING = "AttributeReference", "GetStructField", "readSidePadding"


@define(eq=False, slots=False)
class ChangedRelation:
    """The relation that a statement changes; `target` is the plan of the statement that contains it."""

    jvm: Jvm
    plan: Any
    target: Any

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The columns as they are stored, by name."""
        return {str(a.name()): a for a in iterate(self.plan.output())}

    @cached_property
    def stored(self) -> dict[Any, str]:
        """The names of the columns as they are stored, by id."""
        return {a.exprId().id(): name for name, a in self.attributes.items()}

    @cached_property
    def _padded(self) -> dict[str, Any]:
        """The expressions of padded columns with their ids, by name."""
        node = self.target
        while node.children().size() == 1 and node.children().apply(0).children().size():
            node = node.children().apply(0)
        projected = iterate(node.projectList()) if node.getClass().getSimpleName() == "Project" else []
        aliases = [one for one in projected if one.getClass().getSimpleName() == "Alias"]
        return {str(one.name()): one for one in aliases if _PADDING in str(one.child().sql()) + str(one.child())}

    @cached_property
    def names(self) -> dict[Any, str]:
        """The names of the columns, stored and padded, by id."""
        return self.stored | {one.exprId().id(): name for name, one in self._padded.items()}

    def find_compared(self, name: str) -> Column:
        """Return a column as expressions of the statement see it."""
        return self.to_column(self._padded[name].toAttribute() if name in self._padded else self.attributes[name])

    def find_stored(self, name: str) -> Column:
        """Return a column as it is stored."""
        return self.to_column(self.attributes[name])

    def read(self, where: str | None = None) -> DataFrame:
        """Return the rows of the table for which a condition, which names stored columns, is true."""
        rows = self.to_frame(self.plan)
        return self._pad(rows if where is None else rows.where(where))

    def rename(self, frame: DataFrame) -> DataFrame:
        """Return a frame with columns of the table under the ids of the relation; other columns stay."""
        plan = frame._jdf.queryExecution().analyzed()
        kind, empty = self.jvm.find_class(f"{_CATALYST}.expressions.Alias"), self._nil()
        columns = empty
        for column in iterate(plan.output()):
            known = self.attributes.get(str(column.name()))
            if known is not None:
                column = kind(column, known.name(), known.exprId(), empty, self._none(), empty)
            columns = columns.appended(column)
        return self._pad(self.to_frame(self._project(columns, plan)))

    def _pad(self, frame: DataFrame) -> DataFrame:
        if not self._padded:
            return frame
        plan = frame._jdf.queryExecution().analyzed()
        present = {str(a.name()) for a in iterate(plan.output())}
        columns = plan.output()
        for name, one in self._padded.items():
            columns = columns.appended(one) if name in present else columns
        return self.to_frame(self._project(columns, plan))

    def _project(self, columns: Any, plan: Any) -> Any:
        return self.jvm.find_class(f"{_CATALYST}.plans.logical.Project")(columns, plan)

    def list_needed(self, expressions: Iterable[Any]) -> list[str]:
        """Return the columns of the table that expressions name."""
        ids = {a.exprId().id() for e in expressions if e is not None for a in iterate(e.references().toSeq())}
        found = {name for number, name in self.names.items() if number in ids}
        return [name for name in self.attributes if name in found]

    def read_assignments(self, assignments: Any) -> dict[str, Any]:
        """Return the values by their columns, without those that assign a column to itself.

        A column of which fields are assigned keeps its other fields; they are null if the column is.
        """
        values: dict[str, dict[tuple[int, ...], Any]] = {}
        for assignment in iterate(assignments):
            key, value = assignment.key(), assignment.value()
            name, path = self._find_path(key)
            given = values.setdefault(name, {})
            if any(path[: len(other)] == other[: len(path)] for other in given):
                wrong = f"Column {name!r} gets two values for {key.sql()}."
                raise InvalidRequest(wrong, subject=name, hint="assign each column and each field once")
            given[path] = None if key.semanticEquals(value) else value
        return {
            name: self._assign(
                self.attributes[name], {path: value for path, value in given.items() if value is not None}
            )
            for name, given in values.items()
            if any(value is not None for value in given.values())
        }

    def _find_path(self, key: Any) -> tuple[str, tuple[int, ...]]:
        """Return the column that is assigned, and the positions of the field in it."""
        path: tuple[int, ...] = ()
        node = key
        while node.getClass().getSimpleName() == _FIELD:
            path, node = (int(node.ordinal()), *path), node.child()
        name = self.names.get(node.exprId().id()) if node.getClass().getSimpleName() == _ATTRIBUTE else None
        if name is None:
            hint = "assign a column of the table, or a field of it"
            raise Unsupported(f"assigning {key.sql()} on Spark", hint=hint)
        return name, path

    def _assign(self, column: Any, values: Mapping[tuple[int, ...], Any]) -> Any:
        """Return a struct whose fields at these positions have these values."""
        if () in values:
            return values[()]
        literal = self._find_object(f"{_CATALYST}.expressions.Literal")
        get = self.jvm.find_class(f"{_CATALYST}.expressions.{_FIELD}")
        parts = self._nil()
        for position, field in enumerate(column.dataType().fields()):
            inner = {path[1:]: value for path, value in values.items() if path[0] == position}
            old = get(column, position, self._none())
            parts = parts.appended(literal.apply(field.name())).appended(self._assign(old, inner) if inner else old)
        return self.jvm.find_class(f"{_CATALYST}.expressions.CreateNamedStruct")(parts)

    def to_frame(self, plan: Any) -> DataFrame:
        """Return a plan as a data frame."""
        session = self.jvm.spark._jsparkSession
        kind = self.jvm.find_class("org.apache.spark.sql.classic.Dataset")
        return DataFrame(kind.ofRows(session, plan), self.jvm.spark)

    def to_column(self, expression: Any) -> Column:
        """Return an expression of the statement as a column."""
        from pyspark.sql.classic.column import Column as ClassicColumn

        made = self.jvm.find_class("org.apache.spark.sql.classic.ExpressionUtils").column(expression)
        return ClassicColumn(made)

    def _nil(self) -> Any:
        return self._find_object("scala.collection.immutable.Nil")

    def _none(self) -> Any:
        return self._find_object("scala.None")

    def _find_object(self, name: str) -> Any:
        """Return an object of Scala."""
        return getattr(getattr(self.jvm.gateway.jvm, f"{name}$"), "MODULE$")


def iterate(sequence: Any) -> Iterable[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(number) for number in range(sequence.size())]
