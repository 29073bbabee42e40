"""Open the files of a scan for a query engine that has its own Parquet reader.

Invariant: the shared files and the remaining rows together are the rows of the scan. Shared files may also have rows
for which the condition of the scan is false, because the engine evaluates its query on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from attrs import frozen

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
from paimon.operations.data_files.read_data_file import file_format, open_data_file
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.lost_rows import find_lost_rows
from paimon.operations.read.projection import ReadPlan, build_output_schema
from paimon.operations.read.split import leave_out_by_indexes, read_split
from paimon.operations.table_context import TableContext
from paimon.ports.formats import FileSharing, ShareRequest
from paimon.ports.queries import SharedFile, SourceFiles

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
