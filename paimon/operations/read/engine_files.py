"""Open the files of a scan for a query engine that has its own Parquet reader.

Where files overlap, the rows that a merge drops are found by their numbers in the files, from keys and sequence numbers
alone. The engine then reads the other columns, of the remaining rows. Only for engines whose newest record wins.

Invariant: the shared files and the remaining rows together are the rows of the scan. Shared files may also have rows
for which the condition of the scan is false, because the engine evaluates its query on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.row.values import to_array
from paimon.domain.scan.engine_files import (
    EngineFiles,
    FileReader,
    find_stored_fields,
    get_constants,
    restrict_split,
    select_engine_files,
)
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket, file_format, open_data_file, read_data_file
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.merge_read import MergeRead
from paimon.operations.read.projection import ReadPlan, build_output_schema
from paimon.operations.read.split import get_window_bytes, leave_out_by_indexes, read_split
from paimon.operations.table_context import TableContext
from paimon.ports.formats import FileSharing, ShareRequest
from paimon.ports.queries import SharedFile, SourceFiles

_VIEW = "lost rows"
"""The view of the first file of a split in the cache."""
_PLACE = f"{KEY_PREFIX}_PLACE"
"""A name that no column of a table has."""
_ROW_BYTES = 16
"""What a query engine needs for a lost row, about."""
_MEMORY_SHARE = 8
"""The part of the memory budget (1/n) for the marks of all rows, and for lost rows."""
_MOST_LOST = 0.2
"""The part of the rows that may be lost. To leave out more takes an engine longer than to read merged rows."""


@frozen(eq=False)
class _LostRows:
    """The lost rows of a split in the cache; None where they are too many."""

    files: tuple[DataFileMeta, ...]
    spec: MergeSpec
    rows: tuple[pa.Array, ...] | None


def find_lost_rows(context: TableContext, split: DataSplit, predicate: Predicate | None) -> tuple[pa.Array, ...] | None:
    """Return the numbers of the lost rows for each file of a split that needs a merge.

    None if they are too many, or if a predicate on the key lets a merge read a part of the keys only.
    """
    spec = MergeSpec.of(context.schema, context.options)
    known = evolve(spec, options=TableOptions())
    found = context.engine.cache.get(split.file_paths[0], _VIEW)
    if isinstance(found, _LostRows) and (found.files, found.spec) == (split.files, known):
        return found.rows
    if predicate is not None and restrict_to_columns(predicate, spec.key_names) is not None:
        return None
    rows = _find_rows(context, split, spec)
    size = 1_000 * len(split.files) + sum(numbers.nbytes for numbers in rows or ())
    context.engine.cache.put(split.file_paths[0], _LostRows(split.files, known, rows), size, _VIEW)
    return rows


def _find_rows(context: TableContext, split: DataSplit, spec: MergeSpec) -> tuple[pa.Array, ...] | None:
    starts = np.cumsum([0, *(file.row_count for file in split.files)])
    if starts[-1] * _MEMORY_SHARE > context.engine.memory.bytes:
        return None
    first = {file.file_name: start for file, start in zip(split.files, starts, strict=False)}
    is_lost = np.zeros(starts[-1], dtype=np.bool_)
    bucket = Bucket.of(context, split)

    def read_numbered(
        file: DataFileMeta, columns: Sequence[DataField], predicate: Predicate | None, limit: BatchLimit | None
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of all rows of a file with the place of each row among all rows of the split."""
        place = first[file.file_name]
        for batch in read_data_file(bucket, file, columns, limit=limit):
            places = np.arange(place, place + batch.num_rows)
            place += batch.num_rows
            yield batch.append_column(_PLACE, pa.array(places))

    files = _list_merged_files(split.files, spec)
    for file in files:
        is_lost[first[file.file_name] : first[file.file_name] + file.row_count] = True
    merge = MergeRead(spec, spec.key_fields[:1], None, read_numbered, get_window_bytes(context.engine))
    with report_expired(context, split.snapshot_id):
        for batch in merge.rows(files):
            is_lost[batch[_PLACE].to_numpy()] = False
    count = int(np.count_nonzero(is_lost))
    if count > _MOST_LOST * len(is_lost) or count * _ROW_BYTES * _MEMORY_SHARE > context.engine.memory.bytes:
        return None
    return tuple(pa.array(np.flatnonzero(is_lost[low:high])) for low, high in pairwise(starts))


def _list_merged_files(files: Sequence[DataFileMeta], spec: MergeSpec) -> list[DataFileMeta]:
    """Return the files that share key ranges, and those with retracts: all rows of the others remain."""
    read = {
        file.file_name
        for section in cut_into_sections(files, spec.sorted_key_types)
        for run in section
        for file in run.files
        if len(section) > 1 or file.delete_row_count != 0
    }
    return [file for file in files if file.file_name in read]  # in their order, which decides where NaN orders records


_CHECKS = "checks of pages"
"""The view of a data file in the cache."""


@frozen
class NamedFile:
    """A checked Parquet file that a query engine opens itself."""

    name: str
    # the full path
    path: str
    # for each column of the read, the field in the file; None if the file does not have the column
    fields: tuple[DataField | None, ...]


