"""Look up rows by their whole primary keys.

Invariant: the rows are those that a scan of the same snapshot returns for these keys, in the order of the keys. Only
files that can contain a key are read: by partition, bucket, key range and bloom filter, and of a file the row groups
that can. Calls from several threads share only the cache of the engine.

Source: `LocalTableQuery`.
"""

# A lookup has three steps:
#
# 1. `_index_files` plans the whole snapshot once, and arranges its splits by bucket (`domain/scan/prune_by_key.py`).
#    The result stays in the cache of the engine, as do bloom filters, schemas, footers of local files, and blocks of
#    remote ones (`data_files/cached_blocks.py`).
#    Of a large snapshot, each call plans what its keys can be in, as a scan does.
# 2. `_make_tasks` groups the keys by partition and bucket, and narrows the splits of each bucket to the files that can
#    contain one of its keys. Each column of a key has one list of hashes for all filters.
# 3. `_read_keys` reads a split as a scan does, with the condition that each key column is in the list of its values.
#    For several keys of several columns this admits further combinations, so rows are matched with the keys again.
#
#     keys      (1, 'a') (2, 'b')        condition    k IN (1, 2) AND l IN ('a', 'b')
#     read      (1, 'a') (1, 'b') (2, 'b')
#     matched   (1, 'a')          (2, 'b')
#
# Keys are equal as the format orders them: NaN equals NaN, and -0.0 does not equal 0.0.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.bucket.bucket_columnar import compute_buckets
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.errors import InvalidRequest
from paimon.domain.index.bloom_filter import HashedKeys, hash_values
from paimon.domain.index.index_keys import KeyForm
from paimon.domain.lsm.keys import Comparable, to_comparable_values
from paimon.domain.lsm.lookup_hashes import add_lookup_hashes, find_equal_keys
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import And, Compare, In, Operator, Predicate
from paimon.domain.row.values import to_values
from paimon.domain.scan.prune_by_key import KeyedFiles, KeyedSplit, Mask, Rows
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.layout import UNAWARE
from paimon.domain.types.data_types import CharType, DataField, DataType, DoubleType, FloatType
from paimon.operations.data_files.cached_blocks import CachedBlockFiles
from paimon.operations.data_files.file_indexes import read_bloom_filters
from paimon.operations.metadata.manifests import read_data_manifests
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.plan import name_plan, plan_with_fallback
from paimon.operations.read.projection import ReadPlan, build_output_schema
from paimon.operations.read.split import read_split
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import to_arrow_tables
from paimon.operations.write.route import encode_partitions

_MOST_INDEXED_FILES = 5_000
"""Above this number, the files of a snapshot are not arranged and cached as a whole."""
_INDEXED_FILE_BYTES = 8_192
_INEXACT_TYPES = (FloatType, DoubleType, CharType)
"""Other values that a condition finds equal are equal as keys, too."""
_MOST_FILTERED_KEYS = 1_000
"""More keys in the range of one file are not looked for in its bloom filter."""


def lookup_rows(
    context: TableContext, request: ScanRequest, columns: Sequence[str], keys: Any, *, keep_missing: bool = False
) -> pa.Table:
    """Look up rows by keys in order; a missing one is left out, or nulls if `keep_missing`."""
    fields = _list_key_fields(context)
    asked = convert_keys(keys, fields, context.table.table_name)
    read = tuple(dict.fromkeys((*columns, *context.schema.primary_keys)))
    tasks = [] if request.snapshot is None or not asked.num_rows else _make_tasks(context, request, asked, fields)
    run = partial(_read_keys, _cache_blocks(context).for_tasks(len(tasks)), read, asked, fields)
    results = list(context.engine.executor.map(run, tasks))
    found = [batch for batches, _ in results for batch in batches]
    rows = pa.Table.from_batches(found, schema=build_output_schema(context.table, ReadPlan(read)))
    row_of = np.full(asked.num_rows, -1, np.int64)
    numbers = np.concatenate([np.empty(0, np.int64), *(positions for _, positions in results)])
    row_of[numbers] = np.arange(len(numbers))
    return _order_rows(rows, row_of, keep_missing).select(list(columns))


