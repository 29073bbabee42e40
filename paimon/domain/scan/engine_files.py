"""Select the files of a plan that a query engine may read with its own Parquet reader.

Invariant: the rows of a selected file are rows of the result: none is merged, deleted, cast or filled with a default.
Of the files of a merge, an engine that skips rows reads the newest record of each key.
The columns are stored as they are shown, and in types that each Parquet reader understands equally.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from paimon.domain.merge.merge_engines import is_newest_winning
from paimon.domain.row import binary_row
from paimon.domain.scan.split_packing import has_no_retracts
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.defaults import read_defaults
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_PLAIN_TYPES = (
    *dt.INTEGER_TYPES,
    dt.BooleanType,
    dt.DecimalType,
    dt.CharType,
    dt.VarCharType,
    dt.BinaryType,
    dt.VarBinaryType,
    dt.DateType,
    dt.FloatType,
    dt.DoubleType,
)
"""Statistics of FLOAT and DOUBLE leave out NaN: an engine must not prune rows or find maxima by them."""
_MICROSECONDS = range(4, 7)
"""Precisions that are stored in microseconds. Engines read other precisions as another type."""
_RESERVED = frozenset(("filename", "file_row_number", "file_index", "rowid"))
"""Columns that engines add to files."""
_EXTENSION = ".parquet"


@frozen
class FileReader:
    """The capabilities of a query engine's Parquet reader."""

    # the largest number of files to open at once; further files are read as batches
    most_files: int = 500
    # whether the engine reads renamed columns by their name in the file, and missing columns as null
    maps_names: bool = False
    # whether the engine leaves out rows by their number in the file
    skips_rows: bool = False


@frozen
class EngineFiles:
    """The files of a plan that a query engine may read, and the splits with all other files."""

    files: tuple[DataSplit, ...]
    rest: tuple[DataSplit, ...]
    # splits whose files the engine may read without the rows that a merge drops
    merged: tuple[DataSplit, ...] = ()


def select_engine_files(
    table: TableDefinition,
    schemas: Mapping[int, TableSchema],
    splits: Sequence[DataSplit],
    columns: Sequence[DataField],
    reader: FileReader,
) -> EngineFiles:
    """Select the files that a query engine may read; all other files of the splits are in `rest`.

    The splits are those of a scan without row kinds. Files of schemas that are not in `schemas` are not selected.
    """
    if not _is_plain_table(table, columns):
        return EngineFiles((), tuple(splits))
    keyed = bool(table.schema.primary_keys)
    plain = {i for i, schema in schemas.items() if _has_columns(schema, columns, reader)}
    files: list[DataSplit] = []
    rest: list[DataSplit] = []
    merged: list[DataSplit] = []
    skips_rows = reader.skips_rows and is_newest_winning(table.options.merge_engine) and keyed
    skips_rows = skips_rows and not table.options.pk_clustering_override
    left = reader.most_files
    for split in splits:
        plain_files = [place for place in range(len(split.files)) if _is_plain_file(split, place, plain)]
        if skips_rows and not split.raw_convertible and split.files and len(plain_files) == len(split.files) <= left:
            merged.append(split)
            left -= len(split.files)
            continue
        found = plain_files if split.raw_convertible else []
        chosen = [place for place in found if has_no_retracts(split.files[place]) or not keyed][:left]
        left -= len(chosen)
        files += [restrict_split(split, (place,)) for place in chosen]
        others = sorted({*range(len(split.files))} - {*chosen})
        rest += [restrict_split(split, others)] if others else []
    return EngineFiles(tuple(files), tuple(rest), tuple(merged))


def restrict_split(split: DataSplit, places: Sequence[int]) -> DataSplit:
    """Return a split with some of its files, by position. It is the split itself if it keeps all of them."""
    if len(places) == len(split.files):
        return split
    vectors = [split.deletion_files[i] for i in places] if split.deletion_files else ()
    ranges = [split.row_ranges[i] for i in places] if split.row_ranges else ()
    return evolve(split, files=[split.files[i] for i in places], deletion_files=vectors, row_ranges=ranges)


def leave_out_files(splits: Iterable[DataSplit], names: Container[str]) -> list[DataSplit]:
    """Return the splits without the named files, whose rows need no merge; splits without other files are left out."""
    left = [(split, [i for i, file in enumerate(split.files) if file.file_name not in names]) for split in splits]
    return [restrict_split(split, places) for split, places in left if places or not split.files]


def _is_plain_table(table: TableDefinition, columns: Sequence[DataField]) -> bool:
    """Return whether the columns of a table are shown as they are stored."""
    options = table.options
    tolerant = options.scan_ignore_lost_files or options.scan_ignore_corrupt_files
    return (
        bool(columns)
        and all(_is_plain_type(f.type) and _is_plain_name(f.name) for f in columns)
        and not (tolerant or options.data_evolution_enabled or read_defaults(table.schema, options))
    )


def _is_plain_type(kind: DataType) -> bool:
    return kind.precision in _MICROSECONDS if isinstance(kind, dt.TIMESTAMP_TYPES) else isinstance(kind, _PLAIN_TYPES)


def _is_plain_name(name: str) -> bool:
    """Return whether no system column and no column of an engine has a similar name."""
    return not name.startswith("_") and name.lower() not in _RESERVED


def find_stored_fields(schema: TableSchema, columns: Iterable[DataField]) -> tuple[DataField | None, ...]:
    """Return the field with the same id for each column, as files of a schema store it; None where they do not have it.

    Names and types can differ from those of the column.
    """
    held = {f.id: f for f in schema.fields}
    return tuple(held.get(f.id) for f in columns)


def _has_columns(schema: TableSchema, columns: Sequence[DataField], reader: FileReader) -> bool:
    """Return whether an engine finds the columns in files of a schema, in the same types."""
    stored = find_stored_fields(schema, columns)
    if reader.skips_rows and not _RESERVED.isdisjoint(f.name.lower() for f in schema.fields):
        return False  # a column of the file would hide the one by which rows are skipped
    return any(stored) and all(
        reader.maps_names
        if field is None
        else (reader.maps_names or field.name == column.name)
        and _is_plain_name(field.name)
        and field.type.with_nullable(True) == column.type.with_nullable(True)
        for field, column in zip(stored, columns, strict=True)
    )


def _is_plain_file(split: DataSplit, place: int, schemas: Container[int]) -> bool:
    """Return whether a file of a split is a Parquet file on the local disk that stores rows as they are, all of them.

    `schemas` are the ids of the schemas whose files store the columns as they are.
    """
    file = split.files[place]
    return (
        file.schema_id in schemas
        and not (split.before_files or split.row_ranges or split.row_id_ranges)
        and split.branch is None
        and not (split.deletion_files and split.deletion_files[place])
        and file.write_cols is None
        and file.file_name.endswith(_EXTENSION)
        and "://" not in split.file_paths[place]
    )


def get_constants(table: TableDefinition, partition: bytes, columns: Sequence[DataField]) -> dict[str, Any]:
    """Return the internal values of the partition columns among `columns`; `partition` is a serialized BinaryRow."""
    fields = table.schema.partition_fields
    if not fields:
        return {}
    values = binary_row.deserialize(partition, [f.type for f in fields])
    wanted = {f.name for f in columns}
    return {f.name: value for f, value in zip(fields, values, strict=True) if f.name in wanted}
