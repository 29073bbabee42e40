"""Reads rows whose columns lie in several files.

Law: each column comes from the newest file that was written with it; all files of the rows hold as many, in the same
order. Source: `DataEvolutionSplitRead`, `DataEvolutionFileReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.row_ranges import range_groups
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.operations.read.data_file import Bucket, file_format, read_data_file

BLOB = "blob"


def read_side_by_side(
    bucket: Bucket, files: Sequence[DataFileMeta], wanted: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    """All rows of these files, with the wanted columns put together.

    Raises
    ------
    CorruptTable
        Files of the same rows differ in their ranges.
    Unsupported
        A wanted column lies in files of its own kind (BLOB), or the table stores descriptors of its values.
    """
    _refuse_descriptors(bucket, wanted)
    for group in range_groups(files):
        kept = [f for f in group if file_format(f.file_name) != BLOB]
        apart = next((f for f in group if file_format(f.file_name) == BLOB), None)
        if apart is not None:
            _refuse_columns_of(bucket, apart, wanted)
        if kept:
            _check_ranges(bucket, kept)
            yield from _together(bucket, _owners(bucket, kept, wanted), wanted)


def _refuse_descriptors(bucket: Bucket, wanted: Sequence[DataField]) -> None:
    """The data files hold a descriptor in the place of each value, which is not what the column holds."""
    described = bucket.table.options.blob_descriptor_fields
    name = next((f.name for f in wanted if f.name in described), None)
    if name is not None:
        raise Unsupported(f"reading column {name!r} through BLOB descriptors", hint="leave this column out")


def _refuse_columns_of(bucket: Bucket, file: DataFileMeta, wanted: Sequence[DataField]) -> None:
    held = {f.id for f in bucket.columns_of(file)}
    name = next((f.name for f in wanted if f.id in held), None)
    if name is not None:
        raise Unsupported(f"file format 'blob' of column {name!r}", hint="leave this column out")


def _check_ranges(bucket: Bucket, files: Sequence[DataFileMeta]) -> None:
    first = files[0]
    for file in files:
        if (file.first_row_id, file.row_count) != (first.first_row_id, first.row_count):
            raise CorruptTable(f"{bucket.path}/{file.file_name}", f"holds other rows than {first.file_name}")


def _owners(
    bucket: Bucket, files: Sequence[DataFileMeta], wanted: Sequence[DataField]
) -> Mapping[str, tuple[DataFileMeta, list[DataField]]]:
    """The wanted columns by the file that they come from; the newest has those that no file holds."""
    held = {file.file_name: {f.id for f in bucket.columns_of(file)} for file in files}
    owners: dict[str, tuple[DataFileMeta, list[DataField]]] = {}
    for column in wanted:
        owner = next((file for file in files if column.id in held[file.file_name]), files[0])
        owners.setdefault(owner.file_name, (owner, []))[1].append(column)
    return owners


def _together(
    bucket: Bucket, owners: Mapping[str, tuple[DataFileMeta, list[DataField]]], wanted: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    streams = [read_data_file(bucket, file, columns) for file, columns in owners.values()]
    schema = arrow_schema(wanted)
    for parts in _aligned(streams):
        columns = {name: part.column(name) for part in parts for name in part.schema.names}
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _aligned(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of several streams of equal length, cut to the same rows."""
    held: list[pa.RecordBatch | None] = [None] * len(streams)
    while True:
        parts = [_next(stream) if batch is None else batch for stream, batch in zip(streams, held, strict=True)]
        found = [part for part in parts if part is not None]
        if len(found) < len(streams):
            return
        rows = min(part.num_rows for part in found)
        yield [part.slice(0, rows) for part in found]
        held = [part.slice(rows) if part.num_rows > rows else None for part in found]


def _next(stream: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in stream if batch.num_rows), None)