def _cache_blocks(context: TableContext) -> TableContext:
    """Return the context with files whose blocks are cached, if they are remote."""
    engine = context.engine
    return context.with_engine(evolve(engine, files=CachedBlockFiles(engine.files, engine.cache)))


def _list_key_fields(context: TableContext) -> tuple[DataField, ...]:
    schema = context.schema
    if not schema.primary_keys:
        raise InvalidRequest(
            f"Table {context.table.table_name!r} has no primary key to look up.",
            subject=context.table.table_name,
            hint="filter the rows: table.scan(where=...)",
        )
    named = (schema.field_of(name) for name in schema.primary_keys)
    return tuple(evolve(f, type=f.type.with_nullable(False), default_value=None) for f in named)


def _order_rows(rows: pa.Table, row_of: Rows, keep_missing: bool) -> pa.Table:
    """Return the row of each key in the order of the keys; `row_of` is -1 for a key without a row."""
    if not keep_missing:
        return rows.take(pa.array(row_of[row_of >= 0]))
    columns = rows.take(pa.array(row_of, mask=row_of < 0)).columns
    return pa.Table.from_arrays(columns, schema=pa.schema([column.with_nullable(True) for column in rows.schema]))


def convert_keys(keys: Any, fields: Sequence[DataField], table_name: str) -> pa.RecordBatch:
    """Convert keys to a batch of the key columns: a table, dicts, tuples, or the values of a single column."""
    names = [f.name for f in fields]
    if isinstance(keys, str | bytes | Number | None):
        raise _key_error(f"The keys of table {table_name!r} are {keys!r}, not a list.", names)
    if isinstance(keys, pa.Array | pa.ChunkedArray) and len(fields) == 1:
        keys = pa.table({names[0]: keys})
    elif isinstance(keys, list | tuple | set | frozenset | range) and keys:
        keys = _name_values(list(keys), names, table_name)
    elif isinstance(keys, list | tuple | set | frozenset | range):
        keys = {name: [] for name in names}
    what = f"the keys of table {table_name}"
    table = pa.concat_tables(conform_to_fields(t, fields, what) for t in to_arrow_tables(keys, tuple(fields)))
    columns = [combine_column(table[name]) for name in names]
    return pa.RecordBatch.from_arrays(columns, names)


def _name_values(keys: list[Any], names: Sequence[str], table_name: str) -> Any:
    """Return the columns of tuples or single values; dicts are returned unchanged."""
    if all(isinstance(key, Mapping) for key in keys):
        return keys
    rows = [tuple(key) if isinstance(key, tuple | list) else (key,) for key in keys]
    for key, row in zip(keys, rows, strict=True):
        if isinstance(key, Mapping) or len(row) != len(names):
            raise _key_error(f"{key!r} is not a key of table {table_name!r}.", names)
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _key_error(message: str, names: Sequence[str]) -> InvalidRequest:
    example = f"[({', '.join(names)}), ...]" if len(names) > 1 else f"[{names[0]}, ...]"
    return InvalidRequest(message, subject="keys", hint=f"give a table with {', '.join(names)}, or a list {example}")


@frozen(eq=False)
class _KeyTask:
    """A split to read for some of the keys."""

    split: DataSplit
    # positions among all keys
    rows: Rows
    predicate: Predicate


def _read_keys(
    context: TableContext, columns: tuple[str, ...], asked: pa.RecordBatch, fields: Sequence[DataField], task: _KeyTask
) -> tuple[list[pa.RecordBatch], Rows]:
    """Return the rows of a split with keys of its task, and the position of each among all keys."""
    keys = asked.take(pa.array(task.rows))
    batches, positions = list[pa.RecordBatch](), [np.empty(0, np.int64)]
    is_exact = len(task.rows) == 1 and not any(isinstance(f.type, _INEXACT_TYPES) for f in fields)
    for batch in read_split(context, task.split, ReadPlan(columns, task.predicate)):
        if is_exact and batch.num_rows == 1:
            batches.append(batch)
            positions.append(task.rows)
            continue
        block = add_lookup_hashes(batch.select(asked.schema.names), fields)
        mine, theirs = find_equal_keys(keys, block, fields)
        batches.append(batch.take(pa.array(theirs)))
        positions.append(task.rows[mine])
    return batches, np.concatenate(positions)


