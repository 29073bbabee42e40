"""Read one data file as columns of the current schema.

Invariant: columns are found by field id through the schema that the file was written with, and cast to the current
types. Partition columns come from the partition, never from the file. Rows in the deletion vector are left out. A
predicate only skips parts of the file: rows that do not match may be returned.

Source: `FormatReaderMapping`, `KeyValueFileReaderFactory`, `RawFileSplitRead`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.columns.cast import cast_column
from paimon.domain.deletion.row_slice import ALL_ROWS, RowSelection, RowSlice
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, Unsupported
from paimon.domain.lsm.sorted_run import SortedRun
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import list_ancestors
from paimon.domain.predicate.transform import columns_of, rename_columns, restrict_to_columns
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_array
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.read_mapping import FieldMapping, map_fields
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.domain.types.system_columns import LEVEL, ROW_ID, SEQUENCE_NUMBER, VALUE_KIND
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import check_stop
from paimon.ports.engine import Engine
from paimon.ports.formats import ReadRequest

BATCH_ROWS = 122_880
"""The rows of a row group as we write it: each batch has fixed costs, and none has rows of two dictionaries."""
_LEAST_ROWS = 256
_TEXT_EXPANSION = 4
"""Text takes about this many times as many bytes in memory as in files."""
_TOLERANCE = 4
"""How many times the limit a batch may need if each value were the longest one of its column."""
_BATCH_SHARE = 16
"""The part of the memory budget (1/n) for a batch: the next one is decoded before it is released."""
_MAX_TRUSTED_ROWS = 100_000_000
RELEASED_BYTES = 8 << 20
"""When so much was decoded or encoded, the thread returns the free memory of its decoder or encoder."""
_SELECTIVE_SHARE = 0.75
"""A selection with a larger part of the rows is not used: statistics of row groups may skip more."""
_CODEC_EXTENSIONS = frozenset({"gz", "bz2", "deflate", "snappy", "lz4", "zst", "lzo"})


# Batches fit the memory budget. A batch is decoded before its size is known, so its rows follow from an estimate: the
# widths of fixed-width columns, and a multiple of the size in the file for others. A format that knows the sizes of its
# pages reads fewer rows where they might need several times the limit.


@frozen
class BatchLimit:
    """The most rows of a batch, and the most bytes that they may need if each value were the longest one."""

    rows: int
    bytes: int

    @classmethod
    def of(
        cls,
        limit_bytes: int,
        columns: Sequence[DataField],
        stored: Sequence[DataField],
        files: Sequence[DataFileMeta | SortedRun],
        batch_rows: int = BATCH_ROWS,
    ) -> BatchLimit:
        """Return the limit for batches of about `limit_bytes` of these columns; the files have the columns `stored`."""
        types = {f.name: arrow_type(f.type) for f in (*stored, *columns)}
        texts = sum(not pa.types.is_primitive(kind) for kind in types.values()) or 1
        row_bytes = 0
        for kind in (types[f.name] for f in columns):
            is_fixed = pa.types.is_primitive(kind)
            row_bytes += kind.bit_width // 8 + 1 if is_fixed else _TEXT_EXPANSION * measure_rows(files) // texts
        rows = max(_LEAST_ROWS, min(batch_rows, limit_bytes // max(1, row_bytes)))
        return cls(rows, max(1, _TOLERANCE * limit_bytes))


def measure_rows(files: Sequence[DataFileMeta | SortedRun]) -> int:
    """Return the bytes of a row in the file with the largest rows, at least 1."""
    return max(1, *(file.file_size // max(1, file.row_count) for file in files))


@frozen(eq=False)
class Bucket:
    """The bucket whose files are read."""

    context: TableContext
    # the directory of the files
    path: str
    # the value of each partition column, in internal representation
    partition: Mapping[str, Any]
    # the schemas that the files were written with, by id
    schemas: Mapping[int, TableSchema]
    # leave out missing files with a warning; only for reads: compaction would make the loss permanent
    ignores_lost: bool = False
    # leave out files that cannot be decoded, with a warning; only for reads, too
    ignores_corrupt: bool = False
    # the most rows of a batch
    batch_rows: int = BATCH_ROWS

    @classmethod
    def of(cls, context: TableContext, split: DataSplit) -> Bucket:
        """Return the bucket of a split, and load the schemas of its files."""
        fields = context.schema.partition_fields
        row = binary_row.deserialize(split.partition, [f.type for f in fields]) if fields else ()
        own = {context.schema.id: context.schema}
        others = {f.schema_id for f in (*split.files, *split.before_files)} - own.keys()
        schemas = own | {i: load_schema(context.engine, context.paths, i) for i in sorted(others)}
        return cls(context, split.bucket_path, dict(zip((f.name for f in fields), row, strict=True)), schemas)

    def path_of(self, file: DataFileMeta) -> str:
        """Return the path of a file."""
        return file.path_in(self.path)

    def columns_of(self, file: DataFileMeta) -> tuple[DataField, ...]:
        """Return the columns of the table that a file was written with, in the types of that time."""
        fields = self.schemas[file.schema_id].fields
        return fields if file.write_cols is None else tuple(f for f in fields if f.name in file.write_cols)


def file_format(file_name: str) -> str:
    """Return the format in a file name: the last extension, or the one before the extension of a codec."""
    parts = file_name.split(".")
    last = parts[-2] if len(parts) > 2 and parts[-1] in _CODEC_EXTENSIONS else parts[-1]
    return last.removeprefix("cc-")


def read_data_file(
    bucket: Bucket,
    file: DataFileMeta,
    wanted: Sequence[DataField],
    predicate: Predicate | None = None,
    deleted: DeletionVector | RowSlice | None = None,
    limit: BatchLimit | None = None,
    in_key_order: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read the columns `wanted` of one file, in file order; parts that cannot match the predicate are skipped.

    `limit` bounds the batches; None is a share of the memory budget.
    `deleted` are the row positions to leave out, or the part of the file to read. Statistics skip no part then, because
    positions must be known. With `in_key_order` (a file of a sorted run), the read can end after the largest matching
    key.
    """
    names_wanted = {f.name for f in wanted}
    has_row_ids = ROW_ID.name in names_wanted
    has_sequences = SEQUENCE_NUMBER.name in names_wanted and not bucket.context.schema.primary_keys
    if has_row_ids:
        predicate = None  # the position of each row must be known
    mappings = map_fields(wanted, _file_fields(bucket, file))
    constants = _build_constants(bucket, file, wanted)
    sources = tuple(m.source for m in mappings if m.source is not None and m.wanted.name not in constants)
    if not sources and (bucket.ignores_lost or bucket.ignores_corrupt):
        sources = _file_fields(bucket, file)[:1]  # a file that cannot be read has no rows
    names = _columns_without_cast(bucket, file) if predicate is not None and deleted is None else {}
    skip = _file_predicate(predicate, names)
    ascending = _leading_key(bucket, names) if in_key_order and skip is not None else None
    part = deleted if isinstance(deleted, RowSlice) else None
    position = 0
    if limit is None:
        limit_bytes = bucket.context.engine.memory.bytes // _BATCH_SHARE
        limit = BatchLimit.of(limit_bytes, wanted, _file_fields(bucket, file), [file], bucket.batch_rows)
    for rows, batch in _read_tolerant_batches(bucket, file, sources, skip, limit, ascending, part):
        try:
            assembled = _assemble_batch(mappings, constants, batch, rows, file.schema_id > bucket.context.schema.id)
        except Unsupported as error:
            raise error.within(bucket.path_of(file)) from None
        if has_row_ids:
            assembled = _fill_row_ids(bucket, file, assembled, position, part)
        if has_sequences:
            assembled = _fill_sequence_numbers(file, assembled)
        deleted_rows = None if deleted is None else deleted.mask(position, rows)
        if deleted_rows is not None and deleted_rows.any():
            assembled = assembled.filter(from_numpy(~deleted_rows))
        position += rows
        yield assembled


