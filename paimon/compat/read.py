"""Read builders, scans and reads by the names of pypaimon.

Source: `pypaimon.read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import paimon
from paimon.compat.arrow_types import arrow_schema_of
from paimon.compat.data_types import DataField
from paimon.compat.explain import ExplainResult, explain_plan
from paimon.compat.parallel_read import choose_parallelism, read_batches
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import ROW_KIND_COLUMN, OffsetRow, RowKind
from paimon.compat.schema import from_paimon_fields
from paimon.compat.splits import Plan, from_paimon_splits
from paimon.domain.types.arrow import fields_from_arrow

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable
    from paimon.read_builder import ReadBuilder as PaimonReadBuilder
    from paimon.read_builder import TableRead as PaimonTableRead

_KIND_COLUMN = "rowkind"


class ReadBuilder(PeerClass):
    """Collect what to read; made by `FileStoreTable.new_read_builder`. Each method changes the builder and returns it.

    Parameters
    ----------
    table : FileStoreTable
        The table.
    """

    def __init__(self, table: FileStoreTable) -> None:
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
        """Read these columns, in this order; ``"a.b"`` is a field of a row, and becomes the column ``a_b``.

        Raises
        ------
        NotImplementedError
            The projection is a mapping of expressions.
        """
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


def name_columns(projection: Sequence[str], table: FileStoreTable) -> dict[str, str]:
    """Return the path of each column of a projection by the name that pypaimon gives it in results."""
    names: dict[str, str] = {}
    top_level = set(table.field_names)
    for path in projection:
        name = path if path in top_level else path.replace(".", "_")
        names[name if name not in names else path] = path
    return names


def to_paimon_builder(
    table: FileStoreTable,
    predicate: Predicate | None = None,
    partition_predicate: Predicate | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> PaimonReadBuilder:
    """Return the read builder of this library.

    Parameters
    ----------
    table : FileStoreTable
        The table.
    predicate, partition_predicate : Predicate, optional
        Conditions on rows and on partitions.
    columns : mapping, optional
        The paths of the columns by name.
    limit : int, optional
        The largest number of rows.

    Returns
    -------
    paimon.read_builder.ReadBuilder
        The builder.
    """
    builder = table.inner.new_read_builder()
    for condition in (predicate, partition_predicate):
        if condition is not None:
            builder = builder.with_filter(to_paimon_predicate(condition))
    if columns is not None:
        builder = builder.with_projection(list(columns.values()))
    return builder if limit is None else builder.with_limit(limit)


class TableScan(PeerClass):
    """Plan the splits of a read; made by `ReadBuilder.new_scan`.

    Parameters
    ----------
    table : FileStoreTable
        The table.
    predicate : Predicate, optional
        The condition on rows, which prunes files.
    limit : int, optional
        The largest number of rows.
    partition_predicate : Predicate, optional
        The condition on partitions.
    """

    def __init__(
        self,
        table: FileStoreTable,
        predicate: Predicate | None = None,
        limit: int | None = None,
        partition_predicate: Predicate | None = None,
    ) -> None:
        self.table = table
        self._scan = to_paimon_builder(table, predicate, partition_predicate, limit=limit).new_scan()
        self._distribution: str | None = None

    def plan(self) -> Plan:
        """Return the splits to read.

        Raises
        ------
        ValueError
            The options of the table name a state that does not exist.
        """
        try:
            planned = self._scan.plan().planned
        except paimon.NotFound as error:
            raise ValueError(f"{error.kind.capitalize()} '{error.name}' doesn't exist.") from error
        snapshot = None if planned.snapshot is None else planned.snapshot.id
        return Plan(from_paimon_splits(planned.splits, self.table.inner.table_schema), snapshot)

    def with_shard(self, idx_of_this_subtask: int, number_of_para_subtasks: int) -> TableScan:
        """Plan one of several disjoint parts of the rows.

        Raises
        ------
        ValueError
            There is no such part, or the scan has a slice.
        """
        self._distribute("with_shard")
        if idx_of_this_subtask < 0 or idx_of_this_subtask >= number_of_para_subtasks:
            raise ValueError("idx_of_this_subtask must be less than number_of_para_subtasks and not negative")
        self._scan = self._scan.with_shard(idx_of_this_subtask, number_of_para_subtasks)
        return self

    def with_slice(self, start_pos: int, end_pos: int) -> TableScan:
        """Plan the stored rows from one position to another.

        Raises
        ------
        ValueError
            The positions are no range, or the scan has a shard.
        NotImplementedError
            The table has a primary key.
        """
        self._distribute("with_slice")
        if start_pos < 0 or start_pos >= end_pos:
            raise ValueError("start_pos must be less than end_pos and not negative")
        if self.table.is_primary_key_table:
            refuse("with_slice of tables with a primary key", "call with_shard")
        self._scan = self._scan.with_slice(start_pos, end_pos)
        return self

    def _distribute(self, method: str) -> None:
        if self._distribution not in (None, method):
            raise ValueError(f"{method} and {self._distribution} cannot be used simultaneously")
        self._distribution = method

    def with_row_ranges(self, row_ranges: object) -> TableScan:
        """Refuse to select rows by their row ids.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("with_row_ranges", "call with_slice, or filter by a column")

    def with_chunk_shuffle(self, seed: int, chunk_size: int) -> TableScan:
        """Refuse to shuffle rows while they are planned.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("with_chunk_shuffle", "shuffle the rows that were read: to_torch(splits, streaming=True, shuffle=True)")

    def with_global_index_result(self, result: object) -> TableScan:
        """Refuse to select rows by an index.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("with_global_index_result", "filter with ReadBuilder.with_filter")