def _index_files(
    context: TableContext, request: ScanRequest, asked: pa.RecordBatch, fields: Sequence[DataField]
) -> KeyedFiles:
    """Return the files of the snapshot, or of a large snapshot those that can contain the keys."""
    assert request.snapshot is not None
    types = context.table.sorted_key_types
    manifests = read_data_manifests(context, request.snapshot)
    if sum(m.num_added_files - m.num_deleted_files for m in manifests) > _MOST_INDEXED_FILES:
        limited = evolve(request, predicate=_select_keys(asked, fields))
        return KeyedFiles.of(plan_with_fallback(context, limited).splits, types)
    if _reads_other_branch(context):
        return KeyedFiles.of(plan_with_fallback(context, request).splits, types)
    path = context.paths.manifest(request.snapshot.delta_manifest_list)
    view = f"keys of {name_plan(context.table, request, request.snapshot)}"
    found = context.engine.cache.get(path, view)
    if not isinstance(found, KeyedFiles):
        plan = plan_with_fallback(context, request)
        found = KeyedFiles.of(plan.splits, types)
        context.engine.cache.put(path, found, 2 * len(view) + _INDEXED_FILE_BYTES * (plan.file_count + 1), view)
    return found


def _reads_other_branch(context: TableContext) -> bool:
    return bool(context.options.scan_primary_branch or context.options.scan_fallback_branch)


def _make_tasks(
    context: TableContext, request: ScanRequest, asked: pa.RecordBatch, fields: Sequence[DataField]
) -> list[_KeyTask]:
    """Return the splits to read, each with the files that can contain one of its keys."""
    assert request.snapshot is not None
    tasks: list[_KeyTask] = []
    with report_expired(context, request.snapshot.id):
        files, filters = _index_files(context, request, asked, fields), _KeyFilters(context)
        last_rows: Rows | None = None
        for rows, splits in _group_keys(context, files, asked):
            if rows is not last_rows:  # partitions share the rows if the primary key lacks a partition column
                keys, last_rows = _SortedKeys.of(asked, rows, context.schema.key_fields), rows
            for keyed in splits:
                is_own = keyed.split.branch is None and context.options.file_index_read_enabled
                key_filter = partial(filters.mark, keys) if is_own else _mark_all
                for split, places in keyed.narrow(keys.comparables, key_filter):
                    tasks.append(_KeyTask(split, keys.rows[places], keys.select(places)))
    return tasks


