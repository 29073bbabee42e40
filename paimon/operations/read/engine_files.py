"""Open the files of a scan for a query engine that has its own Parquet reader.

Invariant: the shared files and the remaining rows together are the rows of the scan. Shared files may also have rows
for which the condition of the scan is false, because the engine evaluates its query on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from paimon.domain.row.values import to_array
from paimon.domain.scan.engine_files import EngineFiles, get_constants, select_engine_files
from paimon.domain.scan.splits import DataSplit
from paimon.operations.data_files.read_data_file import file_format, open_data_file
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.read.projection import ReadPlan, build_output_schema
from paimon.operations.read.split import read_split
from paimon.operations.table_context import TableContext
from paimon.ports.formats import FileSharing, ShareRequest
from paimon.ports.queries import SharedFile, SourceFiles

_CHECKS = "checks of pages"
"""The view of a data file in the cache."""


def find_engine_files(context: TableContext, splits: Sequence[DataSplit], read: ReadPlan) -> EngineFiles:
    """Select the files that a query engine may read; no data file is opened.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    splits : sequence of DataSplit
        The planned splits.
    read : ReadPlan
        What is read of them.

    Returns
    -------
    EngineFiles
        No file is selected if the read has a limit, or more than the rows of the table.
    """
    schema = context.schema
    names = set(schema.names)
    plain = read.limit is None and not (read.row_kinds or read.keep_retracts or read.binlog)
    if not plain or not names.issuperset(read.columns):
        return EngineFiles((), tuple(splits))
    schemas = {schema.id: schema, **load_schemas(context, {f.schema_id for s in splits for f in s.files} - {schema.id})}
    return select_engine_files(context.table, schemas, splits, [schema.field_of(name) for name in read.columns])


def open_engine_files(context: TableContext, selected: EngineFiles, read: ReadPlan) -> SourceFiles:
    """Open the selected files for a query engine.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    selected : EngineFiles
        The result of `find_engine_files`.
    read : ReadPlan
        What is read of the files.

    Returns
    -------
    SourceFiles
        A file whose content is not stored as expected belongs to the remaining rows.

    Raises
    ------
    CorruptTable
        A file is missing or damaged.
    """
    shared = [(split, _share_file(context, split, read)) for split in selected.files]
    rest = (*selected.rest, *(split for split, file in shared if file is None))
    files = [file for _, file in shared if file is not None]
    return SourceFiles(files, partial(_read_splits, context, rest, read) if rest else None)


def _share_file(context: TableContext, split: DataSplit, read: ReadPlan) -> SharedFile | None:
    (file,), (path,) = split.files, split.file_paths
    found = context.engine.format(file_format(file.file_name))
    if not isinstance(found, FileSharing):
        return None
    fields = [context.schema.field_of(name) for name in read.columns]
    constants = {
        name: to_array([value], context.schema.field_of(name).type)[0].as_py()
        for name, value in get_constants(context.table, split.partition, fields).items()
    }
    cache = context.engine.cache
    checks = cache.get(path, _CHECKS)
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
