"""Read builders, and the reads of splits, by the names of pypaimon.

Source: `pypaimon.read`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from paimon.builders.read_builder import find_split_reads
from paimon.compat.catalog_values import state_errors
from paimon.compat.data_types import DataField, arrow_schema_of
from paimon.compat.predicate import Predicate, PredicateBuilder
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import ROW_KIND_COLUMN, OffsetRow, RowKind
from paimon.compat.scan import ExplainResult, TableScan, explain_plan, to_paimon_builder
from paimon.compat.schema import from_paimon_fields
from paimon.compat.stored_table import StoredTable
from paimon.domain.types.arrow import fields_from_arrow
from paimon.results import note_reader

if TYPE_CHECKING:
    from paimon.builders.read_builder import TableRead as PaimonTableRead


ReadSplits = Callable[[Sequence[Any]], Iterator[pa.RecordBatch]]


def choose_parallelism(table: StoredTable, given: int | None, splits: int, default: int | None = None) -> int:
    """Return how many splits to read at the same time: at most the catalog option `threads` allows.

    The argument has priority over the option `read.parallelism`; without both it is `default`, or as many as possible.
    """
    source, value = "parallelism", given
    if given is None:
        source, value = "read.parallelism", table.options.read_parallelism()
    if value is not None and value < 1:
        raise ValueError(f"{source} must be >= 1, got {value}")
    most = table.inner.engine.memory.tasks
    return max(1, min(splits, most, value or default or most))


def read_batches(
    read: ReadSplits, splits: Sequence[Any], parallelism: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits in their order."""
    if parallelism == 1 or len(splits) < 2:
        yield from read(splits)
        return
    left = limit
    for batch in _read_ahead(read, splits, parallelism):
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _read_ahead(read: ReadSplits, splits: Sequence[Any], parallelism: int) -> Iterator[pa.RecordBatch]:
    with ThreadPoolExecutor(min(parallelism, len(splits))) as pool:
        waiting: deque[Future[list[pa.RecordBatch]]] = deque()
        try:
            for split in splits:
                if len(waiting) == parallelism:
                    yield from waiting.popleft().result()
                waiting.append(pool.submit(lambda chosen: list(read([chosen])), split))
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class TableRead(PeerClass):
    """Read splits; made by `ReadBuilder.new_read`."""

    def __init__(
        self,
        table: StoredTable,
        predicate: Predicate | None = None,
        read_type: Sequence[DataField] | Mapping[str, str] | None = None,
        include_row_kind: bool = False,
        output_projection: object = None,
        limit: int | None = None,
    ) -> None:
        if output_projection is not None:
            refuse("output_projection", "call ReadBuilder.with_projection")
        self.table = table
        self._include_row_kind = include_row_kind
        columns = read_type if isinstance(read_type, Mapping) else None
        if columns is None and read_type is not None:
            columns = {column.name: column.name for column in read_type}  # type: ignore[union-attr]
        self._reopen = partial(self._open, predicate, columns, limit)
        self._read, self._schema = self._reopen()

    @staticmethod
    def convert_rows_to_arrow_batch(row_tuples: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
        """Return rows of Python values as an Arrow batch."""
        columns = zip(*row_tuples, strict=True) if row_tuples else [()] * len(schema)
        return pa.RecordBatch.from_pydict(dict(zip(schema.names, map(list, columns), strict=True)), schema=schema)

    @property
    def include_row_kind(self) -> bool:
        """Whether the kind of each row is the first column, ``_row_kind``."""
        return self._include_row_kind

    @include_row_kind.setter
    def include_row_kind(self, value: bool) -> None:
        self._include_row_kind = value
        self._read, self._schema = self._reopen()

    def _open(
        self, predicate: Predicate | None, columns: Mapping[str, str] | None, limit: int | None
    ) -> tuple[PaimonTableRead, pa.Schema]:
        names = list(columns) if columns is not None else self.table.field_names
        builder = to_paimon_builder(self.table, predicate, None, columns, limit)
        if self.include_row_kind:
            builder = builder.with_row_kinds()
            names = [ROW_KIND_COLUMN, *names]
        read = builder.new_read()
        schema = arrow_schema_of(fields_from_arrow(read.arrow_schema))
        renamed = [column.with_name(name) for column, name in zip(schema, names, strict=True)]
        return read, pa.schema(renamed)

    def to_arrow(
        self, splits: Sequence[Any], parallelism: int | None = None, blob_parallelism: int | None = None
    ) -> pa.Table:
        """Return the rows of splits as an Arrow table."""
        default = None if self._limit is None else 1  # a limit may need a part of the splits
        batches = list(self._batches(splits, choose_parallelism(self.table, parallelism, len(splits), default)))
        return pa.Table.from_batches(batches, schema=self._schema)

    def to_arrow_batch_reader(
        self, splits: Sequence[Any], blob_parallelism: int | None = None, parallelism: int | None = None
    ) -> pa.RecordBatchReader:
        """Return a reader that reads splits while it is consumed: one by one, to need little memory, by default."""
        batches = self._batches(splits, choose_parallelism(self.table, parallelism, len(splits), default=1))
        reader = pa.RecordBatchReader.from_batches(self._schema, batches)
        inner = [getattr(split, "inner", split) for split in splits]
        return note_reader(reader, partial(find_split_reads, self._read, inner))

    def to_pandas(self, splits: Sequence[Any], parallelism: int | None = None) -> Any:
        """Return the rows of splits as a pandas DataFrame."""
        return self.to_arrow(splits, parallelism).to_pandas()

    def to_duckdb(
        self, splits: Sequence[Any], table_name: str, connection: Any = None, parallelism: int | None = None
    ) -> Any:
        """Return a DuckDB connection in which the rows of splits have a name."""
        import duckdb

        chosen = connection or duckdb.connect(database=":memory:")
        chosen.register(table_name, self.to_arrow(splits, parallelism))
        return chosen

    def to_iterator(self, splits: Sequence[Any]) -> Iterator[OffsetRow]:
        """Return the rows of splits one by one; this is much slower than batches."""
        for batch in self._batches(splits):
            columns = [column.to_pylist() for column in batch.columns]
            kinds = columns.pop(0) if self.include_row_kind else None
            for place, values in enumerate(zip(*columns, strict=True)):
                row = OffsetRow(values, 0, len(values))
                if kinds is not None:
                    row.set_row_kind_byte(RowKind.from_string(kinds[place]).value)
                yield row

    def to_torch(
        self, splits: Sequence[Any], streaming: bool = False, prefetch_concurrency: int = 1, **named: Any
    ) -> Any:
        """Return a dataset of PyTorch."""
        return make_dataset(self, splits, streaming, {"prefetch_concurrency": prefetch_concurrency, **named})

    def to_ray(
        self,
        splits: Sequence[Any],
        *,
        ray_remote_args: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
        override_num_blocks: int | None = None,
        **read_args: Any,
    ) -> Any:
        """Return a dataset of Ray, which reads splits in its tasks."""
        named = {
            "ray_remote_args": ray_remote_args,
            "concurrency": concurrency,
            "override_num_blocks": override_num_blocks,
            **read_args,
        }
        if override_num_blocks is not None and override_num_blocks < 1:
            raise ValueError(f"override_num_blocks must be at least 1, got {override_num_blocks}.")
        given = {name: value for name, value in named.items() if value is not None}
        rows = self._read.to_ray([split.inner for split in splits], **given)
        names = self._schema.names
        return rows if names == self._read.arrow_schema.names else rows.rename_columns(names)

    def open_plain(self) -> PaimonTableRead:
        """Return the read of this library."""
        return self._read

    @property
    def read_type(self) -> list[DataField]:
        """The columns that are read."""
        ids = {column.name: column.id for column in self.table.fields}
        fields = from_paimon_fields(fields_from_arrow(self._read.arrow_schema))
        for column, name in zip(fields, self._schema.names, strict=True):
            column.name, column.id = name, ids.get(name, column.id)
        return fields

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._schema

    def _batches(self, splits: Sequence[Any], parallelism: int = 1) -> Iterator[pa.RecordBatch]:
        return read_batches(self._share_memory(parallelism)._read_splits, splits, parallelism, self._limit)

    def _share_memory(self, tasks: int) -> Self:
        """Return the read of each of several tasks, which share the memory budget."""
        shared = copy(self)
        shared._read = copy(self._read)
        shared._read.context = self._read.context.for_tasks(tasks)
        return shared

    @property
    def _limit(self) -> int | None:
        return self._read.read_plan.limit

    def _read_splits(self, splits: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of splits, one split after the other."""
        for batch in self._read.to_batches([getattr(split, "inner", split) for split in splits]):
            yield _as_schema(batch, self._schema)


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the names and metadata of pypaimon; values are only copied where a type differs."""
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class ReadBuilder(PeerClass):
    """What to read; made by `FileStoreTable.new_read_builder`. Each method changes the builder and returns it."""

    def __init__(self, table: StoredTable) -> None:
        self.table = table
        self._predicate: Predicate | None = None
        self._partition_filter: Predicate | None = None
        self._columns: dict[str, str] | None = None
        self._limit: int | None = None

    def with_filter(self, predicate: Predicate | None) -> ReadBuilder:
        """Read the rows where a predicate is true; it replaces an earlier one."""
        self._predicate = predicate
        return self

    def with_partition_filter(self, partition_filter: Predicate | Mapping[str, Any] | None) -> ReadBuilder:
        """Read the partitions where a predicate is true, or whose columns have these values."""
        if isinstance(partition_filter, Mapping):
            build = PredicateBuilder(self.table.fields)
            parts = [build.is_null(k) if v is None else build.equal(k, v) for k, v in partition_filter.items()]
            partition_filter = build.and_predicates(parts)
        self._partition_filter = partition_filter
        return self

    def with_projection(self, projection: Sequence[str] | Mapping[str, str] | None) -> ReadBuilder:
        """Read these columns, in this order; ``"a.b"`` is a field of a row, and becomes the column ``a_b``."""
        if isinstance(projection, Mapping):
            refuse("a projection of expressions", "compute them in SQL: Catalog.sql of the package paimon")
        self._columns = None if projection is None else name_columns(projection, self.table)
        return self

    def with_read_type(self, read_type: Sequence[DataField]) -> ReadBuilder:
        """Read the columns of these fields."""
        self._columns = {column.name: column.name for column in read_type}
        return self

    def with_limit(self, limit: int | None) -> ReadBuilder:
        """Read at most so many rows."""
        self._limit = limit
        return self

    def new_scan(self) -> TableScan:
        """Return the object that plans splits."""
        return TableScan(self.table, self._filter(), self._limit, self._partition_filter)

    def new_read(self) -> TableRead:
        """Return the object that reads splits."""
        with state_errors():
            return TableRead(self.table, self._filter(), self._columns, limit=self._limit)

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns that are read."""
        return PredicateBuilder(self.read_type())

    def read_type(self) -> list[DataField]:
        """Return the columns that are read."""
        if self._columns is None:
            return self.table.fields
        schema = to_paimon_builder(self.table, columns=self._columns).new_read().arrow_schema
        fields = from_paimon_fields(fields_from_arrow(schema))
        ids = {column.name: column.id for column in self.table.fields}
        for column, name in zip(fields, self._columns, strict=True):
            column.name, column.id = name, ids.get(name, column.id)
        return fields

    def explain(self, verbose: bool = False) -> ExplainResult:
        """Return what would be read, and what is pruned at each step."""
        planned = to_paimon_builder(self.table, self._filter(), self._partition_filter).new_scan().plan().planned
        projection = None if self._columns is None else list(self._columns)
        return explain_plan(self.table, planned, self._filter(), (projection, self._limit), verbose)

    def _filter(self) -> Predicate | None:
        """Return the predicate, with fields of rows by their paths."""
        if self._predicate is None or self._columns is None:
            return self._predicate
        return self._predicate.with_names(self._columns)


def name_columns(projection: Sequence[str], table: StoredTable) -> dict[str, str]:
    """Return the path of each column of a projection by the name that pypaimon gives it in results."""
    names: dict[str, str] = {}
    top_level = set(table.field_names)
    for path in projection:
        name = path if path in top_level else path.replace(".", "_")
        names[name if name not in names else path] = path
    return names


_KNOWN = {
    "prefetch_concurrency": 1,
    "batch_format": "row",
    "batch_size": None,
    "to_tensor_fn": None,
    "shuffle": False,
    "seed": 0,
    "buffer_size": 1000,
    "max_buffer_input_splits": 10,
    "auto_detect_rank": False,
    "sharding_rank": None,
    "sharding_world_size": None,
}


def make_dataset(read: TableRead, splits: Sequence[Any], streaming: bool, named: Mapping[str, Any]) -> Any:
    """Return a dataset of PyTorch."""
    unknown = [name for name in named if name not in _KNOWN]
    if unknown:
        raise TypeError(f"to_torch() got an unexpected keyword argument {unknown[0]!r}")
    given = {**_KNOWN, **named}
    if given["shuffle"]:
        refuse("to_torch(shuffle=True)", "pass the dataset with all rows to a DataLoader with shuffle=True")
    if given["prefetch_concurrency"] != 1:
        refuse("to_torch(prefetch_concurrency=…)", "pass num_workers to the DataLoader")
    if given["auto_detect_rank"]:
        refuse("to_torch(auto_detect_rank=True)", "pass sharding_rank and sharding_world_size")
    batches = given["batch_format"] != "row"
    return read.open_plain().to_torch(
        [split.inner for split in splits],
        streaming=streaming,
        batch_size=(given["batch_size"] or 1024) if batches else None,
        convert=given["to_tensor_fn"],
        rank=given["sharding_rank"] or 0,
        world_size=given["sharding_world_size"] or 1,
    )
