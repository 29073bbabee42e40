"""What the data files of a table look like: columns, format, statistics, names, sizes.

Law: a keyed file holds the key columns, `_SEQUENCE_NUMBER`, `_VALUE_KIND` and then the table's columns; the key
columns repeat those of the table and are the same arrays.
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
from paimon.domain.types.system import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND, key_field
from paimon.ports.formats import WriteRequest

_SORTED_BLOCK_ROWS = 32_768
"""Half the time of a lookup with whole scans as fast as before; at a quarter of it files grow and scans get slower."""


def _plain(options: Mapping[str, str]) -> Mapping[str, str]:
    return dict(options)


@frozen(hash=False)
class FileLayout:
    """What the files of a table look like on a level.

    Parameters
    ----------
    fields : tuple of DataField
        All columns of the file: those of the key, `_SEQUENCE_NUMBER`, `_VALUE_KIND`, then the table's.
    key_fields : tuple of DataField
        The table's columns that make the key; empty for append tables.
    value_fields : tuple of DataField
        The table's columns.
    thin : bool
        Whether the key columns are left out of the file.
    target_bytes, target_rows : int
        When to begin the next file.
    """

    fields: tuple[DataField, ...]
    key_fields: tuple[DataField, ...]
    value_fields: tuple[DataField, ...]
    thin: bool
    schema_id: int
    level: int
    source: FileSource
    format_name: str
    compression: str
    zstd_level: int
    block_bytes: int | None
    format_options: Mapping[str, str] = field(converter=_plain)
    stats: StatsRules
    prefix: str
    suffix: str
    target_bytes: int
    target_rows: int | None

    @classmethod
    def of(cls, table: TableDefinition, level: int = 0, source: FileSource = FileSource.APPEND) -> FileLayout:
        """The layout of a table's data files on a level."""
        return cls._of(table, level, source, table.options.file_format_at(level), table.options.compression_at(level))

    @classmethod
    def of_changelog(cls, table: TableDefinition, level: int = 0) -> FileLayout:
        """The layout of changelog files: those of a writer, or of a compaction to a level."""
        options = table.options
        name = options.changelog_file_format or options.file_format_at(level)
        compression = options.changelog_file_compression or options.compression_at(level)
        data = cls._of(table, level, FileSource.APPEND, name, compression)
        stats = StatsRules.of(options, level, name, changelog=True)
        return evolve(data, prefix=options.changelog_file_prefix, stats=stats)

    @classmethod
    def _of(
        cls, table: TableDefinition, level: int, source: FileSource, name: str, compression: str
    ) -> FileLayout:
        check_rows_writable(table)
        schema, options = table.schema, table.options
        keys = schema.key_fields if schema.primary_keys else ()
        thin = options.data_file_thin_mode
        system = (*(() if thin else map(key_field, keys)), SEQUENCE_NUMBER, VALUE_KIND) if keys else ()
        return cls(
            fields=(*system, *schema.fields),
            key_fields=keys,
            value_fields=schema.fields,
            thin=thin,
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
            suffix=_suffix(options, name),
            target_bytes=options.target_file_size_bytes(bool(keys)),
            target_rows=options.target_file_row_num,
        )

    def physical(self, table: pa.Table) -> pa.Table:
        """The file's columns out of a table with the table's columns and, for keyed files, the two system columns."""
        return pa.table([table[f.name.removeprefix(KEY_PREFIX)] for f in self.fields], [f.name for f in self.fields])

    def request(self, path: str) -> WriteRequest:
        """How to write the file at this path."""
        return WriteRequest(
            path=path,
            fields=self.fields,
            compression=self.compression,
            zstd_level=self.zstd_level,
            block_bytes=self.block_bytes,
            block_rows=_SORTED_BLOCK_ROWS if self.key_fields else None,
            options=self.format_options,
        )


_EXTENSIONS = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
"""What names of files say for a codec, where that is not its own name."""


def _suffix(options: TableOptions, format_name: str) -> str:
    """The end of a file's name; it tells the table's codec, also where the file's level has one of its own."""
    codec = options.file_compression
    if not options.file_suffix_include_compression or codec == "none":
        return f".{format_name}"
    return f".{_EXTENSIONS.get(codec, codec)}.{format_name}"
