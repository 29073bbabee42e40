"""The program API for reading: plan in one process, read the splits in others.

Splits are plain values that can travel between processes. Each builder binds arguments and delegates to an operation.

Source: the names follow the program APIs of Java and of pypaimon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.scan.splits import DataSplit
from paimon.domain.text_checks import check_names
from paimon.notebook import NotebookDisplay, given_arguments
from paimon.operations.read.projection import build_output_schema
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.table_context import TableContext
from paimon.results import Results
from paimon.scan import Scan, condition_of


class BuilderDisplay(NotebookDisplay):
    """The text and the card of a builder in notebooks."""

    __slots__ = ()
    _internals = NotebookDisplay._internals | {"table", "inner", "read_plan", "overwrite_spec", "overwrites"}


@frozen(repr=False)
class ReadBuilder(BuilderDisplay):
    """Collect what to read.

    A builder is immutable: each `with_…` method returns a new one.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    predicate : Predicate or str, optional
        Condition on rows, as an expression or as SQL text.
    columns : tuple of str, optional
        Columns of the result, in order; all by default.
    limit : int, optional
        The largest number of rows; None for no limit.
    """

    context: TableContext
    predicate: Predicate | str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None

    def with_filter(self, predicate: Predicate | str) -> ReadBuilder:
        """Return a builder that reads the rows where `predicate` is true; a second filter is combined by AND."""
        if self.predicate is not None:
            predicate = condition_of(self.predicate) & condition_of(predicate)
        return evolve(self, predicate=predicate)

    def with_projection(self, columns: Sequence[str]) -> ReadBuilder:
        """Return a builder that reads these columns, in this order."""
        return evolve(self, columns=check_names(columns, "columns"))

    def with_limit(self, limit: int) -> ReadBuilder:
        """Return a builder that reads at most `limit` rows of the splits that one call reads."""
        return evolve(self, limit=limit)

    def new_scan(self) -> TableScan:
        """Return the object that plans splits."""
        return TableScan(self._scan())

    def new_read(self) -> TableRead:
        """Return the object that reads splits."""
        return TableRead(self._scan())

    def explain(self) -> str:
        """Return text that says what would be read, and what is pruned at each step."""
        return self._scan().explain()

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._scan()._describe()

    def _scan(self) -> Scan:
        return Scan(self.context, columns=self.columns, where=self.predicate, limit=self.limit)


class TableScan(BuilderDisplay):
    """Plan the splits of a read; made by `ReadBuilder.new_scan`."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._scan._describe()

    def plan(self) -> ScanPlan:
        """Return the plan; the snapshot of the first plan is kept."""
        return ScanPlan(self._scan.plan())


@frozen(repr=False)
class ScanPlan:
    """The plan of a read, made by `TableScan.plan`.

    Parameters
    ----------
    planned : Plan
        Splits, snapshot, and what was pruned.
    """

    planned: Plan

    def __repr__(self) -> str:
        return f"Scan{self.planned!r}"

    def _repr_html_(self) -> str:
        return self.planned._repr_html_()

    def splits(self) -> tuple[DataSplit, ...]:
        """Return the units of work; they are picklable, and each may be read in another process."""
        return self.planned.splits

    def explain(self) -> str:
        """Return text that says what was pruned at each step."""
        return self.planned.explain()


class TableRead(BuilderDisplay):
    """Read splits of a plan, in this or in another process: it pickles with the engine of its builder."""

    def __init__(self, scan: Scan) -> None:
        self.context = scan.context
        self.read_plan: ReadPlan = scan.read_plan

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        where = None if self.read_plan.predicate is None else format_predicate(self.read_plan.predicate)
        columns = list(self.read_plan.columns)
        return self.context.table.table_name, given_arguments(columns=columns, where=where, limit=self.read_plan.limit)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        return build_output_schema(self.context.table, self.read_plan)

    def to_batches(self, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the splits, one split after the other; the builder's limit counts over all."""
        left = self.read_plan.limit
        for split in splits:
            if left is not None and left <= 0:
                return
            for batch in read_split(self.context, split, self.read_plan):
                yield batch if left is None else batch.slice(0, max(left, 0))
                left = None if left is None else left - batch.num_rows

    def read(self, splits: Sequence[DataSplit]) -> Results:
        """Return the rows of the splits in any form, for example ``read(splits).to_polars()``."""
        return _SplitRows(self, splits)

    def to_arrow(self, splits: Sequence[DataSplit]) -> pa.Table:
        """Return all rows of the splits as one Arrow table."""
        return self.read(splits).to_arrow()

    def to_arrow_batch_reader(self, splits: Sequence[DataSplit]) -> pa.RecordBatchReader:
        """Return a reader of the splits, which reads while it is consumed."""
        return self.read(splits).to_batches()

    def to_pandas(self, splits: Sequence[DataSplit]) -> Any:
        """Return all rows of the splits as a pandas DataFrame (needs the extra ``pandas``)."""
        return self.read(splits).to_pandas()


class _SplitRows(Results):
    def __init__(self, read: TableRead, splits: Sequence[DataSplit]) -> None:
        self._read = read
        self._splits = splits

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._read.arrow_schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._read.to_batches(self._splits)
