"""Reads one data file as the table's columns of today.

Law: columns are found by field id through the schema that wrote the file, and cast to today's types; partition
columns come from the partition row, never from the file; rows that the deletion vector names are gone. A predicate
only skips: rows that do not match may come. Source: `FormatReaderMapping`, `KeyValueFileReaderFactory`,
`RawFileSplitRead`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.cast import cast
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import CorruptTable, NotFound, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of, only_columns, rename
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_array
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.read_mapping import FieldMapping, map_fields
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.read.schemas import load_schema
from paimon.ports.engine import Engine
from paimon.ports.formats import ReadRequest

BATCH_ROWS = 65_536
_BELIEVED_ROWS = 100_000_000
_COMPRESSED = frozenset({"gz", "bz2", "deflate", "snappy", "lz4", "zst", "lzo"})


@frozen(eq=False)
class Bucket:
    """Where files of one bucket are read from.

    Parameters
    ----------
    path : str
        Directory of the files.
    partition : mapping
        Internal value of each partition column.
    schemas : mapping
        The schemas that wrote the files, by id.
    ignores_lost, ignores_corrupt : bool
        Whether a file that is missing, or that cannot be decoded, is left out with a warning. Only reads of users ask
        for that: a compaction that did so would make the loss permanent.
    """

    engine: Engine
    table: TableDefinition
    path: str
    partition: Mapping[str, Any]
    schemas: Mapping[int, TableSchema]
    ignores_lost: bool = False
    ignores_corrupt: bool = False

    @classmethod
    def of(cls, engine: Engine, table: TableDefinition, split: DataSplit) -> Bucket:
        """The bucket of a split, with the schemas of its files loaded."""
        fields = table.schema.partition_fields
        row = binary_row.deserialize(split.partition, [f.type for f in fields]) if fields else ()
        own = {table.schema.id: table.schema}
        others = {f.schema_id for f in (*split.files, *split.before_files)} - own.keys()
        schemas = own | {i: load_schema(engine, table.paths, i) for i in sorted(others)}
        return cls(engine, table, split.bucket_path, dict(zip((f.name for f in fields), row, strict=True)), schemas)

    def path_of(self, file: DataFileMeta) -> str:
        """The path of a file."""
        return file.external_path or f"{self.path}/{file.file_name}"

    def columns_of(self, file: DataFileMeta) -> tuple[DataField, ...]:
        """The table's columns that a file was written with, as they were."""
        fields = self.schemas[file.schema_id].fields
        return fields if file.write_cols is None else tuple(f for f in fields if f.name in file.write_cols)


def file_format(file_name: str) -> str:
    """The format that a file's name says: its last extension, or the one before that of a compression."""
    parts = file_name.split(".")
    last = parts[-2] if len(parts) > 2 and parts[-1] in _COMPRESSED else parts[-1]
    return last.removeprefix("cc-")


