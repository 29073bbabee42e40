"""Scan: a lazy, pinned read of a table.

Law: the snapshot is pinned when the scan is first planned, and all that is asked of one scan is answered at that
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from itertools import accumulate, chain

import pyarrow as pa
from attrs import evolve

from paimon.domain.changelog.between import Between
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import describe
from paimon.domain.predicate.transform import columns_of, only_columns
from paimon.domain.scan.plan import Plan, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import scanned_buckets
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.texts import check_names
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import ROW_KIND, SEQUENCE_NUMBER
from paimon.notebook import NotebookDisplay, given_arguments, read_or_explain
from paimon.operations.read.changes.incremental import between, plan_between
from paimon.operations.read.fallback import plan_with_fallback
from paimon.operations.read.manifests import data_manifests
from paimon.operations.read.projection import bound, readable_fields
from paimon.operations.read.split import ReadPlan, output_schema, read_split
from paimon.operations.read.system.views import PLAIN, DataView
from paimon.operations.read.time_travel import PinnedTable, pin
from paimon.ports.engine import Engine
from paimon.results import Results, first_rows

PREVIEW_ROWS = 10
PREVIEW_COLUMNS = 20
PREVIEW_MANIFEST_BYTES = 8 * 1024 * 1024
PREVIEW_FILTER_BYTES = 32 * 1024 * 1024
"""What a notebook's preview reads at most: manifests, and files that a filter may leave no row of."""


