"""Reads by the names of pypaimon: they return the rows of splits.

Source: `pypaimon.read.table_read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon.compat.arrow_types import arrow_schema_of
from paimon.compat.data_types import DataField
from paimon.compat.parallel_read import choose_parallelism, read_batches
from paimon.compat.predicate import Predicate
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import ROW_KIND_COLUMN, OffsetRow, RowKind
from paimon.compat.schema import from_paimon_fields
from paimon.compat.table_scan import to_paimon_builder
from paimon.domain.types.arrow import fields_from_arrow
from paimon.read_builder import find_split_reads
from paimon.source_reads import note_reader

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable
    from paimon.read_builder import TableRead as PaimonTableRead


class TableRead(PeerClass):
    """Read splits; made by `ReadBuilder.new_read`."""

    def __init__(
        self,
        table: FileStoreTable,
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
        batches = list(self._batches(splits, choose_parallelism(self.table, parallelism)))
        return pa.Table.from_batches(batches, schema=self._schema)

    def to_arrow_batch_reader(
        self, splits: Sequence[Any], blob_parallelism: int | None = None, parallelism: int | None = None
    ) -> pa.RecordBatchReader:
        """Return a reader that reads splits while it is consumed."""
        batches = self._batches(splits, choose_parallelism(self.table, parallelism))
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
