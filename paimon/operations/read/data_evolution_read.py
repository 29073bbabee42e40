"""Read rows whose columns lie in several files (data evolution).

Invariant: each column is read from the newest file that was written with it. All files of the same rows have the same
number of rows in the same order. Source: `DataEvolutionSplitRead`, `DataEvolutionFileReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.row_ranges import group_by_row_range
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.read_data_file import Bucket, file_format, read_data_file

BLOB = "blob"


def read_data_evolution_files(
    bucket: Bucket, files: Sequence[DataFileMeta], wanted: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    """Read all rows of these files, and join the wanted columns of each row.

    Parameters
    ----------
    bucket : Bucket
        The location and the schemas of the files.
    files : sequence of DataFileMeta
        Files with row ids, in any order.
    wanted : sequence of DataField
        The columns to read; a column that no file has is null.

    Yields
    ------
    RecordBatch
        The wanted columns, in ascending order of row ids.

    Raises
    ------
    CorruptTable
        Files of the same rows differ in their row id ranges.
    Unsupported
        A wanted column lies in BLOB files, or the table stores descriptors of its values.
    """
    _refuse_descriptors(bucket, wanted)
    for group in group_by_row_range(files):
        kept = [f for f in group if file_format(f.file_name) != BLOB]
        blob_file = next((f for f in group if file_format(f.file_name) == BLOB), None)
        if blob_file is not None:
            _refuse_blob_columns(bucket, blob_file, wanted)
        if kept:
            _check_ranges(bucket, kept)
            yield from _join_columns(bucket, _assign_columns_to_files(bucket, kept, wanted), wanted)


def _refuse_descriptors(bucket: Bucket, wanted: Sequence[DataField]) -> None:
    """Raise for a column whose data files contain descriptors instead of values."""
    described = bucket.context.options.blob_descriptor_fields
    name = next((f.name for f in wanted if f.name in described), None)
    if name is not None:
        raise Unsupported(f"reading column {name!r} through BLOB descriptors", hint="leave this column out")


def _refuse_blob_columns(bucket: Bucket, file: DataFileMeta, wanted: Sequence[DataField]) -> None:
    held = {f.id for f in bucket.columns_of(file)}
    name = next((f.name for f in wanted if f.id in held), None)
    if name is not None:
        raise Unsupported(f"file format 'blob' of column {name!r}", hint="leave this column out")


def _check_ranges(bucket: Bucket, files: Sequence[DataFileMeta]) -> None:
    first = files[0]
    for file in files:
        if (file.first_row_id, file.row_count) != (first.first_row_id, first.row_count):
            raise CorruptTable(
                f"{bucket.path}/{file.file_name}", f"has a row id range that differs from {first.file_name}"
            )


def _assign_columns_to_files(
    bucket: Bucket, files: Sequence[DataFileMeta], wanted: Sequence[DataField]
) -> Mapping[str, tuple[DataFileMeta, list[DataField]]]:
    """Group the wanted columns by the file that they are read from; the newest file gets columns that no file has."""
    held = {file.file_name: {f.id for f in bucket.columns_of(file)} for file in files}
    owners: dict[str, tuple[DataFileMeta, list[DataField]]] = {}
    for column in wanted:
        owner = next((file for file in files if column.id in held[file.file_name]), files[0])
        owners.setdefault(owner.file_name, (owner, []))[1].append(column)
    return owners


def _join_columns(
    bucket: Bucket, owners: Mapping[str, tuple[DataFileMeta, list[DataField]]], wanted: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    streams = [read_data_file(bucket, file, columns) for file, columns in owners.values()]
    schema = arrow_schema(wanted)
    for parts in _align_batches(streams):
        columns = {name: part.column(name) for part in parts for name in part.schema.names}
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _align_batches(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield one batch of each stream at a time, cut to the same rows; the streams have equal length."""
    held: list[pa.RecordBatch | None] = [None] * len(streams)
    while True:
        parts = [_next_batch(stream) if batch is None else batch for stream, batch in zip(streams, held, strict=True)]
        found = [part for part in parts if part is not None]
        if len(found) < len(streams):
            return
        rows = min(part.num_rows for part in found)
        yield [part.slice(0, rows) for part in found]
        held = [part.slice(rows) if part.num_rows > rows else None for part in found]


def _next_batch(stream: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in stream if batch.num_rows), None)