def _group_keys(
    context: TableContext, files: KeyedFiles, asked: pa.RecordBatch
) -> Iterator[tuple[Rows, list[KeyedSplit]]]:
    """Yield positions of keys, with the splits of the partition and the bucket in which they can be."""
    schema = context.schema
    everything = np.arange(asked.num_rows)
    if not set(schema.partition_keys) <= set(schema.primary_keys):
        groups = [(everything, buckets) for buckets in files.partitions.values()]
    else:
        partitions, codes = encode_partitions(pa.Table.from_batches([asked]), schema.partition_fields)
        order = np.argsort(codes, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        known = files.partitions
        groups = [(rows, known[p]) for p, rows in zip(partitions, parts, strict=True) if p in known]
    for rows, by_total in groups:
        for total, buckets in by_total.items():
            yield from _group_by_bucket(context, asked, rows, total, buckets)


def _group_by_bucket(
    context: TableContext, asked: pa.RecordBatch, rows: Rows, total: int, buckets: Mapping[int, list[KeyedSplit]]
) -> Iterator[tuple[Rows, list[KeyedSplit]]]:
    keys = [context.schema.field_of(name) for name in context.schema.bucket_keys]
    is_fixed = total > 0 and context.options.bucket != UNAWARE and not _reads_other_branch(context)
    # Formats return CHAR with or without the blanks that are part of the hash.
    if not is_fixed or any(isinstance(f.type, CharType) for f in keys):
        yield rows, [split for splits in buckets.values() for split in splits]
        return
    columns = [asked.column(f.name).take(pa.array(rows)) for f in keys]
    numbers = compute_buckets(columns, [f.type for f in keys], total, context.options.bucket_function)
    for bucket in np.unique(numbers).tolist():
        if bucket in buckets:
            yield rows[numbers == bucket], buckets[bucket]


def _select_keys(keys: pa.RecordBatch, fields: Sequence[DataField]) -> Predicate:
    """Return the condition that each key column has one of the values in these keys."""
    parts: list[Predicate] = []
    for column, key in zip(keys.columns, fields, strict=True):
        values = tuple(to_values(column.unique(), key.type))
        parts.append(Compare(key.name, Operator.EQ, values[0]) if len(values) == 1 else In(key.name, values))
    return parts[0] if len(parts) == 1 else And(parts)


@frozen(eq=False)
class _SortedKeys:
    """Keys of one bucket in ascending order, without partition columns."""

    # positions among all keys
    rows: Rows
    comparables: list[Comparable]
    batch: pa.RecordBatch
    fields: Sequence[DataField]
    # by column, for the filters of all files
    _hashes: dict[str, HashedKeys] = field(factory=dict, init=False)

    @classmethod
    def of(cls, asked: pa.RecordBatch, rows: Rows, fields: Sequence[DataField]) -> _SortedKeys:
        """Return some of the keys of a lookup."""
        columns = [asked.column(f.name).take(pa.array(rows)) for f in fields]
        values = [to_values(column, f.type) for column, f in zip(columns, fields, strict=True)]
        comparables = [to_comparable_values(key) for key in zip(*values, strict=True)]
        order = sorted(range(len(rows)), key=comparables.__getitem__)
        batch = pa.RecordBatch.from_arrays(columns, [f.name for f in fields]).take(pa.array(order, pa.int64()))
        return cls(rows[order], [comparables[i] for i in order], batch, fields)

    def select(self, places: Rows) -> Predicate:
        """Return the condition for the keys at these places."""
        return _select_keys(self.batch.take(pa.array(places)), self.fields)

    def hash_column(self, name: str, form: KeyForm) -> HashedKeys:
        """Return the hashes of a column."""
        found = self._hashes.get(name)
        if found is None:
            found = self._hashes[name] = HashedKeys(hash_values(self.batch.column(name), form))
        return found


class _KeyFilters:
    """The bloom filters on key columns of files of any schema: a column can be renamed, its type is fixed."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        # by the schema of the file: the key columns and their types, by their names there
        self._known: dict[int, tuple[dict[str, str], dict[str, DataType]]] = {}

    def mark(self, keys: _SortedKeys, path: str, file: DataFileMeta, part: slice) -> Mask | None:
        """Mark the keys in a slice that the filters of a file admit; None: all."""
        if part.stop - part.start > _MOST_FILTERED_KEYS:
            return None
        names, types = self._known.get(file.schema_id) or self._find_names(file.schema_id)
        admitted: Mask | None = None
        for name, bloom in read_bloom_filters(self._context.engine, path, file, types).items():
            found = bloom.mask(keys.hash_column(names[name], bloom.form), part)
            admitted = found if admitted is None else admitted & found
        return admitted

    def _find_names(self, schema_id: int) -> tuple[dict[str, str], dict[str, DataType]]:
        schema = self._context.schema
        written = schema if schema_id == schema.id else load_schemas(self._context, [schema_id])[schema_id]
        keys = {f.id: f for f in schema.key_fields}
        held = {f.name: keys[f.id] for f in written.fields if f.id in keys}
        found = {name: f.name for name, f in held.items()}, {name: f.type for name, f in held.items()}
        self._known[schema_id] = found
        return found


def _mark_all(path: str, file: DataFileMeta, part: slice) -> None:
    """Return None: the file has no filters, and can contain all keys."""