def read_data_file(
    bucket: Bucket,
    file: DataFileMeta,
    wanted: Sequence[DataField],
    predicate: Predicate | None = None,
    deleted: DeletionVector | None = None,
    batch_rows: int = BATCH_ROWS,
    in_key_order: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of one file.

    Parameters
    ----------
    wanted : sequence of DataField
        Columns of the table (nested rows may be cut), and the system columns sequence number, kind and level.
    predicate : Predicate, optional
        Bound to the table's columns; used to skip parts of the file that cannot match.
    deleted : callable, optional
        First row, row count -> mask of the rows that the deletion vector names. It needs every row's position, so
        nothing is skipped.
    in_key_order : bool
        Whether the file is one of a sorted run, so that keys beyond those asked for end the search for them.
    """
    mappings = map_fields(wanted, _file_fields(bucket, file))
    constants = _constants(bucket, file, wanted)
    sources = tuple(m.source for m in mappings if m.source is not None and m.wanted.name not in constants)
    if not sources and (bucket.ignores_lost or bucket.ignores_corrupt):
        sources = _file_fields(bucket, file)[:1]  # whether the file can be read decides how many rows there are
    names = _unchanged(bucket, file) if predicate is not None and deleted is None else {}
    skip = _file_predicate(predicate, names)
    ascending = _leading_key(bucket, names) if in_key_order and skip is not None else None
    position = 0
    for rows, batch in _readable_batches(bucket, file, sources, skip, batch_rows, ascending):
        assembled = _assemble(mappings, constants, batch, rows)
        if deleted is not None:
            gone = deleted.mask(position, rows)
            assembled = assembled.filter(pa.array(~gone)) if gone.any() else assembled
        position += rows
        yield assembled


def _file_fields(bucket: Bucket, file: DataFileMeta) -> tuple[DataField, ...]:
    fields = bucket.columns_of(file)
    return (*fields, SEQUENCE_NUMBER, VALUE_KIND) if bucket.table.schema.primary_keys else fields


def _constants(bucket: Bucket, file: DataFileMeta, wanted: Sequence[DataField]) -> Mapping[str, pa.Scalar]:
    values = {**bucket.partition, LEVEL.name: file.level}
    return {f.name: to_array([values[f.name]], f.type)[0] for f in wanted if f.name in values}


def _readable_batches(
    bucket: Bucket, file: DataFileMeta, *request: Any
) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """Like `_batches`, without the file, or the rest of it, that the bucket's flags leave out."""
    try:
        yield from _batches(bucket, file, *request)
    except CorruptTable as error:
        is_lost = bucket.engine.files.status(bucket.path_of(file)) is None
        if not (bucket.ignores_lost if is_lost else bucket.ignores_corrupt):
            raise
        bucket.engine.observer.count("read.files.lost" if is_lost else "read.files.corrupt", 1)
        option = "scan.ignore-lost-files" if is_lost else "scan.ignore-corrupt-files"
        text = f"A data file is left out, as option {option!r} asks: {error.message}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _batches(
    bucket: Bucket,
    file: DataFileMeta,
    sources: tuple[DataField, ...],
    skip: Predicate | None,
    batch_rows: int,
    ascending: str | None,
) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    # Nothing but constants and nulls is wanted: the row count is all there is to know, unless it is past belief.
    if not sources and file.row_count <= _BELIEVED_ROWS:
        for start in range(0, file.row_count, batch_rows):
            yield min(batch_rows, file.row_count - start), None
        return
    path = bucket.path_of(file)
    paths = [f"{path}." for path in columns_of(skip)] if skip is not None else []
    named = tuple(f for f in _file_fields(bucket, file) if any(p.startswith(f"{f.name}.") for p in paths))
    request = ReadRequest(path, sources, skip, named, batch_rows, ascending=ascending)
    rows = 0
    with _opened(bucket.engine, path, file.file_size) as source:
        try:
            for batch in bucket.engine.format(file_format(file.file_name)).read(source, request):
                rows += batch.num_rows
                if rows > file.row_count:
                    break
                yield batch.num_rows, batch
        except Unsupported as error:
            raise error.within(path) from None
    if rows > file.row_count:
        raise CorruptTable(path, f"holds {rows} rows or more, and {file.row_count} are said of it")
    if skip is None and rows < file.row_count:
        raise CorruptTable(path, f"holds {rows} rows, and {file.row_count} are said of it")


def _opened(engine: Engine, path: str, size: int) -> pa.NativeFile:
    try:
        source = engine.files.open(path)
    except NotFound as error:
        hint = "its snapshot may have expired while it was read; plan again"
        raise CorruptTable(path, "is named by a manifest but does not exist", hint=hint) from error
    if source.size() != size:
        with source:
            raise CorruptTable(path, f"has {source.size()} bytes, and {size} are said of it")
    return source


def _assemble(
    mappings: Sequence[FieldMapping], constants: Mapping[str, pa.Scalar], batch: pa.RecordBatch | None, rows: int
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
            columns.append(cast(column, mapping.source.type, mapping.wanted.type) if mapping.needs_cast else column)
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema([m.wanted for m in mappings]))


def _unchanged(bucket: Bucket, file: DataFileMeta) -> dict[str, str]:
    """The columns that the file has in today's type, with the names that it has them under."""
    fields = [f for f in bucket.table.schema.fields if f.name not in bucket.partition]
    mappings = map_fields(fields, _file_fields(bucket, file))
    return {m.wanted.name: m.source.name for m in mappings if m.source is not None and not m.needs_cast}


def _file_predicate(predicate: Predicate | None, names: Mapping[str, str]) -> Predicate | None:
    """The predicate in the file's names, without parts on columns that are not among `names`."""
    kept = None if predicate is None else only_columns(predicate, names)
    return None if kept is None else rename(kept, names)


def _leading_key(bucket: Bucket, names: Mapping[str, str]) -> str | None:
    """The column by which rows of a sorted run ascend, by the file's name; floating ones have too many orders."""
    key = bucket.table.schema.key_fields[0]
    return None if isinstance(key.type, FloatType | DoubleType) else names.get(key.name)
