"""Read one split: the function that each task of a read runs, embedded or distributed.

Invariant: the result contains exactly the rows of the split for which the predicate is true, in the requested columns.
No file is opened before the first batch is requested.
Source: `TableRead`, `SplitRead`.
"""

# `_read_rows` reads the stored rows of a split in one of five ways:
#
#     `before_files` are given     DifferenceRead: what changed between two states of a bucket
#     primary key                  MergeRead: rows of one key are merged in windows
#     primary key, raw-convertible read_live_rows: each key is in the files once, so only retracts are left out
#     data evolution               read_data_evolution_files: the columns of a row are in several files
#     other append tables          one file after another
#
# All but the first read a file through `read_file`, which leaves out deleted rows. The predicate only skips row groups
# and, where each file is read alone, rows that the file indexes exclude. `_read_split` then evaluates it for each row,
# and cuts the result to the limit and the columns.
#
# A read without columns still needs one, because a batch without columns has no number of rows: a key column, or
# `_LEVEL`, which no file stores.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.changelog.binlog_columnar import pack_changes
from paimon.domain.deletion.row_slice import RowSlice
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.markup import format_count
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.scan.engine_files import restrict_split
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import arrow_field
from paimon.domain.types.arrow_arrays import make_array, make_scalar
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, ROW_ID, ROW_KIND, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import (
    BATCH_ROWS,
    BatchLimit,
    Bucket,
    narrow_by_indexes,
    read_data_file,
    select_by_indexes,
)
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.data_evolution_read import RowSelection, read_data_evolution_files
from paimon.operations.read.evaluate import evaluate_condition
from paimon.operations.read.merge_read import MergeRead, read_live_rows
from paimon.operations.read.plan import get_split_context
from paimon.operations.read.projection import (
    Projection,
    ReadPlan,
    apply_read_defaults,
    get_read_defaults,
    select_fields,
)
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

__all__ = ["ReadPlan", "read_split"]

_SYSTEM_NAMES = frozenset({ROW_ID.name, ROW_KIND.name, SEQUENCE_NUMBER.name})
_MOST_INDEXED_FILES = 1_000
"""Of more files, the indexes are only read by the tasks that read the files."""
_LEAST_BATCH_ROWS = 4_096
WINDOW_BYTES = 64 * 1024 * 1024
"""Size limit of a merge window. Larger windows were slower (new memory), and much smaller ones too (fixed costs)."""


