"""Scan: a lazy read of a table at one snapshot.

Invariant: the snapshot is fixed when the scan is first planned, and all results of one scan have this snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa
from attrs import evolve, frozen

from paimon.display.notebook import NotebookDisplay, given_arguments, read_or_explain
from paimon.display.other_names import SCAN_NAMES, explain_attribute
from paimon.domain.changelog.incremental_range import Between
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.extras import missing_extra
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import explain_quotes
from paimon.domain.predicate.foreign import condition_of_foreign, format_pruning
from paimon.domain.predicate.text import format_predicate, parse_comparisons
from paimon.domain.predicate.transform import columns_of, join_conjuncts, restrict_to_columns
from paimon.domain.report import Report, ShownText
from paimon.domain.scan.estimate import ScanEstimate, estimate_plan
from paimon.domain.scan.scan_plan import Plan, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_checks import check_names
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_KIND, SEQUENCE_NUMBER, TRACKING_FIELDS
from paimon.operations.metadata.manifests import read_data_manifests
from paimon.operations.metadata.snapshots import find_snapshot, read_statistics, report_expired
from paimon.operations.read.changes.followed import plan_incremental_read
from paimon.operations.read.evaluate import check_condition
from paimon.operations.read.plan import plan_with_fallback
from paimon.operations.read.projection import (
    bind_predicate,
    build_output_schema,
    get_read_defaults,
    list_readable_fields,
)
from paimon.operations.read.split import ReadPlan, describe_index_selections, read_split
from paimon.operations.read.system.views import PLAIN, DataView
from paimon.operations.read.time_travel import PinnedTable, find_incremental_range, pin_snapshot, selects_newest
from paimon.operations.table_context import TableContext
from paimon.results import Results, SnapshotRead, SourceReads, find_reads, first_rows, note_reader

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.dataset as ds

_RECORDS_MODE = "incremental-between-scan-mode"
"""Where this option is given, an incremental scan returns all records, as Java's `TableRead` does."""
PREVIEW_MANIFEST_BYTES = 8 * 1024 * 1024
PREVIEW_FILTER_BYTES = 32 * 1024 * 1024
"""What a notebook's preview reads at most: manifests, and files that a filter may leave no row of."""