class TableRead(PeerClass):
    """Read splits; made by `ReadBuilder.new_read`.

    Parameters
    ----------
    table : FileStoreTable
        The table.
    predicate : Predicate, optional
        The condition on rows.
    read_type : list of DataField, or mapping, optional
        The columns; a mapping has their paths by name.
    include_row_kind : bool
        Return the kind of each row as the first column, ``_row_kind``.
    limit : int, optional
        The largest number of rows.
    """

    def __init__(
        self,
        table: FileStoreTable,
        predicate: Predicate | None = None,
        read_type: Sequence[DataField] | Mapping[str, str] | None = None,
        include_row_kind: bool = False,
        output_projection: object = None,
        limit: int | None = None,
    ) -> None:
        self.table = table
        self._include_row_kind = include_row_kind
        columns = read_type if isinstance(read_type, Mapping) else None
        if columns is None and read_type is not None:
            columns = {column.name: column.name for column in read_type}  # type: ignore[union-attr]
        self._reopen = partial(self._open, predicate, columns, limit)
        self._read, self._schema = self._reopen()

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
        """Return the rows of splits as an Arrow table.

        Parameters
        ----------
        splits : sequence of Split
            The splits.
        parallelism : int, optional
            How many splits are read at the same time; by default the option `read.parallelism`, or 1.
        blob_parallelism : int, optional
            Only for columns of type BLOB, which this library does not read.

        Returns
        -------
        pyarrow.Table
            The rows.
        """
        batches = list(self._batches(splits, choose_parallelism(self.table, parallelism)))
        return pa.Table.from_batches(batches, schema=self._schema)

    def to_arrow_batch_reader(
        self, splits: Sequence[Any], blob_parallelism: int | None = None, parallelism: int | None = None
    ) -> pa.RecordBatchReader:
        """Return a reader that reads splits while it is consumed.

        Parameters
        ----------
        splits, blob_parallelism, parallelism : sequence of Split, int, int
            As in `to_arrow`.

        Returns
        -------
        pyarrow.RecordBatchReader
            The rows.
        """
        batches = self._batches(splits, choose_parallelism(self.table, parallelism))
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def to_pandas(self, splits: Sequence[Any], parallelism: int | None = None) -> Any:
        """Return the rows of splits as a pandas DataFrame."""
        return self.to_arrow(splits, parallelism).to_pandas()

    def to_duckdb(
        self, splits: Sequence[Any], table_name: str, connection: Any = None, parallelism: int | None = None
    ) -> Any:
        """Return a DuckDB connection in which the rows of splits have a name.

        Parameters
        ----------
        splits : sequence of Split
            The splits.
        table_name : str
            The name of the rows in DuckDB.
        connection : duckdb.DuckDBPyConnection, optional
            The connection; by default a new one in memory.
        parallelism : int, optional
            As in `to_arrow`.

        Returns
        -------
        duckdb.DuckDBPyConnection
            The connection.
        """
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
        """Return a dataset of PyTorch.

        Parameters
        ----------
        splits : sequence of Split
            The splits.
        streaming : bool
            Read while iterating; by default all rows are read at once.
        prefetch_concurrency : int
            Only 1: the workers of a DataLoader read at the same time.
        **named : object
            `batch_format`, `batch_size`, `to_tensor_fn`, `shuffle`, `seed`, `buffer_size`, `sharding_rank` and
            `sharding_world_size`; see `paimon.torch_datasets`.

        Returns
        -------
        torch.utils.data.Dataset
            The rows.
        """
        from paimon.compat.torch_datasets import make_dataset

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
        """Return a dataset of Ray, which reads splits in its tasks.

        Parameters
        ----------
        splits : sequence of Split
            The splits.
        ray_remote_args, concurrency, override_num_blocks : mapping, int, int
            Arguments of `ray.data.read_datasource`.
        **read_args : object
            Other arguments of it.

        Returns
        -------
        ray.data.Dataset
            The rows.
        """
        named = {
            "ray_remote_args": ray_remote_args,
            "concurrency": concurrency,
            "override_num_blocks": override_num_blocks,
            **read_args,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return self._read.to_ray([split.inner for split in splits], **given)

    def open_plain(self) -> PaimonTableRead:
        """Return the read of this library."""
        return self._read

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._schema

    def _batches(self, splits: Sequence[Any], parallelism: int = 1) -> Iterator[pa.RecordBatch]:
        return read_batches(self._read_splits, splits, parallelism, self._limit)

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
