"""Describe the data files of a table: columns, format, statistics, names and sizes.

Invariant: a file of a primary-key table contains the key columns, `_SEQUENCE_NUMBER`, `_VALUE_KIND` and then the
columns of the table. The key columns repeat those of the table and are the same arrays.

Source: `KeyValueFileWriterFactory`, `KeyValueSerializer`, `DataFilePathFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.manifest.entries import FileSource
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.stats.file_stats import StatsRules
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND, to_key_field
from paimon.ports.executor import Executor
from paimon.ports.formats import WriteRequest

_SORTED_BLOCK_ROWS = 32_768
"""Half the time of a lookup with whole scans as fast as before; at a quarter of it files grow and scans get slower."""


def _to_dict(options: Mapping[str, str]) -> Mapping[str, str]:
    return dict(options)


@frozen(hash=False)
class FileLayout:
    """The layout of the data files of a table on a level."""

    # the key columns, `_SEQUENCE_NUMBER`, `_VALUE_KIND`, then the columns of the table
    fields: tuple[DataField, ...]
    # the primary key without partition columns; empty for append tables
    key_fields: tuple[DataField, ...]
    value_fields: tuple[DataField, ...]
    # the key columns are left out of the file
    is_thin: bool
    schema_id: int
    # the level in the LSM tree; 0 for append tables
    level: int
    # whether a writer or a compaction creates the files
    source: FileSource
    # "parquet", "orc" or "avro"
    format_name: str
    compression: str
    zstd_level: int
    # the size of a row group or stripe
    block_bytes: int | None
    # the options of the table that begin with the name of the format
    format_options: Mapping[str, str] = field(converter=_to_dict)
    # which column statistics are stored
    stats: StatsRules
    # the first part of the file names; `suffix` is the last part
    prefix: str
    suffix: str
    # the file size at which the next file begins
    target_bytes: int
    # the number of rows at which the next file begins; None for no limit
    target_rows: int | None
    # the executor encodes columns at the same time, where the format can
    is_concurrent: bool = False

    @classmethod
    def of(cls, table: TableDefinition, level: int = 0, source: FileSource = FileSource.APPEND) -> FileLayout:
        """Return the layout of the data files of a table on a level; formats and codecs may differ per level.

        Raises `Unsupported` if rows of this table cannot be written.
        """
        return cls._of(table, level, source, table.options.file_format_at(level), table.options.compression_at(level))

    @classmethod
    def of_changelog(cls, table: TableDefinition, level: int = 0) -> FileLayout:
        """Return the layout of the changelog files of a writer, or of a compaction to a level."""
        options = table.options
        name = options.changelog_file_format or options.file_format_at(level)
        compression = options.changelog_file_compression or options.compression_at(level)
        data = cls._of(table, level, FileSource.APPEND, name, compression)
        stats = StatsRules.of(options, level, name, changelog=True)
        return evolve(data, prefix=options.changelog_file_prefix, stats=stats)

    @classmethod
    def _of(cls, table: TableDefinition, level: int, source: FileSource, name: str, compression: str) -> FileLayout:
        check_rows_writable(table)
        schema, options = table.schema, table.options
        keys = schema.key_fields if schema.primary_keys else ()
        thin = options.data_file_thin_mode
        system = (*(() if thin else map(to_key_field, keys)), SEQUENCE_NUMBER, VALUE_KIND) if keys else ()
        return cls(
            fields=(*system, *schema.fields),
            key_fields=keys,
            value_fields=schema.fields,
            is_thin=thin,
            schema_id=schema.id,
            level=level,
            source=source,
            format_name=name,
            compression=compression,
            zstd_level=options.zstd_level,
            block_bytes=options.file_block_size_bytes,
            format_options={k: v for k, v in options.values.items() if k.startswith(f"{name}.")},
            stats=StatsRules.of(options, level, name),
            prefix=options.data_file_prefix,
            suffix=_build_suffix(options, name),
            target_bytes=options.target_file_size_bytes(bool(keys)),
            target_rows=options.target_file_row_num,
        )

    def to_file_columns(self, table: pa.Table) -> pa.Table:
        """Return the columns of the file in its order; key columns share the arrays of the table's columns.

        Tables with a primary key need `_SEQUENCE_NUMBER` and `_VALUE_KIND` in `table`.
        """
        return pa.table([table[f.name.removeprefix(KEY_PREFIX)] for f in self.fields], [f.name for f in self.fields])

    def to_write_request(self, path: str, executor: Executor) -> WriteRequest:
        """Return the write request for the file at a path; only concurrent layouts use the executor."""
        return WriteRequest(
            path=path,
            fields=self.fields,
            compression=self.compression,
            zstd_level=self.zstd_level,
            block_bytes=self.block_bytes,
            block_rows=_SORTED_BLOCK_ROWS if self.key_fields else None,
            options=self.format_options,
            executor=executor if self.is_concurrent else None,
        )


_EXTENSIONS = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
"""File extensions of the codecs whose extension is not their name."""


def _build_suffix(options: TableOptions, format_name: str) -> str:
    """Return the end of a file name; it names the codec of the table, also on levels with another codec."""
    codec = options.file_compression
    if not options.file_suffix_include_compression or codec == "none":
        return f".{format_name}"
    return f".{_EXTENSIONS.get(codec, codec)}.{format_name}"
