"""Read rows whose columns lie in several files (data evolution).

Invariant: each column is read from the newest file that was written with it. All files of the same rows have the same
number of rows in the same order; only dedicated files, of BLOB and VECTOR columns, may be several, one after the other.
Source: `DataEvolutionSplitRead`, `DataEvolutionFileReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from paimon.domain.deletion.row_slice import RowSlice
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.row_id_groups import group_by_row_range, place_files
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import SEQUENCE_NUMBER
from paimon.operations.data_files.read_data_file import Bucket, read_data_file

RowSelection: TypeAlias = Callable[[DataFileMeta], DeletionVector | RowSlice | None]
"""Returns the deleted rows of a file, or the part of it to read; None for all rows."""


def _select_all(file: DataFileMeta) -> None:
    """Select all rows of a file."""


def read_data_evolution_files(
    bucket: Bucket,
    files: Sequence[DataFileMeta],
    wanted: Sequence[DataField],
    select: RowSelection = _select_all,
) -> Iterator[pa.RecordBatch]:
    """Read rows of files with row ids, and join the wanted columns of each row, in ascending order of row ids.

    The files may be in any order; a column that no file has is null. What `select` returns for one file holds for all
    files of the same rows.
    """
    _refuse_descriptors(bucket, wanted)
    for group in group_by_row_range(files):
        kept = [f for f in group if f.is_main_file]
        if kept:
            _check_ranges(bucket, kept)
            selected = _select_rows(group, select)
            streams = _open_dedicated_columns(bucket, group, kept, selected, wanted)
            others = [column for column in wanted if column.name not in streams]
            owners = _assign_columns_to_files(bucket, kept, others)
            read = partial(_read_columns, bucket, kept, selected)
            yield from _join_columns([*starmap(read, owners.values()), *streams.values()], wanted)


def _select_rows(group: Sequence[DataFileMeta], select: RowSelection) -> DeletionVector | RowSlice | None:
    """Return the rows to read of all files of a group; one of the files has the deletion vector of the group."""
    found = [selected for file in group if (selected := select(file)) is not None]
    with_vector = (s for s in found if isinstance(s, DeletionVector) or s.deleted is not None)
    return next(with_vector, found[0] if found else None)


def _read_columns(
    bucket: Bucket,
    group: Sequence[DataFileMeta],
    selected: DeletionVector | RowSlice | None,
    file: DataFileMeta,
    columns: Sequence[DataField],
) -> Iterator[pa.RecordBatch]:
    """Yield columns of a file; the sequence number of its rows is the largest one of all files of the group."""
    batches = read_data_file(bucket, file, columns, deleted=selected)
    names = [column.name for column in columns]
    if SEQUENCE_NUMBER.name not in names or len(group) == 1:
        yield from batches
        return
    place, largest = names.index(SEQUENCE_NUMBER.name), max(f.max_sequence_number for f in group)
    for batch in batches:
        numbers = from_numpy(np.full(batch.num_rows, largest, np.int64))
        yield batch.set_column(place, batch.schema.field(place), numbers)


def _refuse_descriptors(bucket: Bucket, wanted: Sequence[DataField]) -> None:
    """Raise for a column whose data files contain descriptors instead of values."""
    described = bucket.context.options.blob_descriptor_fields
    name = next((f.name for f in wanted if f.name in described), None)
    if name is not None:
        raise Unsupported(f"reading column {name!r} through BLOB descriptors", hint="leave this column out")


def _open_dedicated_columns(
    bucket: Bucket,
    group: Sequence[DataFileMeta],
    kept: Sequence[DataFileMeta],
    selected: DeletionVector | RowSlice | None,
    wanted: Sequence[DataField],
) -> dict[str, Iterator[pa.RecordBatch]]:
    """Return the values of each column whose newest file is dedicated; `kept` are the other files of the group."""
    files: dict[int, list[DataFileMeta]] = {}
    for file in group:
        if not file.is_main_file:
            for field in bucket.columns_of(file):
                files.setdefault(field.id, []).append(file)
    in_main: dict[int, int] = {}  # the largest sequence number by column
    for file in reversed(kept) if files else ():
        in_main |= {field.id: file.max_sequence_number for field in bucket.columns_of(file)}
    return {
        column.name: _read_dedicated_column(bucket, place_files(files[column.id], kept[0]), selected, column)
        for column in wanted
        if column.id in files and files[column.id][0].max_sequence_number > in_main.get(column.id, -1)
    }


def _read_dedicated_column(
    bucket: Bucket,
    placed: Sequence[tuple[int, DataFileMeta]],
    selected: DeletionVector | RowSlice | None,
    column: DataField,
) -> Iterator[pa.RecordBatch]:
    """Yield the values of a column from files that follow each other, each with the position of its first row."""
    for first, file in placed:
        part = selected if len(placed) == 1 or selected is None else selected.cut(first, file.row_count)
        yield from read_data_file(bucket, file, [column], deleted=part)


def _check_ranges(bucket: Bucket, files: Sequence[DataFileMeta]) -> None:
    first = files[0]
    for file in files:
        if (file.first_row_id, file.row_count) != (first.first_row_id, first.row_count):
            raise CorruptTable(bucket.path_of(file), f"has a row id range that differs from {first.file_name}")


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


def _join_columns(streams: Sequence[Iterator[pa.RecordBatch]], wanted: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
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
