"""Which partition and bucket each row belongs to.

Law: rows of equal partition values and equal bucket meet in one group; the rows themselves are not moved here.
Source: `RowKeyExtractor`, `FixedBucketRowKeyExtractor`, `AppendTableRowKeyExtractor`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.bucket.columnar import buckets_of
from paimon.domain.columns.conform import conform
from paimon.domain.errors import InvalidRequest
from paimon.domain.row.columnar import serialize_rows
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import EMPTY_ROW
from paimon.domain.types.data_types import DataField

Codes: TypeAlias = npt.NDArray[np.int64]


_COUNTED = 4
"""Codes up to so many times the number of rows are counted in an array; beyond, hashed."""


class Address(NamedTuple):
    """A bucket of a partition; `partition` is a serialised BinaryRow."""

    partition: bytes
    bucket: int


@frozen
class Routing:
    """What rows are routed by.

    Parameters
    ----------
    partition_fields, bucket_fields : tuple of DataField
        The columns of the partition and of the bucket key.
    buckets : int
        The number of buckets that rows are spread over.
    function : str
        `bucket-function.type`.
    """

    partition_fields: tuple[DataField, ...]
    bucket_fields: tuple[DataField, ...]
    buckets: int
    function: str

    @classmethod
    def of(cls, schema: TableSchema, total_buckets: int, function: str) -> Routing:
        """The routing of a table; `total_buckets` below 1 means that there is bucket 0 only."""
        keys = tuple(schema.field_of(name) for name in schema.bucket_keys) if total_buckets > 0 else ()
        return cls(schema.partition_fields, keys, max(1, total_buckets), function)

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """The addresses met, and for each row the position of its address."""
        partitions, codes = self._partitions(table)
        if self.bucket_fields:
            keys = [_whole(table[f.name]) for f in self.bucket_fields]
            types = [f.type for f in self.bucket_fields]
            codes = codes * self.buckets + buckets_of(keys, types, self.buckets, self.function)
        values, codes = _dense(codes)
        pairs = (divmod(value, self.buckets) for value in values.tolist())
        return [Address(partitions[partition], bucket) for partition, bucket in pairs], codes

    def _partitions(self, table: pa.Table) -> tuple[list[bytes], Codes]:
        codes = np.zeros(table.num_rows, np.int64)
        columns = [_whole(table[f.name]) for f in self.partition_fields]
        if not columns:
            return [EMPTY_ROW], codes
        for column in columns:
            encoded = column.dictionary_encode("encode")
            codes = codes * len(encoded.dictionary) + np.asarray(encoded.indices)
            codes = _dense(codes)[1]
        # Assigning backwards leaves the first row of each code.
        first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        first[codes[::-1]] = np.arange(table.num_rows)[::-1]
        rows = pa.array(first)
        types = [f.type for f in self.partition_fields]
        return serialize_rows([column.take(rows) for column in columns], types), codes


def task_ids(table: TableDefinition, rows: pa.Table, tasks: int) -> pa.Int32Array:
    """For each row the task, of `tasks`, that writes its bucket of its partition; equal in every process."""
    schema, options = table.schema, table.options
    routing = Routing.of(schema, options.bucket, options.bucket_function)
    named = {f.name: f for f in (*routing.partition_fields, *routing.bucket_fields)}
    missing = [name for name in named if name not in rows.column_names]
    if missing:
        raise InvalidRequest(f"the rows lack the column {missing[0]!r}", subject=missing[0])
    addresses, codes = routing.route(conform(rows.select(list(named)), tuple(named.values()), table.identifier))
    task_of = [(crc32(a.partition) + a.bucket) % tasks for a in addresses]
    return pa.array(np.array(task_of, np.int32)[codes])


def _dense(codes: Codes) -> tuple[Codes, Codes]:
    """The distinct codes, and each row's position among them."""
    top = int(codes.max(initial=0))
    if top > _COUNTED * len(codes):
        encoded = pa.array(codes).dictionary_encode()
        return np.asarray(encoded.dictionary), np.asarray(encoded.indices).astype(np.int64)
    present = np.bincount(codes) > 0
    if present.all():
        return np.arange(len(present)), codes
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