_BY_NAME = FileReader(skips_rows=True)
"""The reader of the embedded query engine."""


def find_engine_files(
    context: TableContext, splits: Sequence[DataSplit], read: ReadPlan, reader: FileReader = _BY_NAME
) -> EngineFiles:
    """Select the files that a query engine may read, without those that file indexes exclude; no data file is opened.

    No file is selected if the read has a limit, or returns row kinds, changes, system columns or nested fields.
    """
    schema = context.schema
    names = set(schema.names)
    plain = read.limit is None and not (read.row_kinds or read.unmerged or read.binlog)
    if not plain or not names.issuperset(read.columns):
        return EngineFiles((), tuple(splits))
    splits = leave_out_by_indexes(context, splits, read.predicate)
    schemas = _load_file_schemas(context, splits)
    return select_engine_files(context.table, schemas, splits, _list_fields(context, read), reader)


def open_engine_files(
    context: TableContext, selected: EngineFiles, read: ReadPlan, reads_keys: bool = True
) -> SourceFiles:
    """Open the files that `find_engine_files` selected for a query engine.

    A file whose content is not stored as expected is moved to the remaining rows, and so are merged splits without
    `reads_keys`. A damaged file is `CorruptTable`.
    """
    shared = _share_files(context, selected.files, read)
    files = [file for _, file in shared if file is not None]
    rest = [*selected.rest, *(split for split, file in shared if file is None)]
    lost_rows: dict[int, pa.Array] = {}
    for split in selected.merged:
        lost = find_lost_rows(context, split, read.predicate) if reads_keys else None
        parts = [restrict_split(split, (place,)) for place in range(len(split.files))]
        opened = [] if lost is None else [file for _, file in _share_files(context, parts, read) if file is not None]
        if lost is None or len(opened) < len(parts):
            rest.append(split)
            continue
        for file, part, numbers in zip(opened, split.files, lost, strict=True):
            if len(numbers) < part.row_count:
                lost_rows |= {len(files): numbers} if len(numbers) else {}
                files.append(file)
    return SourceFiles(files, partial(_read_splits, context, rest, read) if rest else None, lost_rows)


def check_engine_files(context: TableContext, selected: EngineFiles, read: ReadPlan) -> tuple[NamedFile, ...]:
    """Check the selected files for a query engine that opens files itself, for example in other processes.

    The footer of each file is read now; pages are not checked, because the engine reads them. Files that are not
    returned belong to the remaining rows. A symbolic link out of the allowed roots is `CorruptTable`.
    """
    if not selected.files:  # as of each read of nested fields or system columns, which are no fields of the schema
        return ()
    schemas, columns = _load_file_schemas(context, selected.files), _list_fields(context, read)
    return tuple(
        NamedFile(split.files[0].file_name, file.path, find_stored_fields(schemas[split.files[0].schema_id], columns))
        for split, file in _share_files(context, selected.files, read)
        if file is not None
    )


def _load_file_schemas(context: TableContext, splits: Sequence[DataSplit]) -> dict[int, TableSchema]:
    own = context.schema
    return {own.id: own, **load_schemas(context, {f.schema_id for s in splits for f in s.files} - {own.id})}


def _list_fields(context: TableContext, read: ReadPlan) -> list[DataField]:
    return [context.schema.field_of(name) for name in read.columns]


def _share_files(
    context: TableContext, files: Sequence[DataSplit], read: ReadPlan
) -> list[tuple[DataSplit, SharedFile | None]]:
    schemas, columns = _load_file_schemas(context, files), _list_fields(context, read)
    stored = {i: find_stored_fields(schema, columns) for i, schema in schemas.items()}
    return [
        (split, _share_file(context, split, [f for f in stored[split.files[0].schema_id] if f is not None]))
        for split in files
    ]


def _share_file(context: TableContext, split: DataSplit, fields: Sequence[DataField]) -> SharedFile | None:
    (file,), (path,) = split.files, split.file_paths
    found = context.engine.format(file_format(file.file_name))
    if not isinstance(found, FileSharing):
        return None
    types = {f.name: f.type for f in fields}
    try:
        constants = {
            name: to_array([value], types[name])[0].as_py()
            for name, value in get_constants(context.table, split.partition, fields).items()
        }
    except OverflowError:  # a time that Python lacks
        return None
    cache = context.engine.cache
    checks = cache.get(path, _CHECKS)
    with report_expired(context, split.snapshot_id):
        source = open_data_file(context.engine, path, file.file_size)
    shared = found.share(source, ShareRequest(path, fields, file.row_count, constants, checks))
    if shared is not None and shared.checks is not None and shared.checks is not checks:
        cache.put(path, shared.checks, shared.checks_bytes, _CHECKS)
    return shared


def _read_splits(context: TableContext, splits: Sequence[DataSplit], read: ReadPlan) -> pa.RecordBatchReader:
    def read_all() -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split after the other."""
        for split in splits:
            yield from read_split(context, split, read)

    return pa.RecordBatchReader.from_batches(build_output_schema(context.table, read), read_all())
