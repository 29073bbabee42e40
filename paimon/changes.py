"""Changes: a lazy read of the rows that snapshots changed.

Invariant: the range of snapshots is fixed when it is first used. The result has the columns `_snapshot_id`,
`_row_kind`, then the selected columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from attrs import evolve

from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import rename_columns
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system_columns import ROW_KIND
from paimon.operations.read.changes.followed import plan_followed_splits, read_changes
from paimon.operations.read.changes.history import list_history
from paimon.operations.read.evaluate import check_condition
from paimon.operations.read.projection import bind_predicate, build_output_schema
from paimon.operations.read.split import ReadPlan
from paimon.operations.table_context import TableContext
from paimon.results import Results
from paimon.scan import condition_of

SNAPSHOT_COLUMN = pa.field("_snapshot_id", pa.int64(), nullable=False)
KIND_COLUMN = pa.field("_row_kind", pa.string(), nullable=False)


class Changes(Results):
    """The changes after one snapshot through another; made by `Table.changes`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    after, through : int, optional
        Snapshot ids, the first exclusive, the last inclusive.
    columns : sequence of str, optional
        Columns of the table, in order; all by default.
    where : str or Predicate, optional
        Condition on the changes.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        after: int | None = None,
        through: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise InvalidRequest(f"'columns' is the text {columns!r}.", subject="columns", hint=f"write [{columns!r}]")
        self._context = context
        self._range = (after, through)
        self._columns = columns
        self._where = where
        self._snapshots: tuple[Snapshot, ...] | None = None
        self._splits: tuple[DataSplit, ...] | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots whose changes are read; a snapshot may have none."""
        if self._snapshots is None:
            self._snapshots = list_history(self._context, *self._range)
        return self._snapshots

    @property
    def read_plan(self) -> ReadPlan:
        """What each task needs to read a split: columns, predicate and row kinds."""
        return ReadPlan((ROW_KIND.name, *self._names), self._bind_predicate(), row_kinds=True)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._context.schema.names if self._columns is None else self._columns)

    def _bind_predicate(self) -> Predicate | None:
        if self._where is None:
            return None
        fields = (evolve(ROW_KIND, name=KIND_COLUMN.name), *self._context.schema.fields)
        predicate = bind_predicate(condition_of(self._where), self._context.table, fields)
        check_condition(self._context.engine, predicate, fields)
        return rename_columns(predicate, {KIND_COLUMN.name: ROW_KIND.name})

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        reserved = {SNAPSHOT_COLUMN.name, KIND_COLUMN.name} & set(self._names)
        if reserved:
            name = min(reserved)
            raise InvalidRequest(
                f"Column {name!r} is always the first or second column of changes.", subject=name, hint="leave it out"
            )
        return pa.schema(
            [SNAPSHOT_COLUMN, KIND_COLUMN, *build_output_schema(self._context.table, ReadPlan(self._names))]
        )

    def splits(self) -> tuple[DataSplit, ...]:
        """Return the splits to read, in the order of the snapshots."""
        if self._splits is None:
            predicate, rules = self.read_plan.predicate, FollowRules.of(self._context.table)
            self._splits = plan_followed_splits(self._context, self.snapshots, predicate, rules)
        return self._splits

    def to_arrow(self) -> pa.Table:
        """Return all changes as one Arrow table; the executor of the engine reads splits in parallel."""
        schema = self.arrow_schema
        splits = self.splits()
        task = partial(_read_whole, self._context.for_tasks(len(splits)), self.read_plan, schema)
        parts = self._context.engine.executor.map(task, splits)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        read, schema = self.read_plan, self.arrow_schema
        for split in self.splits():
            yield from read_changes(self._context, read, schema, split)

    def __repr__(self) -> str:
        after, through = self._range
        return f"Changes({self._context.table.table_name}, after={after}, through={through})"


def _read_whole(context: TableContext, read: ReadPlan, schema: pa.Schema, split: DataSplit) -> list[pa.RecordBatch]:
    return list(read_changes(context, read, schema, split))
