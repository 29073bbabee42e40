"""Changes: a lazy read of what happened to a table's rows.

Law: the range of snapshots is pinned when first asked for; what is answered is `_snapshot_id`, `_row_kind`, then the
columns asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from attrs import evolve

from paimon.domain.changelog.follow import FollowRules
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import rename
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system import ROW_KIND
from paimon.operations.read.changes.followed import followed_splits, read_changes
from paimon.operations.read.changes.history import history
from paimon.operations.read.projection import bound
from paimon.operations.read.split import ReadPlan, output_schema
from paimon.ports.engine import Engine
from paimon.results import Results
from paimon.scan import predicate_of

SNAPSHOT_COLUMN = pa.field("_snapshot_id", pa.int64(), nullable=False)
KIND_COLUMN = pa.field("_row_kind", pa.string(), nullable=False)


class Changes(Results):
    """The changes after one snapshot through another; made by `Table.changes`."""

    def __init__(
        self,
        engine: Engine,
        table: TableDefinition,
        *,
        after: int | None = None,
        through: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise InvalidRequest(f"columns is the text {columns!r}", subject="columns", hint=f"write [{columns!r}]")
        self._engine = engine
        self._table = table
        self._range = (after, through)
        self._columns = columns
        self._where = where
        self._snapshots: tuple[Snapshot, ...] | None = None
        self._splits: tuple[DataSplit, ...] | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots whose changes these are; some have none."""
        if self._snapshots is None:
            self._snapshots = history(self._engine, self._table.paths, *self._range)
        return self._snapshots

    @property
    def read_plan(self) -> ReadPlan:
        """What each split's task needs to know."""
        return ReadPlan((ROW_KIND.name, *self._names), self._predicate(), row_kinds=True)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._table.schema.names if self._columns is None else self._columns)

    def _predicate(self) -> Predicate | None:
        if self._where is None:
            return None
        fields = (evolve(ROW_KIND, name=KIND_COLUMN.name), *self._table.schema.fields)
        return rename(bound(predicate_of(self._where), self._table, fields), {KIND_COLUMN.name: ROW_KIND.name})

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        taken = {SNAPSHOT_COLUMN.name, KIND_COLUMN.name} & set(self._names)
        if taken:
            name = min(taken)
            raise InvalidRequest(f"column {name!r} leads the changes anyway", subject=name, hint="name other columns")
        return pa.schema([SNAPSHOT_COLUMN, KIND_COLUMN, *output_schema(self._table, ReadPlan(self._names))])

    def splits(self) -> tuple[DataSplit, ...]:
        """What there is to read, in the order of the snapshots."""
        if self._splits is None:
            predicate, rules = self.read_plan.predicate, FollowRules.of(self._table)
            self._splits = followed_splits(self._engine, self._table, self.snapshots, predicate, rules)
        return self._splits

    def to_arrow(self) -> pa.Table:
        """All changes as one Arrow table; splits are read at the same time, as the engine's executor allows."""
        schema = self.arrow_schema
        task = partial(_read_whole, self._engine, self._table, self.read_plan, schema)
        parts = self._engine.executor.map(task, self.splits())
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        read, schema = self.read_plan, self.arrow_schema
        for split in self.splits():
            yield from read_changes(self._engine, self._table, read, schema, split)

    def __repr__(self) -> str:
        after, through = self._range
        return f"Changes({self._table.identifier}, after={after}, through={through})"


def _read_whole(
    engine: Engine, table: TableDefinition, read: ReadPlan, schema: pa.Schema, split: DataSplit
) -> list[pa.RecordBatch]:
    return list(read_changes(engine, table, read, schema, split))
