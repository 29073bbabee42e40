"""Plan the commands that Spark cannot plan with its interfaces for sources.

Invariant: Spark evaluates the conditions and values of a command, so they have Spark's meaning. The rows that it finds
are changed by the functions of `paimon.spark`, in one commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from paimon.catalog import Catalog
from paimon.domain.errors import ReadConflict, Unsupported
from paimon.operations.read.time_travel import selects_newest
from paimon.spark.session_catalog.changed_relation import ChangedRelation
from paimon.spark.session_catalog.jvm import (
    CONNECTOR,
    JavaProxy,
    Jvm,
    find_proxy,
    get_or_none,
    refresh_cached_rows,
)
from paimon.spark.session_catalog.predicates import translate_predicate
from paimon.spark.session_catalog.row_changes import RowChanges, StaleReads
from paimon.spark.session_catalog.scan_proxy import ScanProxy
from paimon.spark.session_catalog.streams import StreamWriteProxy
from paimon.spark.session_catalog.table_proxy import TableProxy
from paimon.spark.session_catalog.write_proxy import FrameWriteProxy

_EXECUTION = "org.apache.spark.sql.execution.datasources.v2"
_RELATION, _SCAN = "DataSourceV2Relation", "DataSourceV2ScanRelation"
_WHOLE = frozenset({"Project", "SubqueryAlias", "View"})
"""Nodes of a plan that have each row of their child."""
_PYTHON = frozenset({"BatchEvalPython", "ArrowEvalPython"})
"""Nodes that call Python functions; Spark takes them out of the conditions and the values of a command."""


class CommandPlanner(JavaProxy):
    """The function that `CommandStrategy` calls; `attached` has the catalogs of its session, by name."""

    class Java:
        """The interfaces."""

        implements = ("java.util.function.Function",)

    def __init__(self, jvm: Jvm, attached: dict[str, Catalog]) -> None:
        self.jvm = jvm
        self.attached = attached

    def apply(self, command: Any) -> Any:
        """Return the plan of a command on a table of an attached catalog; None for other tables."""
        match command.getClass().getSimpleName():
            case "OverwritePartitionsDynamic":
                return self._plan_overwrite(command)
            case "DeleteFromTable" if not self._is_handed_over(command):
                return self._plan_change(
                    command.table(), "delete from", lambda found: found.delete(command.condition())
                )
            case "UpdateTable":
                return self._plan_change(
                    command.table(),
                    "update",
                    lambda found: found.update(get_or_none(command.condition()), command.assignments()),
                )
            case "MergeIntoTable":
                return self._plan_change(command.targetTable(), "merge into", lambda found: found.merge(command))
            case "AnalyzeTable" | "AnalyzeColumn" as kind:
                return self._plan_analysis(command, kind)
            case "WriteToDataSourceV2":
                return self._plan_batch(command.batchWrite())
            case "StreamingDataSourceV2ScanRelation":
                _check_stream(command)
        return None

    def andThen(self, after: Any) -> Any:
        """Return nothing; Spark does not compose this function."""

    def compose(self, before: Any) -> Any:
        """Return nothing; Spark does not compose this function."""

    def _plan_overwrite(self, command: Any) -> Any:
        table = find_table(command.table())
        if table is None or not command.write().isDefined():
            return None
        return self._plan_rows(table, command.query(), command.write().get())

    def _plan_batch(self, write: Any) -> Any:
        """Return what takes the rows of a batch of a stream."""
        if write.getClass().getSimpleName() != "MicroBatchWrite":
            return None
        stream = find_proxy(write.writeSupport())
        return BatchConsumer(self.jvm, write, stream) if isinstance(stream, StreamWriteProxy) else None

    def _is_handed_over(self, command: Any) -> bool:
        """Return whether Spark can give the condition of a DELETE to the table."""
        table = find_table(command.table())
        if table is None:
            return True
        _check_target(command.table(), table, "delete from")
        if command.table().children().size():
            return False
        found = translate_predicate(self.jvm, command.condition())
        return found is not None and table.can_delete(found)

    def _plan_change(self, target: Any, words: str, run: Callable[[RowChanges], object]) -> Any:
        """Return a plan that changes rows; a DELETE whose condition Spark can hand over is planned by Spark."""
        relation, table = find_relation(target), find_table(target)
        if table is None:
            return None
        _check_target(target, table, words)
        found, opened = table, table.find_target()

        def change(frame: DataFrame) -> None:
            try:
                run(RowChanges(self.jvm, found, opened, ChangedRelation(self.jvm, relation, target)))
            except StaleReads:
                wrong = f"Table {found.title!r} was changed after a subquery or the source of the statement read it."
                raise ReadConflict(wrong, hint="run the statement again") from None

        write = FrameWriteProxy(self.jvm, f"{words} {table.title}", change)
        return self._plan_rows(table, relation, write)

    def _plan_analysis(self, command: Any, kind: str) -> Any:
        """Return a plan that stores statistics of a table, and of columns if the statement names them."""
        child = command.child()
        table = find_proxy(child.table()) if child.getClass().getSimpleName() == "ResolvedTable" else None
        if not isinstance(table, TableProxy):
            return None
        columns: list[str] | None = []
        if kind == "AnalyzeColumn":
            named = None if command.allColumns() else command.columnNames().get()
            columns = None if named is None else [str(named.apply(i)) for i in range(named.size())]
        elif command.partitionSpec().nonEmpty():
            raise Unsupported("ANALYZE of a partition", hint="analyze the whole table: leave out PARTITION")
        target = table.find_target()
        nothing = self.jvm.spark.range(0)._jdf.queryExecution().analyzed()
        write = FrameWriteProxy(self.jvm, f"analyze {table.title}", lambda frame: target.analyze(columns))
        return self._plan_rows(table, nothing, write)

    def _plan_rows(self, table: TableProxy, query: Any, write: Any) -> Any:
        kind = self.jvm.find_class(f"{_EXECUTION}.AppendDataExecV1")
        return kind(table, query, RefreshProxy(self.jvm, table.title), write)


def _check_stream(relation: Any) -> None:
    """Refuse metadata columns in the plan of a stream, which has none."""
    if isinstance(find_proxy(relation.scan()), ScanProxy):
        raise Unsupported("metadata columns in a stream", hint="read them in a batch")


class BatchConsumer(JavaProxy):
    """Takes the rows of a batch of a stream, and lets Spark name its number."""

    class Java:
        """The interfaces."""

        implements = ("java.util.function.Consumer",)

    def __init__(self, jvm: Jvm, write: Any, stream: StreamWriteProxy) -> None:
        self.jvm = jvm
        self._write = write
        self._stream = stream

    def accept(self, rows: Any) -> None:
        """Write and commit the rows."""
        self._stream.take_rows(DataFrame(rows, SparkSession(self.jvm.spark.sparkContext, rows.sparkSession())))
        self._write.commit(self.jvm.make_array(f"{CONNECTOR}.write.WriterCommitMessage"))
        refresh_cached_rows(self.jvm, self._stream.title)

    def andThen(self, after: Any) -> Any:
        """Return nothing; Spark does not compose this function."""


class RefreshProxy(JavaProxy):
    """What Spark does after a command: it reads the cached rows of the table again."""

    class Java:
        """The interfaces."""

        implements = ("scala.Function0",)

    def __init__(self, jvm: Jvm, title: str) -> None:
        self.jvm = jvm
        self._title = title

    def apply(self) -> None:
        """Let Spark forget the cached rows."""
        refresh_cached_rows(self.jvm, self._title)

    def toString(self) -> str:
        """Return nothing for plans to show."""
        return ""


setattr(RefreshProxy, "apply$mcV$sp", RefreshProxy.apply)  # the method that Scala calls


def find_table(plan: Any) -> TableProxy | None:
    """Return the table of the relation that a command changes; None if it is not one of an attached catalog."""
    relation = find_relation(plan)
    table = None if relation is None else find_proxy(relation.table())
    return table if isinstance(table, TableProxy) else None


def _check_target(plan: Any, table: TableProxy, words: str) -> None:
    """Refuse to change a view that selects rows or a snapshot: other rows of the newest snapshot would change, too."""
    context = table.opened.context
    if not selects_newest(context) and context.options.scan_mode != "compacted-full":
        raise Unsupported(f"{words} a table at a chosen snapshot", hint="name the table alone, and reset scan options")
    while plan.children().size() == 1 and plan.getClass().getSimpleName() in _WHOLE:
        plan = plan.children().apply(0)
    if plan.getClass().getSimpleName() in _PYTHON:
        hint = "call it in a query: WHERE id IN (SELECT id …), or MERGE INTO … USING (SELECT …) for new values"
        raise Unsupported(f"{words} a table in a statement that calls a Python function", hint=hint)
    if plan.children().size():
        raise Unsupported(f"{words} a view that selects rows", hint="name the table, and repeat the view's condition")


def find_relation(plan: Any) -> Any:
    """Return the only relation of a plan; None if it has another form."""
    leaves = plan.collectLeaves()
    if leaves.size() != 1:
        return None
    leaf = leaves.apply(0)
    name = leaf.getClass().getSimpleName()
    return leaf if name == _RELATION else leaf.relation() if name == _SCAN else None
