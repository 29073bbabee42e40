"""Describe the data files of a table, write rows of one bucket to them, and return the metadata of the files.

Invariant: a file ends when it reaches the target size and has at least one row. Its metadata (keys, sequence numbers,
statistics) describes exactly the written rows. A file of a primary-key table has the key columns, `_SEQUENCE_NUMBER`,
`_VALUE_KIND` and then the columns of the table. The key columns repeat those of the table and are the same arrays.

Source: `RollingFileWriter`, `KeyValueDataFileWriter`, `RowDataFileWriter`, `KeyValueFileWriterFactory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from paimon.domain.columns.blob_file import count_rows_until, measure_records
from paimon.domain.columns.buffers import combine_column
from paimon.domain.index.build_indexes import IndexBuilder
from paimon.domain.index.container import encode_container
from paimon.domain.manifest.entries import INDEX_SUFFIX, DataFileMeta, FileSource
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import check_segment, join_path
from paimon.domain.row.kinds import RETRACTS
from paimon.domain.row.row_hash_columnar import serialize_rows
from paimon.domain.schema.declared_indexes import DeclaredIndex, declare_indexes
from paimon.domain.schema.external_paths import ExternalPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.writable import BLOB_FORMAT, check_rows_writable, is_stored_as_blob, is_stored_as_vector
from paimon.domain.stats.collect import Keep, StatsMode, StatsRules, to_key_stats, to_value_stats
from paimon.domain.stats.simple_stats import EMPTY_ROW, EMPTY_STATS
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND, to_key_field
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.read_data_file import RELEASED_BYTES
from paimon.ports.engine import Engine
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, WriteRequest, WrittenFile

_SORTED_BLOCK_ROWS = 122_880
"""The rows of a row group of DuckDB. A lookup skips whole groups; groups of a quarter of it make scans slower."""
_LEAST_SAVING = 0.2
"""A codec that the user did not choose must save this share of a column. It is most of the time of decoding."""

_HELD_SHARE = 8
"""The part of the memory budget (1/n) for the rows of an open file that are not written yet: encoding copies them."""


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
    # the columns by which the rows of a primary-key table are ordered; their ends are the bounds in the metadata
    bound_fields: tuple[DataField, ...]
    # the key columns are left out of the file
    is_thin: bool
    schema_id: int
    # the level in the LSM tree; 0 for append tables
    level: int
    # whether a writer or a compaction creates the files
    source: FileSource
    # "parquet", "orc" or "avro"; "blob" for a BLOB column
    format_name: str
    compression: str
    zstd_level: int
    # the share of a column that the codec must save; 0 if the user chose the codec
    least_saving: float
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
    # the file indexes of each file, and the largest size of those that its metadata contains
    indexes: tuple[DeclaredIndex, ...] = ()
    embedded_index_bytes: int = 0
    # the executor encodes columns at the same time, where the format can
    is_concurrent: bool = False
    # the columns that the metadata of each file names; None for all columns of the table
    write_cols: tuple[str, ...] | None = None
    # the layouts of the files next to each file: one for each BLOB column, and each VECTOR column with its own format
    dedicated: tuple[FileLayout, ...] = ()
    # where files are written; None for the directory of the bucket
    external: ExternalPaths | None = None
    # the sequence numbers of each file begin at 0, and the commit replaces them (data evolution)
    has_own_sequences: bool = False

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
        compression = options.changelog_file_compression
        data = cls._of(table, level, FileSource.APPEND, name, compression or options.compression_at(level))
        stats = StatsRules.of(options, level, name, changelog=True)
        saving = data.least_saving if compression is None else 0.0
        return evolve(data, prefix=options.changelog_file_prefix, stats=stats, indexes=(), least_saving=saving)

    def with_columns(self, columns: tuple[DataField, ...]) -> FileLayout:
        """Return the layout of files of an append table that contain only some of its columns."""
        names = {column.name for column in columns}
        indexes = tuple(index for index in self.indexes if index.column in names)
        elsewhere = {column.name: layout for layout in self.dedicated for column in layout.fields}
        own = tuple(column for column in columns if column.name not in elsewhere)
        parts = [(layout, [column for column in layout.fields if column.name in names]) for layout in self.dedicated]
        return evolve(
            self,
            fields=own,
            value_fields=own,
            indexes=indexes,
            dedicated=tuple(layout.with_columns(tuple(part)) for layout, part in parts if part),
            write_cols=tuple(column.name for column in own),
        )

    def without_limits(self) -> FileLayout:
        """Return the layout in which all rows are in one file, with one dedicated file of each kind."""
        dedicated = tuple(layout.without_limits() for layout in self.dedicated)
        return evolve(self, target_bytes=LARGEST_LONG, target_rows=None, dedicated=dedicated)

    def _with_dedicated_files(self, options: TableOptions) -> FileLayout:
        """Return the layout with the BLOB columns, and VECTOR columns with a format of their own, in other files."""
        blobs = [column for column in self.fields if is_stored_as_blob(column, options)]
        vectors = [column for column in self.fields if is_stored_as_vector(column, options)]
        parts = [self._of_dedicated_file(column, BLOB_FORMAT, BLOB_FORMAT, options) for column in blobs]
        # A file for each column: of a file with two, Java does not read the first again after an update of the second.
        name = options.vector_file_format or ""
        suffix = f"vector{_build_suffix(options, name)}"
        parts += [self._of_dedicated_file(column, name, suffix, options) for column in vectors]
        return evolve(self, dedicated=tuple(parts)).with_columns(self.fields) if parts else self

    def _of_dedicated_file(self, column: DataField, name: str, suffix: str, options: TableOptions) -> FileLayout:
        is_blob = name == BLOB_FORMAT
        target = options.blob_target_file_size_bytes if is_blob else options.vector_target_file_size_bytes
        return evolve(
            self,
            fields=(column,),
            value_fields=(column,),
            format_name=name,
            compression="none" if is_blob else self.compression,
            format_options={k: v for k, v in options.values.items() if k.startswith(f"{name}.") and not is_blob},
            stats=StatsRules(StatsMode(Keep.NONE)) if is_blob else StatsRules.of(options, self.level, name),
            suffix=f".{suffix}",
            target_bytes=target or self.target_bytes,
            target_rows=None,
            indexes=(),
            write_cols=(column.name,),
        )

    @classmethod
    def _of(cls, table: TableDefinition, level: int, source: FileSource, name: str, compression: str) -> FileLayout:
        check_rows_writable(table)
        schema, options = table.schema, table.options
        keys = schema.key_fields if schema.primary_keys else ()
        thin = options.data_file_thin_mode
        system = (*(() if thin else map(to_key_field, keys)), SEQUENCE_NUMBER, VALUE_KIND) if keys else ()
        layout = cls(
            fields=(*system, *schema.fields),
            key_fields=keys,
            value_fields=schema.fields,
            bound_fields=table.get_bound_fields(level),
            is_thin=thin,
            schema_id=schema.id,
            level=level,
            source=source,
            format_name=name,
            compression=compression,
            zstd_level=options.zstd_level,
            least_saving=0.0 if options.names_compression else _LEAST_SAVING,
            block_bytes=options.file_block_size_bytes,
            format_options={k: v for k, v in options.values.items() if k.startswith(f"{name}.")},
            stats=StatsRules.of(options, level, name),
            prefix=options.data_file_prefix,
            suffix=_build_suffix(options, name),
            target_bytes=options.target_file_size_bytes(bool(keys)),
            target_rows=options.target_file_row_num,
            indexes=declare_indexes(schema.fields, options.values),
            embedded_index_bytes=options.file_index_in_manifest_threshold_bytes,
            external=table.external_paths,
            has_own_sequences=options.data_evolution_enabled,
        )
        return layout._with_dedicated_files(options)

    def path_of(self, directory: str, name: str) -> str:
        """Return the path of a new file of a bucket; `directory` is that of the bucket."""
        return join_path(directory, name) if self.external is None else self.external.path_of(directory, name)

    def to_file_columns(self, table: pa.Table) -> pa.Table:
        """Return a file's columns in order; primary-key tables bring `_SEQUENCE_NUMBER` and `_VALUE_KIND`."""
        return pa.table([table[f.name.removeprefix(KEY_PREFIX)] for f in self.fields], [f.name for f in self.fields])

    def to_write_request(self, path: str, engine: Engine) -> WriteRequest:
        """Return the write request for the file at a path; only concurrent layouts use the executor."""
        return WriteRequest(
            path=path,
            fields=self.fields,
            compression=self.compression,
            zstd_level=self.zstd_level,
            block_bytes=self.block_bytes,
            block_rows=_SORTED_BLOCK_ROWS if self.key_fields else None,
            least_saving=self.least_saving,
            held_bytes=max(1, engine.memory.bytes // _HELD_SHARE),
            options=self.format_options,
            executor=engine.executor if self.is_concurrent else None,
        )


_EXTENSIONS = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
"""File extensions of the codecs whose extension is not their name."""


def _build_suffix(options: TableOptions, format_name: str) -> str:
    """Return the end of a file name; it names the codec of the table, also on levels with another codec."""
    codec = options.file_compression
    if not options.file_suffix_include_compression or codec == "none":
        return f".{format_name}"
    return f".{_EXTENSIONS.get(codec, codec)}.{format_name}"


_STEPS_PER_FILE = 8
"""Number of times that the size of a file is checked until it reaches the target without compression."""
_MIN_ROWS = 1_000
"""Least number of rows between two checks, if they do not fill a file by themselves."""


class RollingFiles:
    """The data files of one bucket during a write; closed once.

    For files without keys, `sequence` is the sequence number of the first row. BLOB columns, and VECTOR columns with
    `vector.file.format`, are in dedicated files, which end where the file of the other columns ends: several dedicated
    files may belong to one such file.
    """

    def __init__(
        self, engine: Engine, layout: FileLayout, directory: str, sequence: int = 0, names: _FileNames | None = None
    ) -> None:
        self._engine = engine
        self._layout = layout
        self._directory = directory
        self._names = names or _FileNames(f"{layout.prefix}{engine.ids.uuid()}-")
        self._sequence = 0 if layout.has_own_sequences else sequence
        self._open: _OpenFile | None = None
        self._dedicated = [RollingFiles(engine, part, directory, names=self._names) for part in layout.dedicated]
        self.finished: list[DataFileMeta] = []

    def write(self, table: pa.Table) -> None:
        """Write rows; those of a primary-key table are sorted by key, with `_SEQUENCE_NUMBER` and `_VALUE_KIND`."""
        for rows in self._pieces(table):
            if self._layout.fields:
                if self._open is None:
                    self._open = self._open_next()
                self._open.write(self._layout.to_file_columns(rows))
            for files in self._dedicated:
                files.write(rows)
            if self._open is not None and self._open.is_full:
                self._finish_open()

    def close(self) -> list[DataFileMeta]:
        """Finish the last file, and return the metadata of all files in the order of their rows."""
        self._finish_open()
        finished, self.finished = self.finished, []
        return finished

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that are in memory and not yet in the open file and its dedicated files."""
        own = self._open.held_bytes if self._open is not None else 0
        return own + sum(files.held_bytes for files in self._dedicated)

    def release_memory(self) -> None:
        """Write the rows in memory to storage: end the row group, or the file if its format cannot end a row group."""
        if self._open is not None:
            self._open.flush()
            if self._open.held_bytes:
                self._finish_open()
        for files in self._dedicated:
            files.release_memory()

    def abort(self) -> None:
        """Delete all files that `close` has not returned."""
        if self._open is not None:
            self._open.abort()
            self._open = None
        for files in self._dedicated:
            files.abort()
        paths = [path for f in self.finished for path in f.paths_in(self._directory)]
        self.finished = []
        if paths:
            self._engine.files.delete(paths)

    def _open_next(self) -> _OpenFile:
        # Prefix and suffix come from options, and a schema file may contain any text.
        name = check_segment(self._names.make_next(self._layout.suffix), "data file name")
        return _OpenFile(self._engine, self._layout, self._directory, name, self._sequence)

    def _finish_open(self) -> None:
        """Finish the open file, and its dedicated files, which follow it."""
        if self._open is not None:
            meta = self._open.close()
            self._open = None
            self.finished.append(meta)
            self._sequence = 0 if self._layout.has_own_sequences else meta.max_sequence_number + 1
        for files in self._dedicated:
            self.finished += files.close()

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        """Cut rows, so that no file exceeds its limits by much; a file of blobs ends with the row that fills it."""
        if self._layout.format_name == BLOB_FORMAT:
            yield from self._pieces_of_blobs(table)
            return
        filling = table.num_rows * self._layout.target_bytes // max(1, table.nbytes)
        step = max(_MIN_ROWS if filling > 0 else 1, filling // _STEPS_PER_FILE)
        step = min(step, self._layout.target_rows or step)
        for start in range(0, table.num_rows, step):
            yield table.slice(start, step)

    def _pieces_of_blobs(self, table: pa.Table) -> Iterator[pa.Table]:
        (column,) = self._layout.fields
        start = 0
        for chunk in table[column.name].chunks:
            lengths = measure_records(chunk)
            while len(lengths):
                held = self._open.written_bytes if self._open is not None else 0
                rows = count_rows_until(lengths, self._layout.target_bytes - held)
                yield table.slice(start, rows)
                start, lengths = start + rows, lengths[rows:]


class _FileNames:
    """The names of the files of one writer: they share the first part, and are numbered."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._number = 0

    def make_next(self, suffix: str) -> str:
        """Return the next name."""
        self._number += 1
        return f"{self._stem}{self._number - 1}{suffix}"


class _OpenFile:
    """One file during its write, with the values of its metadata."""

    def __init__(self, engine: Engine, layout: FileLayout, directory: str, name: str, sequence: int) -> None:
        self._engine = engine
        self._layout = layout
        self._name = name
        path = layout.path_of(directory, name)
        self._sink: OutputFile = engine.files.create(path)
        with undo_on_failure(self._sink.abort):
            self._writer: FormatWriter = engine.format(layout.format_name).writer(
                self._sink, layout.to_write_request(path, engine)
            )
        self._path = path
        self._indexes = IndexBuilder(layout.indexes, layout.value_fields) if layout.indexes else None
        self._rows = 0
        self._unreleased_bytes = 0
        self._deletes = 0
        self._keys: tuple[bytes, bytes] = (EMPTY_ROW, EMPTY_ROW)
        self._sequences: tuple[int, int] = (sequence, sequence - 1)

    @property
    def is_full(self) -> bool:
        """Whether the next row belongs to the next file."""
        layout = self._layout
        if layout.target_rows is not None and self._rows >= layout.target_rows:
            return True
        return self.written_bytes >= layout.target_bytes

    @property
    def written_bytes(self) -> int:
        """The approximate size of the file so far."""
        return self._writer.estimated_bytes()

    @property
    def held_bytes(self) -> int:
        """Bytes that the writer has in memory."""
        return self._writer.held_bytes()

    def flush(self) -> None:
        """Write to storage what the writer has in memory, as far as its format can."""
        with undo_on_failure(self.abort):
            self._writer.flush()

    def write(self, piece: pa.Table) -> None:
        """Write some rows."""
        with undo_on_failure(self.abort):
            self._writer.write(piece)
            if self._indexes is not None:
                self._indexes.add(piece)
        self._release_memory(piece.nbytes)
        if self._layout.key_fields:
            self._update_key_range(piece)
        elif SEQUENCE_NUMBER in self._layout.fields:
            self._update_sequences(piece)
        else:
            self._sequences = (self._sequences[0], self._sequences[1] + piece.num_rows)
        self._rows += piece.num_rows

    def _release_memory(self, new_bytes: int) -> None:
        """Return the free memory of the encoder when `RELEASED_BYTES` were encoded."""
        self._unreleased_bytes += new_bytes
        if self._unreleased_bytes - self._writer.held_bytes() > RELEASED_BYTES:
            self._engine.process.release_thread_memory()
            self._unreleased_bytes = self._writer.held_bytes()

    def _update_key_range(self, piece: pa.Table) -> None:
        """Update the key range, the sequence numbers and the number of deletes."""
        self._update_sequences(piece)
        ends = from_numpy(np.array([0, piece.num_rows - 1]))
        keys = piece.select([f.name for f in self._layout.bound_fields]).take(ends)
        columns = [column.combine_chunks() for column in keys.columns]
        first, last = serialize_rows(columns, [f.type for f in self._layout.bound_fields])
        self._keys = (self._keys[0] if self._rows else first, last)
        self._deletes += pc.sum(pc.is_in(piece[VALUE_KIND.name], RETRACTS)).as_py()

    def _update_sequences(self, piece: pa.Table) -> None:
        numbers = to_numpy(combine_column(piece[SEQUENCE_NUMBER.name]))
        low, high = int(numbers.min()), int(numbers.max())
        if self._rows:
            low, high = min(low, self._sequences[0]), max(high, self._sequences[1])
        self._sequences = (low, high)

    def close(self) -> DataFileMeta:
        """Finish the file, and return its metadata."""
        written = self._writer.close()
        self._release_memory(0)
        if not self._sink.closed:
            self._sink.close()
        meta = self._build_metadata(written)
        return meta if self._indexes is None else self._add_indexes(meta, encode_container(self._indexes.close()))

    def _add_indexes(self, meta: DataFileMeta, data: bytes) -> DataFileMeta:
        """Return the metadata with the indexes, or with the name of the file that they are written to."""
        if len(data) <= self._layout.embedded_index_bytes:
            return evolve(meta, embedded_index=data)
        files, path = self._engine.files, self._path
        with undo_on_failure(lambda: files.delete([path])), files.create(path + INDEX_SUFFIX) as sink:
            sink.write(data)
        return evolve(meta, extra_files=(self._name + INDEX_SUFFIX,))

    def abort(self) -> None:
        """Delete the file."""
        self._writer.abort()
        if not self._sink.closed:
            self._sink.abort()

    def _build_metadata(self, written: WrittenFile) -> DataFileMeta:
        layout, clock = self._layout, self._engine.clock
        by_name = {f.name: s for f, s in zip(layout.fields, written.column_stats, strict=True)}
        prefix = "" if layout.is_thin else KEY_PREFIX
        keys = [by_name[prefix + f.name] for f in layout.key_fields]
        thin_keys = frozenset(f.name for f in layout.key_fields) if layout.is_thin else frozenset[str]()
        values = [by_name[f.name] for f in layout.value_fields]
        stats, names = to_value_stats(layout.value_fields, values, layout.stats, thin_keys)
        now = clock.now_millis()
        return DataFileMeta(
            file_name=self._name,
            file_size=written.size_bytes,
            row_count=self._rows,
            min_key=self._keys[0],
            max_key=self._keys[1],
            key_stats=to_key_stats(layout.key_fields, keys, layout.stats) if keys else EMPTY_STATS,
            value_stats=stats,
            value_stats_cols=names,
            min_sequence_number=self._sequences[0],
            max_sequence_number=self._sequences[1],
            schema_id=layout.schema_id,
            level=layout.level,
            creation_time_millis=now + clock.local_offset_millis(now),
            delete_row_count=self._deletes,
            file_source=layout.source,
            write_cols=layout.write_cols,
            external_path=None if layout.external is None else self._path,
        )
