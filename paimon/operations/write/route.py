"""Compute the partition and the bucket of each row: by its values, by the hash index, or by the key index.

Invariant: rows with equal partition values and equal bucket get the same address. Rows are not moved; only a key index,
for cross-partition tables, replaces, drops and adds rows, so that no key has live rows in two partitions.

Source: `RowKeyExtractor` and its classes, `DynamicBucketRow`, `GlobalIndexAssigner`, `ExistingProcessor`.
"""

# Routers work with codes: numbers that are equal where values are equal. So Python objects are made for each address
# and not for each row. A table with 4 buckets a partition (the stride):
#
#     day    id    code of the partition    bucket    partition * stride + bucket    position of the address
#     mon    7     0                        3         3                              1
#     tue    8     1                        0         4                              2
#     mon    9     0                        1         1                              0
#     mon    7     0                        3         3                              1
#
#     result: the addresses (mon, 1), (mon, 3), (tue, 0), and the last column
#
# What chooses the bucket:
#
#     Routing                  the hash of the bucket key; all partitions have as many buckets
#     PartitionRouting         the same; each partition has its own number of buckets
#     PostponedRouting         nothing yet: all rows go to the postponed bucket
#     DynamicRouting           the hash index: a known key keeps its bucket, a new one gets a bucket that is not full
#     CrossPartitionRouting    the key index, which also replaces rows: a key that moves is deleted at its old place

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.bucket.bucket_columnar import compute_buckets
from paimon.domain.bucket.hash_index import MAX_DYNAMIC_BUCKETS
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.bucket.postponed import compute_first_buckets
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.partition.partition_text import format_partition_path
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.kinds import RowKind
from paimon.domain.row.row_hash_columnar import hash_rows, serialize_rows
from paimon.domain.row.values import to_array
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import EMPTY_ROW
from paimon.domain.types.arrow import arrow_field
from paimon.domain.types.arrow_arrays import from_numpy, make_scalar, to_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.operations.buckets.bucket_assigner import BucketAssigner
from paimon.operations.buckets.key_bootstrap import plan_key_splits, read_key_places
from paimon.operations.buckets.key_index import KeyIndex, RoutedRows
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext

Codes: TypeAlias = npt.NDArray[np.int64]
ReadBucketCounts: TypeAlias = Callable[[Collection[bytes]], Mapping[bytes, int]]
"""Returns the number of buckets of partitions."""
_MAX_CODES_PER_ROW = 4
"""Codes up to this many times the number of rows are counted in an array; larger codes are hashed."""
_ALL_BUCKETS = 1 << 31
"""The stride if the number of buckets is not known: each bucket number is smaller."""


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
        return _to_addresses(partitions, codes, self.buckets)

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
        return _to_addresses(partitions, codes * stride + buckets, stride)


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


def _to_addresses(partitions: Sequence[bytes], codes: Codes, stride: int) -> tuple[list[Address], Codes]:
    """Return the distinct addresses of the codes ``partition * stride + bucket``, and the position of each row's."""
    values, positions = to_dense_codes(codes)
    pairs = (divmod(value, stride) for value in values.tolist())
    return [Address(partitions[partition], bucket) for partition, bucket in pairs], positions


class DynamicRouting:
    """Route rows to the buckets that an assigner chooses."""

    def __init__(self, context: TableContext, assigner: BucketAssigner) -> None:
        self._partition_fields = context.schema.partition_fields
        self._key_fields = context.schema.key_fields
        self._assigner = assigner

    def route(self, table: pa.Table) -> tuple[list[Address], Codes]:
        """Compute the addresses of rows; see `Routing.route`."""
        partitions, codes = encode_partitions(table, self._partition_fields)
        buckets = _map_partitions(partitions, codes, self._hash_keys(table), self._assigner.assign)
        return _to_addresses(partitions, codes * MAX_DYNAMIC_BUCKETS + buckets, MAX_DYNAMIC_BUCKETS)

    def assign_task_ids(self, table: pa.Table) -> pa.Int32Array:
        """Assign each conformed row to a parallel task, numbered below `dynamic-bucket.assigner-parallelism`."""
        partitions, codes = encode_partitions(table, self._partition_fields)
        tasks = _map_partitions(partitions, codes, self._hash_keys(table), self._assigner.find_tasks)
        return from_numpy(tasks.astype(np.int32))

    def _hash_keys(self, table: pa.Table) -> Hashes:
        keys = [combine_column(table[f.name]) for f in self._key_fields]
        return hash_rows(keys, [f.type for f in self._key_fields])


def _map_partitions(
    partitions: Sequence[bytes],
    codes: Codes,
    hashes: Hashes,
    function: Callable[[bytes, Hashes], npt.NDArray[np.int16] | npt.NDArray[np.int64]],
) -> Codes:
    """Call a function with each partition and the hashes of its rows; return its numbers in the order of the rows."""
    if len(partitions) == 1:
        return function(partitions[0], hashes).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(partitions)))
    found = np.empty(len(codes), np.int64)
    for partition, rows in zip(partitions, np.split(order, ends[:-1]), strict=True):
        found[rows] = function(partition, hashes[rows])
    return found