class Scan(NotebookDisplay, Results):
    """Rows of a table: `columns` of those where `where` is true, at most `limit` of them.

    Made by `Table.scan`. Nothing is read before a result is asked for. `pinned` is a state that was pinned before.
    """

    _internals = NotebookDisplay._internals | {"pinned", "read_plan"}

    def __init__(
        self,
        engine: Engine,
        table: TableDefinition,
        *,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
        view: DataView = PLAIN,
        pinned: PinnedTable | None = None,
    ) -> None:
        check_selection(columns, limit)
        self._engine = engine
        self._table = table
        self._columns = columns
        self._where = where
        self._limit = None if limit is None else min(limit, LARGEST_LONG)
        self._travel = (snapshot, tag, timestamp)
        self._view = view
        # Filled when first asked for. Not cached_property: before Python 3.12 that makes all scans wait for one.
        self._pinned = pinned
        self._between: Between | None = None
        self._read_plan: ReadPlan | None = None
        self._plan: Plan | None = None
        self._schema: pa.Schema | None = None

    @property
    def pinned(self) -> PinnedTable:
        """The table at the snapshot that is read."""
        if self._pinned is None:
            self._between = between(self._engine, self._table, *self._travel)
            self._pinned = pin(self._engine, self._table, *self._travel)
        return self._pinned

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that can be asked for."""
        return readable_fields(self.pinned.table, self._view.row_kinds, self._view.binlog)

    @property
    def read_plan(self) -> ReadPlan:
        """What each split's task needs to know: columns, predicate, limit."""
        if self._read_plan is None:
            columns = tuple(f.name for f in self.fields) if self._columns is None else tuple(self._columns)
            predicate, view = self._predicate(), self._view
            unmerged = self._between is not None and not self._between.difference
            self._read_plan = ReadPlan(columns, predicate, self._limit, view.row_kinds, unmerged, view.binlog)
        return self._read_plan

    def _predicate(self) -> Predicate | None:
        table = self.pinned.table
        if self._where is None:
            return None
        predicate = predicate_of(self._where)
        plain = {ROW_KIND.name, SEQUENCE_NUMBER.name}
        others = sorted(columns_of(predicate) - plain) if self._view.binlog else []
        if others:
            hint = f"filter by {ROW_KIND.name}, or read {table.identifier}$audit_log"
            raise InvalidRequest(f"a binlog shows columns such as {others[0]!r} as lists", subject=others[0], hint=hint)
        return bound(predicate, table, self.fields)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        if self._schema is None:
            self._schema = output_schema(self.pinned.table, self.read_plan)
        return self._schema

    def plan(self) -> Plan:
        """The splits to read and what was pruned on the way to them."""
        if self._plan is None:
            self._plan = self._planned()
        return self._plan

    def _planned(self) -> Plan:
        schema = self.arrow_schema  # an unknown column is refused before anything is read
        assert schema is not None
        table, predicate = self.pinned.table, self.read_plan.predicate
        if self._between is not None:
            return plan_between(self._engine, table, self._between, predicate)
        request = ScanRequest(
            snapshot=self.pinned.snapshot,
            predicate=None if predicate is None else only_columns(predicate, table.schema.names),
            buckets=scanned_buckets(table.schema, table.options),
            min_level=self._view.min_level(table),
            made_since_millis=self.pinned.made_since_millis,
        )
        return plan_with_fallback(self._engine, table, request)

    def explain(self) -> str:
        """What is read, and what was pruned at each step, as text."""
        plan, predicate = self.plan(), self.read_plan.predicate
        snapshot = "none" if plan.snapshot is None else str(plan.snapshot.id)
        head = [
            f"scan of {self._table.identifier} at snapshot {snapshot}, schema {self.pinned.table.schema.id}",
            f"  columns: {', '.join(self.read_plan.columns)}",
            f"  where:   {'everything' if predicate is None else describe(predicate)}",
        ]
        return "\n".join([*head, plan.explain()])

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table; splits are read at the same time, as the engine's executor allows."""
        if self._limit is not None:
            return super().to_arrow()
        splits = self.plan().splits
        task = partial(_read_whole, self._engine, self.pinned.table, self.read_plan)
        batches: list[pa.RecordBatch] = []
        for done, read in enumerate(self._engine.executor.map(task, splits), 1):
            self._engine.observer.progress("read splits", done, len(splits))
            batches += read
        return pa.Table.from_batches(batches, schema=self.arrow_schema)

    def count(self) -> int:
        """Number of rows; no column is read that counting does not need."""
        if self._limit is not None:
            return super().count()
        read = evolve(self.read_plan, columns=())
        task = partial(_count, self._engine, self.pinned.table, read)
        return sum(self._engine.executor.map(task, self.plan().splits))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        left = self._limit
        for batch in self._unlimited():
            if left is None:
                yield batch
                continue
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows

    def _unlimited(self) -> Iterator[pa.RecordBatch]:
        if self._limit == 0:
            return
        # A stream holds one window of one split at a time, however large the table is.
        splits = self.plan().splits
        for done, split in enumerate(splits, 1):
            yield from read_split(self._engine, self.pinned.table, split, self.read_plan)
            self._engine.observer.progress("read splits", done, len(splits))

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        snapshot, tag, timestamp = self._travel
        where = describe(self._where) if isinstance(self._where, Predicate) else self._where
        return self._table.identifier, given_arguments(
            columns=None if self._columns is None else list(self._columns),
            where=where, limit=self._limit, snapshot=snapshot, tag=tag, timestamp=timestamp,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        from paimon.cards import scan_card

        shown = copy(self)  # to show a scan does not pin it
        plan = read_or_explain(shown._cheap_plan)
        return scan_card(*self._describe(), plan, read_or_explain(shown._preview) if isinstance(plan, Plan) else plan)

    def _cheap_plan(self) -> Plan | str:
        """The plan; why it is not made, where it would take long."""
        snapshot = self.pinned.snapshot
        if self._between is not None:
            return "an incremental read is not planned to be shown; head() reads the first rows, explain() plans"
        if self._plan is None and snapshot is not None:
            manifests = data_manifests(self._engine, self.pinned.table, snapshot)
            if sum(manifest.file_size for manifest in manifests) > PREVIEW_MANIFEST_BYTES:
                return "not shown for so large a table; head() reads the first rows, explain() plans"
        return self.plan()

    def _preview(self) -> tuple[pa.Table, int] | str:
        """The first rows, without so many columns in the middle; why there are none, where they take long to find."""
        names = self.read_plan.columns
        half = PREVIEW_COLUMNS // 2
        shown = names if len(names) <= PREVIEW_COLUMNS else (*names[:half], *names[-half:])
        read = evolve(self.read_plan, columns=shown)
        splits = self.plan().splits
        if read.predicate is not None:
            ends = accumulate(split.file_size for split in splits)
            splits = tuple(s for s, end in zip(splits, ends, strict=True) if end <= PREVIEW_FILTER_BYTES)
        rows = PREVIEW_ROWS if self._limit is None else min(PREVIEW_ROWS, self._limit)
        table = self.pinned.table
        batches = chain.from_iterable(read_split(self._engine, table, split, read) for split in splits)
        found = pa.Table.from_batches(first_rows(batches, rows), schema=output_schema(table, read))
        if rows and not found.num_rows and len(splits) < len(self.plan().splits):
            return "no such row in the first files; head() looks on"
        return found, len(names) - len(shown)


def _read_whole(engine: Engine, table: TableDefinition, read: ReadPlan, split: DataSplit) -> list[pa.RecordBatch]:
    return list(read_split(engine, table, split, read))


def _count(engine: Engine, table: TableDefinition, read: ReadPlan, split: DataSplit) -> int:
    return sum(batch.num_rows for batch in read_split(engine, table, split, read))


def check_selection(columns: Sequence[str] | None, limit: int | None) -> None:
    """InvalidRequest where columns are no list of names, or a limit is no count."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        wrong = "negative" if isinstance(limit, int) else "not a number"
        raise InvalidRequest(f"limit {limit!r} is {wrong}", subject="limit", hint="give a count of rows, or None")
    if isinstance(columns, str):
        raise InvalidRequest(f"columns is the text {columns!r}", subject="columns", hint=f"write [{columns!r}]")
    if columns is not None:
        check_names(columns, "columns")
    strange = [c for c in columns or () if not isinstance(c, str)]
    if strange:
        raise InvalidRequest(f"{strange[0]!r} is no column name", subject="columns", hint="name columns by their text")


def predicate_of(where: str | Predicate) -> Predicate:
    """A predicate given as SQL text or as an expression."""
    if isinstance(where, Predicate):
        return where
    from paimon.domain.predicate.sql import parse_predicate  # the parser is only loaded for text

    return parse_predicate(where)