def _file_fields(bucket: Bucket, file: DataFileMeta) -> tuple[DataField, ...]:
    fields = bucket.columns_of(file)
    if bucket.context.schema.primary_keys:
        return (*fields, SEQUENCE_NUMBER, VALUE_KIND)
    return (*fields, *(f for f in (ROW_ID, SEQUENCE_NUMBER) if f.name in (file.write_cols or ())))


def narrow_by_indexes(
    bucket: Bucket, file: DataFileMeta, predicate: Predicate, deleted: DeletionVector | None
) -> DeletionVector | RowSlice | None:
    """Narrow a read by file indexes and `deleted`, which is returned if the indexes leave out few rows."""
    if deleted is not None and len(deleted.words) > 1:
        return deleted
    rows = select_by_indexes(bucket, file, predicate).rows
    if rows is None:
        return deleted
    found = RowSlice.of_rows(rows - deleted.words[0] if deleted is not None and deleted.words else rows)
    return found if found.row_count <= _SELECTIVE_SHARE * file.row_count else deleted


def select_by_indexes(bucket: Bucket, file: DataFileMeta, predicate: Predicate) -> RowSelection:
    """Return the rows, deleted ones included, that can match by the file indexes."""
    condition = _file_predicate(predicate, _columns_without_cast(bucket, file)) if file.has_indexes else None
    if condition is None:
        return ALL_ROWS
    from paimon.operations.data_files.file_indexes import select_rows  # loaded where a file has indexes

    types = {f.name: f.type for f in _file_fields(bucket, file)}
    return select_rows(bucket.context.engine, bucket.path_of(file), file, types, condition)


