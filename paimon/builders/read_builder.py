"""The program API for reading: plan in one process, read the splits in others.

Splits are plain values that can travel between processes. Each builder binds arguments and delegates to an operation.

Source: the names follow the program APIs of Java and of pypaimon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.display.notebook import BuilderDisplay, given_arguments
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.distribute import select_shard, select_slice
from paimon.domain.scan.scan_plan import Plan
from paimon.domain.scan.splits import DataSplit
from paimon.domain.text_checks import check_names
from paimon.domain.types.system_columns import ROW_KIND
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.read.projection import build_output_schema
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.read.system.views import DATA_VIEWS, PLAIN
from paimon.operations.table_context import TableContext
from paimon.results import Results, SourceReads, find_reads
from paimon.scan import Scan, condition_of


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
    row_kinds : bool
        Whether the kind of each row is the first column of the result.
    """

    context: TableContext
    predicate: Predicate | str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    row_kinds: bool = False

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

    def with_row_kinds(self) -> ReadBuilder:
        """Return a builder that also reads deletes, and the kind of each row as the first column, `rowkind`.

        The rows are those of the system table `audit_log`.
        """
        return evolve(self, row_kinds=True)

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
        view = DATA_VIEWS["audit_log"] if self.row_kinds else PLAIN
        columns = self.columns
        if columns is not None and self.row_kinds and ROW_KIND.name not in columns:
            columns = (ROW_KIND.name, *columns)
        return Scan(self.context, columns=columns, where=self.predicate, limit=self.limit, view=view)


class TableScan(BuilderDisplay):
    """Plan the splits of a read; made by `ReadBuilder.new_scan`.

    Parameters
    ----------
    scan : Scan
        What to read.
    select : callable, optional
        Selects the part of the splits that is planned.
    """

    def __init__(
        self, scan: Scan, select: Callable[[Sequence[DataSplit]], tuple[DataSplit, ...]] | None = None
    ) -> None:
        self._scan = scan
        self._select = select

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._scan._describe()

    def plan(self) -> ScanPlan:
        """Return the plan; the snapshot of the first plan is kept."""
        planned = self._scan.plan()
        return ScanPlan(planned if self._select is None else evolve(planned, splits=self._select(planned.splits)))

    def with_shard(self, shard: int, shards: int) -> TableScan:
        """Return a scan that plans one of several disjoint parts, so that each of several processes reads one.

        All processes must plan the same snapshot: give it by the option `scan.snapshot-id`, or plan once.

        Parameters
        ----------
        shard : int
            The number of the part, from 0.
        shards : int
            The number of parts. They have about equally many stored rows, where files need no merge.

        Returns
        -------
        TableScan
            Its plan raises `InvalidRequest` if there is no such part.
        """
        return TableScan(self._scan, partial(select_shard, shard=shard, shards=shards))

    def with_slice(self, first: int, end: int) -> TableScan:
        """Return a scan that plans the stored rows from one position to another, in the order of the plan.

        Positions count rows before the filter and deletion vectors. Tables whose files are merged have none: their
        plan raises `InvalidRequest`.
        """
        return TableScan(self._scan, partial(select_slice, first=first, end=end))


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
        self._reads = find_reads(scan).reads

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

    def to_torch(
        self,
        splits: Sequence[DataSplit],
        *,
        streaming: bool = False,
        batch_size: int | None = None,
        convert: Callable[[pa.RecordBatch], Any] | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> Any:
        """Return the rows of the splits as a dataset of PyTorch (needs the extra ``torch``).

        Parameters
        ----------
        splits : sequence of DataSplit
            The splits.
        streaming : bool
            Read while iterating; the workers of a `DataLoader` share the splits. By default all rows are read at once.
        batch_size : int, optional
            With `streaming`: return record batches of so many rows; by default one dict for each row.
        convert : callable, optional
            Converts each record batch, for instance to tensors.
        rank, world_size : int
            The number of this process, and the number of processes that share the splits.

        Returns
        -------
        torch.utils.data.Dataset
            The rows.

        Raises
        ------
        InvalidRequest
            An argument needs `streaming`, or a value is not possible.
        MissingExtra
            PyTorch is not installed.
        """
        if not streaming and (batch_size, convert, rank, world_size) != (None, None, 0, 1):
            raise InvalidRequest(
                "A dataset that holds all rows takes no batches and no ranks.",
                subject="streaming",
                hint="pass streaming=True",
            )
        if (batch_size is not None and batch_size < 1) or not 0 <= rank < world_size:
            raise InvalidRequest(
                f"Batches of {batch_size} rows for rank {rank} of {world_size} are not possible.",
                subject="batch_size" if rank < world_size else "rank",
                hint="give a size above 0, and a rank from 0, below world_size",
            )
        try:
            from paimon.datasets.torch_datasets import RowDataset, StreamDataset, TorchOptions
        except ModuleNotFoundError as missing:
            raise missing_extra("to_torch", "torch") from missing
        if not streaming:
            return RowDataset(self, splits)
        return StreamDataset(self, splits, TorchOptions(batch_size, convert, rank, world_size))

    def to_ray(self, splits: Sequence[DataSplit], **options: Any) -> Any:
        """Return the rows of the splits as a dataset of Ray, one task for each split (needs the extra ``ray``).

        Parameters
        ----------
        splits : sequence of DataSplit
            The splits.
        **options : object
            Arguments of `ray.data.read_datasource`, such as ``concurrency``.

        Returns
        -------
        ray.data.Dataset
            The rows, which are read when the dataset is used.

        Raises
        ------
        MissingExtra
            Ray is not installed.
        """
        try:
            import ray.data

            from paimon.datasets.ray_datasets import PaimonDatasource
        except ModuleNotFoundError as missing:
            raise missing_extra("to_ray", "ray") from missing
        rows = ray.data.read_datasource(PaimonDatasource(self, splits), **options)
        # Each task reads at most so many rows of its split; this limit is that of all splits.
        return rows if self.read_plan.limit is None else rows.limit(self.read_plan.limit)


def find_split_reads(read: TableRead, splits: Sequence[DataSplit]) -> SourceReads:
    """Return what splits read, unless the caller chose their snapshot; splits cannot be read again as newer ones."""
    oldest = min((split.snapshot_id for split in splits), default=None)
    if oldest is None:
        return SourceReads(read._reads)
    found = find_snapshot(read.context, oldest)
    state = ReadState(oldest, "") if found is None else ReadState.of(found)
    return SourceReads(evolve(own, state=state) for own in read._reads)


class _SplitRows(Results):
    def __init__(self, read: TableRead, splits: Sequence[DataSplit]) -> None:
        self._read = read
        self._splits = splits

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._read.arrow_schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._read.to_batches(self._splits)

    def _list_reads(self) -> SourceReads:
        return find_split_reads(self._read, self._splits)


find_reads.register(_SplitRows, _SplitRows._list_reads)