def read_split(context: TableContext, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    """Read the rows of a split, which may belong to another branch than `context`; no batch is empty.

    The schema is `build_output_schema(table, read)`. Raises `SnapshotExpired` if the snapshot of the split expired, so
    that a file is deleted. Sequence numbers of a difference are `Unsupported`.
    """
    owner = get_split_context(context, split)  # the context of the branch that has the files
    with report_expired(owner, split.snapshot_id):
        yield from _read_split(context, owner, split, read)


def _read_split(
    context: TableContext, owner: TableContext, split: DataSplit, read: ReadPlan
) -> Iterator[pa.RecordBatch]:
    projection = Projection.of(context.table, read)
    remaining_rows = read.limit
    bucket = evolve(
        Bucket.of(owner, split),
        ignores_lost=context.options.scan_ignore_lost_files,
        ignores_corrupt=context.options.scan_ignore_corrupt_files,
        batch_rows=_limit_batch_rows(read),
    )
    rows = _read_rows(bucket, split, read)
    for batch in _to_binlog(context.table, read, rows) if read.binlog else rows:
        if read.row_kinds:
            batch = _append_row_kinds(batch)
        if read.predicate is not None:
            batch = batch.filter(evaluate_condition(context.engine, read.predicate, batch))
        if remaining_rows is not None:
            batch = batch.slice(0, remaining_rows)
            remaining_rows -= batch.num_rows
        if batch.num_rows:
            yield projection.apply(batch)
        if remaining_rows == 0:
            return


def _limit_batch_rows(read: ReadPlan) -> int:
    """Return the most rows of a batch: few if the read ends after few rows."""
    is_short = read.limit is not None and read.predicate is None
    return min(BATCH_ROWS, max(_LEAST_BATCH_ROWS, read.limit or 0)) if is_short else BATCH_ROWS


def _read_rows(bucket: Bucket, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    context = bucket.context
    numbered = SEQUENCE_NUMBER.name in {*read.columns, *read.predicate_columns}
    if split.before_files:
        if numbered:
            raise Unsupported("sequence numbers of a difference of two states", hint="leave out '_SEQUENCE_NUMBER'")
        yield from _read_difference(bucket, split, read)
        return
    keep_retracts = read.row_kinds or read.keep_retracts
    keys = context.schema.trimmed_primary_keys if read.binlog else ()
    names = {*read.columns, *read.predicate_columns, *keys} - _SYSTEM_NAMES
    system = [f for f in (ROW_ID, SEQUENCE_NUMBER) if f.name in {*read.columns, *read.predicate_columns}]
    wanted = (*select_fields(context.schema.fields, names), *system)
    skip = None if read.predicate is None else restrict_to_columns(read.predicate, context.schema.names)
    if read.row_kinds:
        wanted = (*wanted, VALUE_KIND)
    merged = _needs_merge(context, split)
    read_rows = read_in_key_order if merged else read_data_file
    select = _make_selection(bucket, split, None if read.binlog else skip)
    source = share_sort_memory(bucket, len(split.files)) if merged else bucket

    def read_file(
        file: DataFileMeta, columns: Sequence[DataField], predicate: Predicate | None, limit: BatchLimit | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of a file of the split without its deleted rows; rows that do not match may be left out."""
        selected = select(file)
        if isinstance(selected, RowSlice) and not selected.ranges:
            return iter(())
        return read_rows(source, file, columns, predicate, selected, limit)

    if merged:
        spec = MergeSpec.of(context.schema, context.options)
        columns = wanted or spec.key_fields[:1]
        window_bytes = get_window_bytes(context.engine)
        merging = MergeRead(spec, columns, skip, read_file, window_bytes, keep_retracts, bucket.batch_rows)
        yield from merging.rows(split.files)
        return
    if context.options.data_evolution_enabled and not split.raw_convertible:
        yield from read_data_evolution_files(bucket, split.files, wanted or (LEVEL,), select)
        return
    for file in split.files:
        if context.schema.primary_keys:
            yield from read_live_rows(read_file, file, wanted or (LEVEL,), skip, keep_retracts)
        else:
            yield from read_file(file, wanted or (LEVEL,), skip)


def read_in_key_order(
    bucket: Bucket,
    file: DataFileMeta,
    columns: Sequence[DataField],
    skip: Predicate | None = None,
    deleted: DeletionVector | RowSlice | None = None,
    limit: BatchLimit | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns of a file, the key among them, by ascending keys.

    The read can end after the largest key that matches `skip`. Several files at once need `share_sort_memory`.
    """
    if file.level > 0 and bucket.context.options.pk_clustering_override:
        from paimon.operations.data_files.external_sort import read_clustered_file  # loaded where a table needs it

        return read_clustered_file(bucket, file, columns, skip, deleted, limit)
    return read_data_file(bucket, file, columns, skip, deleted, limit, in_key_order=True)


def share_sort_memory(bucket: Bucket, files: int) -> Bucket:
    """Return the bucket for reads of so many files at once by ascending keys: their sorts share the memory budget."""
    if not bucket.context.options.pk_clustering_override:
        return bucket
    return evolve(bucket, context=bucket.context.with_memory_share(max(1, files)))


def _needs_merge(context: TableContext, split: DataSplit) -> bool:
    """Return whether several files of the split can have a live record of one key, or a merge changes rows."""
    is_clustered = context.options.pk_clustering_override and all(f.level > 0 for f in split.files)
    return bool(context.schema.primary_keys) and not split.raw_convertible and not is_clustered


def _make_selection(bucket: Bucket, split: DataSplit, predicate: Predicate | None) -> RowSelection:
    """Return what finds the deleted rows of a file of the split, or the part of it to read.

    With a predicate, rows that cannot match by the file indexes are left out. A merge needs all records of a key, and
    a row of data evolution is in several files, so these use no indexes. A binlog joins neighbors.
    """
    context = bucket.context
    if not _uses_indexes(context, split):
        predicate = None
    vectors = {f.file_name: d for f, d in zip(split.files, split.deletion_files, strict=False) if d is not None}
    ranges = {f.file_name: part for f, part in zip(split.files, split.row_ranges, strict=False)}
    chosen = RowIdRanges.of(split.row_id_ranges) if split.row_id_ranges else None

    def select(file: DataFileMeta) -> DeletionVector | RowSlice | None:
        """Return the deleted rows of a file, or the part of it to read."""
        vector = read_vector(context.engine, vectors[file.file_name]) if file.file_name in vectors else None
        if file.file_name in ranges:
            return RowSlice((ranges[file.file_name],), vector)
        if chosen is not None and file.first_row_id is not None and file.is_main_file:
            first = file.first_row_id
            parts = chosen.cut(first, first + file.row_count)
            return RowSlice(tuple((low - first, end - first) for low, end in parts), vector)
        return vector if predicate is None else narrow_by_indexes(bucket, file, predicate, vector)

    return select


def _uses_indexes(context: TableContext, split: DataSplit) -> bool:
    """Return whether each file of the split is read alone, and the table uses file indexes."""
    is_alone = split.raw_convertible or not context.schema.primary_keys
    return is_alone and context.options.file_index_read_enabled and not context.options.data_evolution_enabled


def leave_out_by_indexes(
    context: TableContext, splits: Sequence[DataSplit], predicate: Predicate | None
) -> Sequence[DataSplit]:
    """Return the splits without files whose indexes prove that no row matches; their `.index` files are read."""
    condition = None if predicate is None else restrict_to_columns(predicate, context.schema.names)
    files = [file for split in splits for file in split.files]
    if condition is None or len(files) > _MOST_INDEXED_FILES or not any(f.has_indexes for f in files):
        return splits
    restrict = partial(_restrict_by_indexes, context.for_tasks(len(splits)), condition)
    return [split for split in context.engine.executor.map(restrict, splits) if split is not None]


def _restrict_by_indexes(context: TableContext, condition: Predicate, split: DataSplit) -> DataSplit | None:
    """Return a split without the files that `leave_out_by_indexes` leaves out; None if no file remains."""
    place = get_split_context(context, split)
    if not _uses_indexes(place, split) or split.before_files or not any(f.has_indexes for f in split.files):
        return split
    bucket = Bucket.of(place, split)
    with report_expired(place, split.snapshot_id):
        places = [i for i, f in enumerate(split.files) if not select_by_indexes(bucket, f, condition).is_empty]
    return restrict_split(split, places) if places else None


def describe_index_selections(context: TableContext, splits: Sequence[DataSplit], predicate: Predicate) -> list[str]:
    """Return a line for the indexes that leave out rows of files: how many. Reads the `.index` files of the splits."""
    condition = restrict_to_columns(predicate, context.schema.names)
    counts: dict[str, list[int]] = {}
    if condition is None:
        return []
    for split in splits:
        owner = get_split_context(context, split)
        bucket = Bucket.of(owner, split)
        for file in split.files if _uses_indexes(owner, split) and not split.before_files else ():
            selection = select_by_indexes(bucket, file, condition)
            if selection.rows is not None:
                total = counts.setdefault(", ".join(selection.indexes), [0, 0, 0])
                total[0] += 1
                total[1] += selection.is_empty
                total[2] += file.row_count - len(selection.rows)
    return [
        f"  file index {name}: leaves out {format_count(rows, 'row')} of {format_count(files, 'file')}, "
        f"{format_count(skipped, 'file')} as a whole"
        for name, (files, skipped, rows) in counts.items()
    ]


def _to_binlog(table: TableDefinition, read: ReadPlan, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows as a binlog shows them; rows of a merged split are not joined to updates."""
    defaults = get_read_defaults(table)
    keys = table.schema.trimmed_primary_keys if read.unmerged else None
    return pack_changes((apply_read_defaults(batch, defaults) for batch in rows), keys)


def _read_difference(bucket: Bucket, split: DataSplit, read: ReadPlan) -> Iterator[pa.RecordBatch]:
    context = bucket.context
    keys = None if read.predicate is None else restrict_to_columns(read.predicate, context.schema.primary_keys)
    spec, window_bytes = MergeSpec.of(context.schema, context.options), get_window_bytes(context.engine)
    source = share_sort_memory(bucket, len(split.files) + len(split.before_files))
    from paimon.operations.read.changes.difference_read import DifferenceRead  # loaded with the first difference

    yield from DifferenceRead(spec, partial(_read_version, source, keys), window_bytes, read.row_kinds).rows(split)


def _read_version(
    bucket: Bucket,
    keys: Predicate | None,
    file: DataFileMeta,
    deleted: DeletionFile | None,
    columns: Sequence[DataField],
) -> Iterator[pa.RecordBatch]:
    """Read columns of a file without the rows that its deletion vector in one of the states marks."""
    vector = None if deleted is None else read_vector(bucket.context.engine, deleted)
    return read_in_key_order(bucket, file, columns, keys, vector)


def get_window_bytes(engine: Engine) -> int:
    """Return the size limit of a merge window."""
    return min(engine.memory.bytes // 6, WINDOW_BYTES)


def _append_row_kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Append the row kinds as text; rows of append tables, which store no kind, are inserts."""
    kinds = pc.fill_null(batch[VALUE_KIND.name], make_scalar(0, pa.int8()))
    return batch.append_column(arrow_field(ROW_KIND), make_array(KIND_TEXTS, pa.string()).take(kinds))