def _fill_row_ids(
    bucket: Bucket, file: DataFileMeta, batch: pa.RecordBatch, position: int, part: RowSlice | None
) -> pa.RecordBatch:
    """Set the ids of rows that the file does not store: they ascend from the first one."""
    place = batch.schema.get_field_index(ROW_ID.name)
    stored = batch.column(place)
    if not stored.null_count:
        return batch
    if file.first_row_id is None:
        raise CorruptTable(bucket.path_of(file), "has no row ids, but its table tracks rows")
    rows = batch.num_rows
    positions = np.arange(position, position + rows) if part is None else part.find_positions(position, rows)
    ids = from_numpy(file.first_row_id + positions.astype(np.int64))
    return batch.set_column(place, batch.schema.field(place), pc.coalesce(stored, ids))


def _fill_sequence_numbers(file: DataFileMeta, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Set the sequence numbers of rows of a table with row tracking that the file does not store."""
    place = batch.schema.get_field_index(SEQUENCE_NUMBER.name)
    numbers = pc.fill_null(batch.column(place), file.max_sequence_number)
    return batch.set_column(place, batch.schema.field(place), numbers)


def _build_constants(bucket: Bucket, file: DataFileMeta, wanted: Sequence[DataField]) -> Mapping[str, pa.Scalar]:
    values = {**bucket.partition, LEVEL.name: file.level}
    return {f.name: to_array([values[f.name]], f.type)[0] for f in wanted if f.name in values}


def _read_tolerant_batches(
    bucket: Bucket, file: DataFileMeta, *request: Any
) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """Yield the batches of a file; leave out a lost or corrupt file, or the rest of it, if the bucket ignores it."""
    try:
        yield from _read_batches(bucket, file, *request)
    except CorruptTable as error:
        is_lost = bucket.context.files.status(bucket.path_of(file)) is None
        if not (bucket.ignores_lost if is_lost else bucket.ignores_corrupt):
            raise
        bucket.context.engine.observer.count("read.files.lost" if is_lost else "read.files.corrupt", 1)
        option = "scan.ignore-lost-files" if is_lost else "scan.ignore-corrupt-files"
        warnings.warn(
            f"A data file is left out because of option {option!r}: {error.message}", RuntimeWarning, stacklevel=2
        )


def _read_batches(
    bucket: Bucket,
    file: DataFileMeta,
    sources: tuple[DataField, ...],
    skip: Predicate | None,
    limit: BatchLimit,
    ascending: str | None,
    part: RowSlice | None,
) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """Yield the number of rows and the stored columns of each batch; None if no stored column is needed."""
    expected = file.row_count if part is None else part.row_count
    # Only constants and nulls are wanted, so the row count is enough, unless it is implausible.
    if not sources and expected <= _MAX_TRUSTED_ROWS:
        for start in range(0, expected, limit.rows):
            yield min(limit.rows, expected - start), None
        return
    path = bucket.path_of(file)
    named = () if skip is None else _select_fields(_file_fields(bucket, file), columns_of(skip))
    engine = bucket.context.engine
    threads = engine.memory.leaves_threads
    ranges = None if part is None else part.ranges
    request = ReadRequest(path, sources, skip, named, limit.rows, ranges, ascending, limit.bytes, threads)
    rows = decoded_bytes = 0
    with open_data_file(engine, path, file.file_size) as source:
        try:
            for batch in engine.format(file_format(file.file_name)).read(source, request):
                check_stop()
                rows += batch.num_rows
                decoded_bytes += batch.nbytes
                if rows > expected:
                    break
                yield batch.num_rows, batch
                if decoded_bytes > RELEASED_BYTES:
                    engine.process.release_thread_memory()
                    decoded_bytes = 0
        except Unsupported as error:
            raise error.within(path) from None
        except (NotFound, CorruptTable):
            # A remote file is opened late if the cache has its size (`cached_blocks.py`).
            if engine.files.status(path) is None:
                raise _missing_file_error(path) from NotFound("file", path)
            raise
    _check_row_count(path, expected, rows, is_whole=skip is None)


def _check_row_count(path: str, recorded: int, rows: int, is_whole: bool) -> None:
    """Refuse a file with another number of rows than recorded; the end of a file may not have been read."""
    if rows > recorded:
        raise CorruptTable(path, f"has at least {rows} rows, but its manifest records {recorded}")
    if is_whole and rows < recorded:
        raise CorruptTable(path, f"has {rows} rows, but its manifest records {recorded}")


def _select_fields(fields: Sequence[DataField], paths: Collection[str]) -> tuple[DataField, ...]:
    """Return the fields that contain a value at one of these paths, such as ``place.city`` or ``tags[color]``."""
    names = {name for path in paths for name in list_ancestors(path)}
    return tuple(f for f in fields if f.name in names)


def open_data_file(engine: Engine, path: str, size: int) -> pa.NativeFile:
    """Open a data file, which the caller closes; a missing file, or one of another size, is `CorruptTable`."""
    try:
        source = engine.files.open(path)
    except NotFound as error:
        raise _missing_file_error(path) from error
    if source.size() != size:
        with source:
            raise CorruptTable(path, f"has {source.size()} bytes, but its manifest records {size}")
    return source


def _missing_file_error(path: str) -> CorruptTable:
    hint = "its snapshot may have expired during the read: plan the scan again"
    return CorruptTable(path, "does not exist, but a manifest references it", hint=hint)


def _assemble_batch(
    mappings: Sequence[FieldMapping],
    constants: Mapping[str, pa.Scalar],
    batch: pa.RecordBatch | None,
    rows: int,
    is_newer: bool,
) -> pa.RecordBatch:
    columns: list[pa.Array] = []
    at = 0
    for mapping in mappings:
        name = mapping.wanted.name
        if name in constants:
            columns.append(pa.repeat(constants[name], rows))
        elif mapping.source is None or batch is None:
            columns.append(pa.nulls(rows, arrow_type(mapping.wanted.type)))
        else:
            column = batch.column(at)
            at += 1
            made = _cast_stored(column, mapping.source, mapping.wanted) if mapping.needs_cast else column
            if is_newer and mapping.needs_cast:
                _check_newer_values(column, made, mapping.source, mapping.wanted)
            columns.append(made)
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema([m.wanted for m in mappings]))


def _check_newer_values(column: pa.Array, made: pa.Array, stored: DataField, wanted: DataField) -> None:
    """Refuse values of a newer type that the type of a table that was opened before does not hold."""
    back = cast_column(made, wanted.type, stored.type)
    is_equal = back.equals(column)
    if not is_equal and pa.types.is_floating(column.type):
        same = pc.or_(pc.equal(back, column), pc.and_(pc.is_nan(back), pc.is_nan(column)))
        is_equal = back.null_count == column.null_count and pc.all(same).as_py() is not False
    if not is_equal:
        raise InvalidRequest(
            f"Column {wanted.name!r} has values that {format_type(wanted.type)} does not hold, because it became "
            f"{format_type(stored.type)} after the table was opened.",
            subject=wanted.name,
            hint="open the table again",
        )


def _cast_stored(column: pa.Array, stored: DataField, wanted: DataField) -> pa.Array:
    """Cast values of another type; errors name the column."""
    try:
        return cast_column(column, stored.type, wanted.type)
    except Unsupported as error:
        raise Unsupported(f"column {wanted.name!r}: {error.feature}", hint=error.hint) from error
    except InvalidRequest as error:
        raise InvalidRequest(
            f"Column {wanted.name!r}: {error.message}", subject=wanted.name, hint=error.hint
        ) from error


def _columns_without_cast(bucket: Bucket, file: DataFileMeta) -> dict[str, str]:
    """Return the columns that the file has in the current type, with their names in the file."""
    fields = [f for f in bucket.context.schema.fields if f.name not in bucket.partition]
    mappings = map_fields(fields, _file_fields(bucket, file))
    return {m.wanted.name: m.source.name for m in mappings if m.source is not None and not m.needs_cast}


def _file_predicate(predicate: Predicate | None, names: Mapping[str, str]) -> Predicate | None:
    """Return the predicate with the names of the file, without conjuncts on columns that are missing in `names`."""
    restricted = None if predicate is None else restrict_to_columns(predicate, names)
    return None if restricted is None else rename_columns(restricted, names)


def _leading_key(bucket: Bucket, names: Mapping[str, str]) -> str | None:
    """Return the column that ascends in a sorted run, by its name in the file; None for floating types."""
    key = bucket.context.schema.key_fields[0]
    return None if isinstance(key.type, FloatType | DoubleType) else names.get(key.name)