class Scan(NotebookDisplay, Results):
    """The selected rows and columns of a table; made by `Table.scan`.

    Nothing is read before a result is requested.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    columns : sequence of str, optional
        Columns of the result, in order; all by default.
    where : str or Predicate, optional
        Condition on rows, as SQL text or as an expression.
    limit : int, optional
        The largest number of rows.
    snapshot, tag, timestamp : int, str, or int, str or datetime, optional
        Time travel, at most one of them.
    view : DataView
        What is read in addition to the rows, for example row kinds (``$audit_log``).
    pinned : PinnedTable, optional
        A state that was selected before; it has priority over time travel.
    """

    _internals = NotebookDisplay._internals | {"pinned", "read_plan"}
    _condition: Predicate | None = None
    """What `_where` means, after the first use: its text is parsed once."""

    def __init__(  # noqa: PLR0913  (the arguments of a public method)
        self,
        context: TableContext,
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
        self._context = context
        self._columns = check_selection(columns, limit)
        self._where = where
        self._limit = None if limit is None else min(limit, LARGEST_LONG)
        self._travel = (snapshot, tag, timestamp)
        self._view = view
        # Set on first use. Not cached_property, which before Python 3.12 has one lock for all scans.
        self._pinned = pinned
        self._between: Between | None = None
        self._leaves_out_retracts = False
        self._read_plan: ReadPlan | None = None
        self._plan: Plan | None = None
        self._schema: pa.Schema | None = None

    @property
    def pinned(self) -> PinnedTable:
        """The table at the snapshot that is read."""
        if self._pinned is None:
            self._between = find_incremental_range(self._context, *self._travel)
            self._pinned = pin_snapshot(self._context, *self._travel)
        return self._pinned

    @property
    def context(self) -> TableContext:
        """The engine, and the table at the schema of the snapshot that is read."""
        table = self.pinned.table
        return self._context if table is self._context.table else self._context.with_table(table)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that can be selected."""
        return list_readable_fields(self.pinned.table, self._view.row_kinds, self._view.binlog, self._reads_row_ids)

    @property
    def _reads_row_ids(self) -> bool:
        """Whether a column of row tracking is named; these columns are not among all columns."""
        if self._view.row_ids:
            return True
        named = set(self._columns or ())
        if self._where is not None:
            named |= columns_of(self._parse_where())
        return not named.isdisjoint(f.name for f in TRACKING_FIELDS)

    @property
    def read_plan(self) -> ReadPlan:
        """What each task needs to read a split: columns, predicate, limit."""
        if self._read_plan is None:
            columns = tuple(self._columns or ())
            if self._columns is None:
                hidden = TRACKING_FIELDS if self.pinned.table.options.row_tracking_enabled else ()
                shown = hidden if self._view.row_ids else ()
                columns = tuple(f.name for f in (*(f for f in self.fields if f not in hidden), *shown))
            predicate, view = self._bind_predicate(), self._view
            unmerged = self._between is not None and not self._between.difference
            keep_retracts = unmerged and _RECORDS_MODE in self._context.options.values and not self._leaves_out_retracts
            flags = view.row_kinds, unmerged, view.binlog, self._reads_row_ids, keep_retracts
            self._read_plan = ReadPlan(columns, predicate, self._limit, *flags)
        return self._read_plan

    def without_retracts(self) -> Scan:
        """Return this scan without the rows of kinds ``-U`` and ``-D`` in each mode of an incremental read.

        Queries of SQL and Spark read in this way.
        """
        found = copy(self)
        found._leaves_out_retracts, found._read_plan = True, None
        return found

    def _limit_to(self, rows: int) -> Self:
        self.plan()  # which also pins the snapshot for later results
        found = copy(self)
        found._limit = min(rows, LARGEST_LONG if self._limit is None else self._limit)
        found._read_plan = None
        return found

    def _list_reads(self) -> SourceReads:
        """Return what is read if the scan does not select a snapshot; read again, it has the newest one."""
        pinned = self.pinned
        if self._between is not None or not selects_newest(self._context, *self._travel):
            return SourceReads()
        table = self._context.table
        read = SnapshotRead(table.location, table.branch, ReadState.of(pinned.snapshot))
        again = partial(
            Scan, self._context, columns=self._columns, where=self._where, limit=self._limit, view=self._view
        )
        return SourceReads([read], again)

    def _parse_where(self) -> Predicate:
        if self._condition is None:
            self._condition = condition_of(self._where)
        return self._condition

    def _bind_predicate(self) -> Predicate | None:
        table = self.pinned.table
        if self._where is None:
            return None
        predicate = self._parse_where()
        plain = {ROW_KIND.name, SEQUENCE_NUMBER.name}
        others = sorted(columns_of(predicate) - plain) if self._view.binlog else []
        if others:
            hint = f"filter by {ROW_KIND.name}, or read {table.table_name}$audit_log"
            raise InvalidRequest(
                f"Table '{table.table_name}$binlog' cannot be filtered by {others[0]!r}: its columns are lists.",
                subject=others[0],
                hint=hint,
            )
        with explain_quotes(self._where):
            bound = bind_predicate(predicate, table, self.fields)
        check_condition(self._context.engine, bound, self.fields)
        return bound

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        if self._schema is None:
            self._schema = build_output_schema(self.pinned.table, self.read_plan)
        return self._schema

    def plan(self) -> Plan:
        """Return the splits to read, and what was pruned."""
        if self._plan is None:
            self._plan = self._make_plan()
        return self._plan

    def _make_plan(self) -> Plan:
        schema = self.arrow_schema  # an unknown column is refused before anything is read
        assert schema is not None
        predicate = self.read_plan.predicate
        if self._between is not None:
            return plan_incremental_read(self.context, self._between, predicate)
        return plan_with_fallback(self.context, self._make_request(predicate))

    def _make_request(self, predicate: Predicate | None) -> ScanRequest:
        table = self.pinned.table
        return ScanRequest(
            snapshot=self.pinned.snapshot,
            predicate=None if predicate is None else restrict_to_columns(predicate, table.schema.names),
            buckets=select_scanned_buckets(table.schema, table.options),
            min_level=self._view.min_level(table),
            made_since_millis=self.pinned.made_since_millis,
        )

    def explain(self) -> str:
        """Return text that says what is read, and what was pruned at each step."""
        plan, predicate = self.plan(), self.read_plan.predicate
        snapshot = "none" if plan.snapshot is None else str(plan.snapshot.id)
        head = [
            f"scan of {self._context.table.table_name} at snapshot {snapshot}, schema {self.pinned.table.schema.id}",
            f"  columns: {', '.join(self.read_plan.columns)}",
            f"  where:   {'everything' if predicate is None else format_predicate(predicate)}",
        ]
        pruning = None if predicate is None else format_pruning(predicate, self.pinned.table.schema.names)
        head += [] if pruning is None else [f"  prunes:  {pruning}"]
        rows = [] if predicate is None else describe_index_selections(self.context, plan.splits, predicate)
        return ShownText("\n".join([*head, plan.explain(), *rows]))

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table; the executor of the engine reads splits in parallel.

        Returns
        -------
        pyarrow.Table
            The rows, in the order of the splits.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://scan-to-arrow")
        >>> catalog.create_database("shop")
        >>> orders = catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount INT")
        >>> snapshot_ids = orders.write([{"id": 1, "amount": 5}, {"id": 2, "amount": 9}]).snapshot_ids
        >>> orders.scan(columns=["amount"], where="id = 2").to_arrow().to_pylist()
        [{'amount': 9}]
        """
        if self._limit is not None:
            return super().to_arrow()
        splits = self.plan().splits
        task = partial(_read_whole, self.context.for_tasks(len(splits)), self.read_plan)
        batches: list[pa.RecordBatch] = []
        for done, read in enumerate(self._context.engine.executor.map(task, splits), 1):
            self._context.engine.observer.progress("read splits", done, len(splits))
            batches += read
        return pa.Table.from_batches(batches, schema=self.arrow_schema)

    def to_dataset(self) -> ds.Dataset:
        """Return the rows as a dataset of pyarrow, to which engines push down their columns and filters.

        Returns
        -------
        pyarrow.dataset.Dataset
            The rows of one snapshot, which is selected now, read whenever an engine uses the dataset. A filter prunes
            partitions, buckets, files and row groups, and keeps the meaning that pyarrow gives it. It can be pickled.

        Raises
        ------
        InvalidRequest
            A column or the condition of the scan is not valid.

        Examples
        --------
        >>> import paimon, pyarrow.compute as pc
        >>> catalog = paimon.connect("memory://scan-to-dataset")
        >>> catalog.create_database("shop")
        >>> orders = catalog.create_table("shop.orders", "id BIGINT NOT NULL, amount INT")
        >>> snapshot_ids = orders.write([{"id": 1, "amount": 5}, {"id": 2, "amount": 9}]).snapshot_ids
        >>> orders.scan().to_dataset().to_table(columns=["amount"], filter=pc.field("id") == 2).to_pylist()
        [{'amount': 9}]
        """
        from paimon.datasets.arrow_datasets import TableDataset  # loads pyarrow.dataset

        rows = self._pin_rows()
        return note_reader(TableDataset(rows), rows.scan._list_reads)

    def lazy(self) -> pl.LazyFrame:
        """Return the rows as a lazy frame of Polars, which reads the columns and rows that a query needs.

        Returns
        -------
        polars.LazyFrame
            The rows of one snapshot, which is selected now. Filters prune partitions, buckets, files and row groups,
            and keep the meaning that Polars gives them.

        Raises
        ------
        InvalidRequest
            A column or the condition of the scan is not valid.
        MissingExtra
            The extra ``polars`` is not installed.
        """
        try:
            from paimon.datasets.polars_frames import scan_rows
        except ModuleNotFoundError as missing:
            raise missing_extra("lazy", "polars") from missing
        return scan_rows(self._pin_rows())

    def _pin_rows(self) -> ScanRows:
        """Choose the snapshot, and check the arguments."""
        found = copy(self)
        found.pinned, found.read_plan  # noqa: B018  (both are made on first use)
        return ScanRows(found)

    def count(self) -> int:
        """Return the number of rows; columns that counting does not need are not read."""
        if self._limit is not None:
            return super().count()
        read = evolve(self.read_plan, columns=())
        splits = self.plan().splits
        task = partial(_count_rows, self.context.for_tasks(len(splits)), read)
        return sum(self._context.engine.executor.map(task, splits))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        left = self._limit
        for batch in self._read_all():
            if left is None:
                yield batch
                continue
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows

    def _read_all(self) -> Iterator[pa.RecordBatch]:
        if self._limit == 0:
            return
        # Memory holds one window of one split at a time, whatever the size of the table.
        splits = self.plan().splits
        for done, split in enumerate(splits, 1):
            yield from read_split(self.context, split, self.read_plan)
            self._context.engine.observer.progress("read splits", done, len(splits))

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        snapshot, tag, timestamp = self._travel
        where = format_predicate(self._where) if isinstance(self._where, Predicate) else self._where
        columns = None if self._columns is None else list(self._columns)
        given = given_arguments(
            columns=columns, where=where, limit=self._limit, snapshot=snapshot, tag=tag, timestamp=timestamp
        )
        return self._context.table.table_name, given

    if not TYPE_CHECKING:  # a type checker must not accept these names

        def __getattr__(self, name: str) -> NoReturn:
            raise explain_attribute(self, name, SCAN_NAMES)

    def _report(self) -> Report:
        from paimon.display.cards import report_scan

        shown = copy(self)  # to show a scan does not pin it
        plan = read_or_explain(shown._plan_for_preview)
        return report_scan(
            *self._describe(), plan, read_or_explain(shown._read_preview) if isinstance(plan, Plan) else plan
        )

    def _plan_for_preview(self) -> Plan | str:
        """Return the plan; where planning would take long, return the reason why it is not made."""
        snapshot = self.pinned.snapshot
        if self._between is not None:
            return "an incremental read is not planned for a preview; head() reads the first rows, explain() plans"
        if self._plan is None and snapshot is not None:
            reason = explain_large_table(self.context, snapshot)
            if reason is not None:
                return f"{reason}, explain() plans"
        return self.plan()

    def _read_preview(self) -> tuple[pa.Table, int, str] | str:
        """Return the first rows, the columns left out and how to get more; or a text why there are none."""
        from paimon.display.cards import MORE_ROWS, PREVIEW_COLUMNS, PREVIEW_ROWS

        names = self.read_plan.columns
        half = PREVIEW_COLUMNS // 2
        shown = names if len(names) <= PREVIEW_COLUMNS else (*names[:half], *names[-half:])
        read = evolve(self.read_plan, columns=shown)
        splits = self.plan().splits
        if read.predicate is not None:
            ends = accumulate(split.file_size for split in splits)
            splits = tuple(s for s, end in zip(splits, ends, strict=True) if end <= PREVIEW_FILTER_BYTES)
        rows = PREVIEW_ROWS + 1 if self._limit is None else min(PREVIEW_ROWS + 1, self._limit)
        table = self.pinned.table
        batches = chain.from_iterable(read_split(self.context, split, read) for split in splits)
        found = pa.Table.from_batches(first_rows(batches, rows), schema=build_output_schema(table, read))
        if rows and not found.num_rows and len(splits) < len(self.plan().splits):
            return "no matching row in the first files; head() reads more files"
        more = "head(n) reads more files" if rows and len(splits) < len(self.plan().splits) else ""
        more = MORE_ROWS if found.num_rows > PREVIEW_ROWS else more
        return found.slice(0, PREVIEW_ROWS), len(names) - len(shown), more


find_reads.register(Scan, Scan._list_reads)


@frozen(eq=False)
class ScanRows:
    """The rows of a scan of a pinned snapshot, of which a dataset reads some columns and rows."""

    scan: Scan
    # whether the plan of the scan is a split, which other conditions keep
    is_split: bool = False

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns."""
        return self.scan.arrow_schema

    @property
    def takes_conditions(self) -> bool:
        """Whether a condition on the result means the same on stored rows, so that `narrow` can take it."""
        scan = self.scan
        return scan._limit is None and not scan._view.binlog and not get_read_defaults(scan.pinned.table)

    def narrow(self, columns: Sequence[str], condition: Any) -> ScanRows:
        """Return some columns, and the rows for which a condition is also true."""
        wheres = [condition_of(where) for where in (self.scan._where, condition) if where is not None]
        found = copy(self.scan)
        found._columns, found._where = tuple(columns), join_conjuncts(wheres) if wheres else None
        found._condition = None
        found._read_plan, found._schema = None, None
        found._plan = self.scan._plan if self.is_split else None
        return ScanRows(found, self.is_split)

    def divide(self) -> list[ScanRows]:
        """Return the rows of each split of the plan. A limit is one of all splits, so it allows one part."""
        if self.scan._limit is not None:
            return [self]
        plan, parts = self.scan.plan(), []
        for split in plan.splits:
            part = copy(self.scan)
            part._plan = evolve(plan, splits=(split,))
            parts.append(ScanRows(part, is_split=True))
        return parts

    def plan(self) -> Plan:
        """Find what to read."""
        return self.scan.plan()

    def to_arrow(self) -> pa.Table:
        """Return the rows in memory."""
        return self.scan.to_arrow()

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return self.scan.to_batches()

    def count(self) -> int:
        """Return the number of rows."""
        return self.scan.count()


def _read_whole(context: TableContext, read: ReadPlan, split: DataSplit) -> list[pa.RecordBatch]:
    return list(read_split(context, split, read))


def _count_rows(context: TableContext, read: ReadPlan, split: DataSplit) -> int:
    return sum(batch.num_rows for batch in read_split(context, split, read))


def explain_large_table(context: TableContext, snapshot: Snapshot) -> str | None:
    """Return why a preview does not read the manifests of a table, or None if they are small."""
    with report_expired(context, snapshot.id):
        manifests = read_data_manifests(context, snapshot)
    if sum(manifest.file_size for manifest in manifests) <= PREVIEW_MANIFEST_BYTES:
        return None
    return "the table is too large for a preview; head() reads the first rows"


def estimate_scan(scan: Scan) -> ScanEstimate:
    """Estimate the rows and bytes of a scan, from its plan and the statistics that ANALYZE stored."""
    plan, read, context = scan.plan(), scan.read_plan, scan.context
    statistics, analyzed_rows = None, None
    if plan.snapshot is not None and plan.snapshot.statistics is not None:
        with suppress(PaimonError):  # a query must not fail because a statistics file is lost
            statistics = read_statistics(context, plan.snapshot)
    if statistics is not None:
        analyzed = find_snapshot(context, statistics.snapshot_id)
        analyzed_rows = None if analyzed is None else analyzed.total_record_count
    return estimate_plan(plan, read.columns, read.predicate, statistics, analyzed_rows)


def lookup_keys(scan: Scan, keys: Any, keep_missing: bool) -> pa.Table:
    """Return the rows of whole primary keys at the snapshot of a scan without condition; see `Table.lookup`."""
    columns, request = scan.read_plan.columns, scan._make_request(None)
    if scan._between is not None:
        hint = "give snapshot=, or reset the options of the incremental read"
        raise InvalidRequest("An incremental read has no rows to look up.", subject="keys", hint=hint)
    from paimon.operations.lookup_rows import lookup_rows  # loaded with the first lookup

    return lookup_rows(scan.context, request, columns, keys, keep_missing=keep_missing)


def check_selection(columns: Iterable[str] | None, limit: int | None = None) -> tuple[str, ...] | None:
    """Check the arguments `columns` and `limit` of a scan; return the columns, which may be an iterator."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        wrong = "negative" if isinstance(limit, int) else "not a number"
        raise InvalidRequest(f"Limit {limit!r} is {wrong}.", subject="limit", hint="give a number of rows, or None")
    return None if columns is None else check_names(columns, "columns")


def condition_of(where: Any) -> Predicate:
    """Return the condition of SQL text, which may be any scalar SQL expression, or of an expression."""
    if isinstance(where, Predicate):
        return where
    foreign = condition_of_foreign(where)
    if foreign is not None:
        return foreign
    simple = parse_comparisons(where)
    if simple is not None:
        return simple
    from paimon.domain.predicate.scalar_sql import parse_condition  # loads the SQL parser

    return parse_condition(where)