class TaskRouter:
    """Route rows to parallel tasks so that each bucket has one task; each process may have its own router.

    With `ignore_previous`, for overwrites, existing keys have no bucket. `counts` is for postponed tables, as in
    `assign_task_ids`.
    """

    def __init__(
        self,
        context: TableContext,
        tasks: int,
        *,
        ignore_previous: bool,
        counts: Mapping[bytes, int] | None = None,
    ) -> None:
        self._table = context.table
        self._counts = counts
        self._tasks = tasks
        self._dynamic: DynamicRouting | None = None
        if context.table.bucket_mode is BucketMode.DYNAMIC:
            shared = evolve(context.table, options=with_assigners(context.options, tasks))
            assigner = BucketAssigner(context.with_table(shared), ignore_previous=ignore_previous)
            self._dynamic = DynamicRouting(context, assigner)

    def assign_task_ids(self, rows: pa.Table) -> pa.Int32Array:
        """Assign each row to a task; rows have at least the partition columns and the key."""
        if self._dynamic is None:
            return assign_task_ids(self._table, rows, self._tasks, self._counts)
        schema = self._table.schema
        fields = (*schema.partition_fields, *schema.key_fields)
        return self._dynamic.assign_task_ids(select_columns(rows, fields, self._table.table_name))


def with_assigners(options: TableOptions, tasks: int) -> TableOptions:
    """Return the options for writers that share the dynamic buckets of each partition among so many tasks."""
    return options.with_values({"dynamic-bucket.assigner-parallelism": str(tasks)})


def find_addresses(table: pa.Table, fields: Sequence[DataField], buckets: Codes) -> tuple[list[Address], Codes]:
    """Return distinct addresses of routed rows, and each row's position; rows have partition values."""
    partitions, codes = encode_partitions(table, fields)
    return _to_addresses(partitions, codes * _ALL_BUCKETS + buckets, _ALL_BUCKETS)


class CrossPartitionRouting:
    """Route rows to the places of their keys."""

    def __init__(self, context: TableContext, index: KeyIndex) -> None:
        self._partition_fields = context.schema.partition_fields
        self._key_fields = [context.schema.field_of(name) for name in context.schema.primary_keys]
        self._index = index

    def route(self, table: pa.Table) -> tuple[pa.Table, list[Address], Codes]:
        """Compute the rows to write, their distinct addresses, and for each row the position of its address.

        The returned rows have the values of the partition in which they are written. Their number can differ from that
        of the input, which has row kinds.
        """
        partitions, codes = encode_partitions(table, self._partition_fields)
        columns = [combine_column(table[f.name]) for f in self._key_fields]
        keys = pa.RecordBatch.from_arrays(columns, [f.name for f in self._key_fields])
        routed = self._index.route(keys, partitions, codes)
        codes = routed.codes * _ALL_BUCKETS + routed.buckets
        addresses = _to_addresses(routed.partitions, codes, _ALL_BUCKETS)
        return self._select_rows(table, routed), *addresses

    def _select_rows(self, table: pa.Table, routed: RoutedRows) -> pa.Table:
        is_whole = len(routed.rows) == table.num_rows and not routed.is_retract.any()
        rows = table if is_whole else table.take(from_numpy(routed.rows))
        if routed.is_retract.any():
            kinds = pc.if_else(
                from_numpy(routed.is_retract), make_scalar(int(RowKind.DELETE), pa.int8()), rows[VALUE_KIND.name]
            )
            rows = rows.set_column(rows.column_names.index(VALUE_KIND.name), VALUE_KIND.name, kinds)
        types = [f.type for f in self._partition_fields]
        partitions = list(zip(*(deserialize(p, types) for p in routed.partitions), strict=True))
        for field, values in zip(self._partition_fields, partitions, strict=False):
            column = to_array(values, field.type).take(from_numpy(routed.codes.astype(np.int64)))
            rows = rows.set_column(rows.column_names.index(field.name), arrow_field(field), column)
        return rows


def check_other_partitions(context: TableContext, index: KeyIndex, is_replaced: Callable[[bytes], bool]) -> ReadState:
    """Refuse new rows whose keys are in partitions that the overwrite leaves.

    `index` has the keys of the new rows only. Return the snapshot that was read; the commit checks later ones. Raise
    SnapshotExpired if it expired during the read.
    """
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return ReadState.of(None)
    with check_unexpired(context, snapshot, "write the rows again"):
        splits = [s for s in plan_key_splits(context, snapshot) if not is_replaced(s.partition)]
        for partition, _, keys in read_key_places(context, splits):
            if index.has_any(keys):
                raise _left_key_error(context, partition)
    return ReadState.of(snapshot)


def _left_key_error(context: TableContext, partition: bytes) -> InvalidRequest:
    fields, options = context.schema.partition_fields, context.options
    values = deserialize(partition, [f.type for f in fields])
    path = format_partition_path(values, fields, options.partition_default_name, options.partition_legacy_name)
    return InvalidRequest(
        f"A key of the new rows is in partition {path} of table {context.table.table_name!r}, "
        "which the overwrite does not replace",
        subject=path,
        hint="delete the keys there first, or overwrite the whole table with partition={}",
    )
