"""Tables and system tables, and their builders, by the names of pypaimon.

Source: `pypaimon.table.file_store_table`, `pypaimon.table.system`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import paimon
from paimon.compat.catalog_values import Identifier
from paimon.compat.data_types import DataField, PyarrowFieldParser, RowType
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.read import ReadBuilder
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import GenericRow
from paimon.compat.scan import Plan, Split
from paimon.compat.stored_table import BucketMode, StoredTable
from paimon.compat.stream_read import StreamReadBuilder
from paimon.compat.write import BatchWriteBuilder, StreamWriteBuilder

_WRITES_BUCKETS = "postpone.batch-write-fixed-bucket"


class FileStoreTable(StoredTable):
    """One table; made by `Catalog.get_table`."""

    def new_read_builder(self) -> ReadBuilder:
        """Return the builder of reads."""
        return ReadBuilder(self)

    def new_stream_read_builder(self) -> StreamReadBuilder:
        """Return the builder of reads that follow new snapshots."""
        return StreamReadBuilder(self)

    def new_postpone_fixed_bucket_write_builder(self) -> BatchWriteBuilder:
        """Return the builder of writes of a postponed table that put rows into their buckets at once."""
        if self.bucket_mode() is not BucketMode.POSTPONE_MODE:
            raise ValueError("Only tables with the option 'bucket' = '-2' have postponed buckets.")
        return BatchWriteBuilder(self.copy({_WRITES_BUCKETS: "true"}))

    def new_batch_write_builder(self) -> BatchWriteBuilder:
        """Return the builder of writes with one commit; rows of postponed tables are postponed."""
        postpones = self.bucket_mode() is BucketMode.POSTPONE_MODE
        return BatchWriteBuilder(self.copy({_WRITES_BUCKETS: "false"}) if postpones else self)

    def new_stream_write_builder(self) -> StreamWriteBuilder:
        """Return the builder of writes with many commits."""
        return StreamWriteBuilder(self)

    def __repr__(self) -> str:
        return f"FileStoreTable({self.identifier.get_full_name()!r})"


class SystemSplit(Split):
    """The whole system table: it is read at once, and has no data files of its own."""

    @property
    def files(self) -> list[Any]:
        """No files."""
        return []

    @property
    def partition(self) -> GenericRow:
        """The row without values."""
        return GenericRow([], [])

    @property
    def bucket(self) -> int:
        """The bucket 0."""
        return 0

    @property
    def row_count(self) -> int:
        """No rows of data files."""
        return 0


class SystemTable(PeerClass):
    """A read-only table with metadata; made by `Catalog.get_table`."""

    def __init__(self, inner: paimon.SystemTable, identifier: Identifier) -> None:
        self.inner = inner
        self.identifier = identifier

    @property
    def fields(self) -> list[DataField]:
        """The columns."""
        return PyarrowFieldParser.to_paimon_schema(self.inner.arrow_schema)

    @property
    def field_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.inner.arrow_schema.names)

    def row_type(self) -> RowType:
        """Return the columns as one type."""
        return RowType(False, self.fields)

    def new_read_builder(self) -> SystemReadBuilder:
        """Return the builder of reads."""
        return SystemReadBuilder(self)

    def new_batch_write_builder(self) -> Any:
        """Refuse to write."""
        refuse("writes of system tables", "write to the table itself")


class SystemReadBuilder:
    """Collect what to read of a system table."""

    def __init__(self, table: SystemTable) -> None:
        self.table = table
        self._predicate: Predicate | None = None
        self._columns: list[str] | None = None
        self._limit: int | None = None

    def with_filter(self, predicate: Predicate | None) -> SystemReadBuilder:
        """Read the rows where a predicate is true."""
        self._predicate = predicate
        return self

    def with_projection(self, projection: list[str] | None) -> SystemReadBuilder:
        """Read these columns."""
        self._columns = projection
        return self

    def with_limit(self, limit: int | None) -> SystemReadBuilder:
        """Read at most so many rows."""
        self._limit = limit
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns."""
        return PredicateBuilder(self.table.fields)

    def new_scan(self) -> SystemReadBuilder:
        """Return the object that plans."""
        return self

    def new_read(self) -> SystemReadBuilder:
        """Return the object that reads."""
        return self

    def plan(self) -> Plan:
        """Return the plan: one split."""
        return Plan([SystemSplit()])

    def read_type(self) -> list[DataField]:
        """Return the columns that are read."""
        fields = self.table.fields
        return fields if self._columns is None else [f for name in self._columns for f in fields if f.name == name]

    def to_arrow(self, splits: Sequence[object], parallelism: int | None = None) -> pa.Table:
        """Return the rows as an Arrow table."""
        where = None if self._predicate is None else to_paimon_predicate(self._predicate)
        table = self.table.inner.scan(self._columns, where, self._limit).to_arrow()
        return table if splits else table.slice(0, 0)

    def to_pandas(self, splits: Sequence[object], parallelism: int | None = None) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow(splits).to_pandas()

    def to_arrow_batch_reader(self, splits: Sequence[object]) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return self.to_arrow(splits).to_reader()
