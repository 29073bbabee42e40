"""Compute the partition and the bucket of each row.

Invariant: rows with equal partition values and equal bucket get the same address. Rows are not moved. Source:
`RowKeyExtractor`, `FixedBucketRowKeyExtractor`, `AppendTableRowKeyExtractor`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.bucket.bucket_columnar import compute_buckets
from paimon.domain.bucket.postponed import compute_first_buckets
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.row_hash_columnar import serialize_rows
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import EMPTY_ROW
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import DataField

Codes: TypeAlias = npt.NDArray[np.int64]
ReadBucketCounts: TypeAlias = Callable[[Collection[bytes]], Mapping[bytes, int]]
"""Returns the number of buckets of partitions."""

_MAX_CODES_PER_ROW = 4
"""Codes up to this many times the number of rows are counted in an array; larger codes are hashed."""


class Address(NamedTuple):
    """A bucket of a partition; `partition` is a serialized BinaryRow."""

    partition: bytes
    bucket: int


class Router(Protocol):
    """Computes the address of each row."""

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Return the distinct addresses, and for each row the position of its address in the list."""


@frozen
class Routing:
    """The columns and the function that define the partition and the bucket of a row."""

    partition_fields: tuple[DataField, ...]
    bucket_fields: tuple[DataField, ...]
    buckets: int
    function: str

    @classmethod
    def of(cls, schema: TableSchema, total_buckets: int, function: str) -> Routing:
        """Return the routing of a table; if `total_buckets` is below 1, all rows belong to bucket 0."""
        keys = tuple(schema.field_of(name) for name in schema.bucket_keys) if total_buckets > 0 else ()
        return cls(schema.partition_fields, keys, max(1, total_buckets), function)

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Return the distinct addresses of rows, and for each row the position of its address."""
        partitions, codes = encode_partitions(table, self.partition_fields)
        if self.bucket_fields:
            codes = codes * self.buckets + self.compute_buckets(table, self.buckets)
        values, codes = to_dense_codes(codes)
        pairs = (divmod(value, self.buckets) for value in values.tolist())
        return [Address(partitions[partition], bucket) for partition, bucket in pairs], codes

    def compute_buckets(self, table: pa.Table, buckets: int) -> Codes:
        """Return the bucket of each row if its partition has this number of buckets."""
        keys = [combine_column(table[f.name]) for f in self.bucket_fields]
        return compute_buckets(keys, [f.type for f in self.bucket_fields], buckets, self.function)


def encode_partitions(table: pa.Table, fields: Sequence[DataField]) -> tuple[list[bytes], Codes]:
    """Return the distinct partitions of rows, serialized, and for each row the position of its partition."""
    codes = np.zeros(table.num_rows, np.int64)
    columns = [combine_column(table[f.name]) for f in fields]
    if not columns:
        return [EMPTY_ROW], codes
    for column in columns:
        encoded = column.dictionary_encode("encode")
        codes = codes * len(encoded.dictionary) + to_numpy(encoded.indices)
        codes = to_dense_codes(codes)[1]
    # Assignment in reverse order keeps the first row of each code.
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(table.num_rows)[::-1]
    rows = from_numpy(first)
    return serialize_rows([column.take(rows) for column in columns], [f.type for f in fields]), codes


@frozen
class PostponedRouting:
    """Routes all rows of a partition to its postponed bucket."""

    routing: Routing

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Return one address for each partition, and for each row the position of its address."""
        partitions, codes = encode_partitions(table, self.routing.partition_fields)
        return [Address(partition, POSTPONED) for partition in partitions], codes


@frozen(eq=False)
class PartitionRouting:
    """Routes rows to buckets where partitions have different numbers of buckets."""

    routing: Routing
    read_counts: ReadBucketCounts

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Return the distinct addresses, and for each row the position of its address in the list."""
        partitions, codes = encode_partitions(table, self.routing.partition_fields)
        counts = self.read_counts(partitions)
        by_partition = np.array([counts[partition] for partition in partitions], np.int64)
        stride = int(by_partition.max(initial=1))
        buckets = np.zeros(len(codes), np.int64)
        for count in np.unique(by_partition).tolist():
            mask = by_partition[codes] == count
            rows = table if mask.all() else table.filter(from_numpy(mask))
            buckets[mask] = self.routing.compute_buckets(rows, count)
        values, codes = to_dense_codes(codes * stride + buckets)
        pairs = (divmod(value, stride) for value in values.tolist())
        return [Address(partitions[partition], bucket) for partition, bucket in pairs], codes


def assign_task_ids(
    table: TableDefinition, rows: pa.Table, tasks: int, counts: Mapping[bytes, int] | None = None
) -> pa.Int32Array:
    """Assign each row to the task that writes its bucket; the result is equal in every process.

    `rows` have at least the partition columns and the bucket key. `counts` has the number of buckets of each partition
    of a postponed table; a partition that is missing gets the number of a new one.
    """
    schema, options = table.schema, table.options
    routing = Routing.of(schema, options.bucket if counts is None else 1, options.bucket_function)
    router: Router = routing
    if counts is not None:
        known = defaultdict(lambda: compute_first_buckets(options, 0, 0), counts)
        router = PartitionRouting(routing, lambda _: known)
    fields = (*routing.partition_fields, *routing.bucket_fields)
    addresses, codes = router.route(select_columns(rows, fields, table.table_name))
    return from_numpy(find_tasks(addresses, tasks)[codes])


def find_tasks(addresses: Sequence[Address], tasks: int) -> npt.NDArray[np.int32]:
    """Return for each address the number of the task that writes it, from 0 to `tasks - 1`."""
    return np.array([(crc32(a.partition) + a.bucket) % tasks for a in addresses], np.int32)


def select_columns(rows: pa.Table, fields: Sequence[DataField], table_name: str) -> pa.Table:
    """Return the columns that select the partition and the bucket, each once, conformed to the schema."""
    named = {f.name: f for f in fields}
    missing = [name for name in named if name not in rows.column_names]
    if missing:
        raise InvalidRequest(
            f"Column {missing[0]!r} of table {table_name!r} is missing in the rows",
            subject=missing[0],
            hint="add the column: it decides the partition or the bucket of a row",
        )
    return conform_to_fields(rows.select(list(named)), tuple(named.values()), table_name)


def to_dense_codes(codes: Codes) -> tuple[Codes, Codes]:
    """Return the distinct codes, and for each row the position of its code among them."""
    top = int(codes.max(initial=0))
    if top > _MAX_CODES_PER_ROW * len(codes):
        encoded = from_numpy(codes).dictionary_encode()
        return to_numpy(encoded.dictionary), to_numpy(encoded.indices).astype(np.int64)
    present = np.bincount(codes) > 0
    if present.all():
        return np.arange(len(present)), codes
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]
