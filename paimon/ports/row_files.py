"""RowFiles: the port for files of rows that are not part of a table: what writes take, and SQL reads and makes.

Invariant: nothing outside the roots of a call is opened, listed or created. Suite:
`paimon.testing.contracts.row_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from attrs import define, field, frozen

from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.ports.files import OutputFile

Piece: TypeAlias = "pa.Table | list[dict[str, Any]]"
"""A part of a file: an Arrow table, or plain rows where Arrow cannot read them."""
ROW_FILE_ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""The formats that can be read, by the extension of a file."""
ROW_FILE_FORMATS = tuple(dict.fromkeys(ROW_FILE_ENDINGS.values()))


@frozen(eq=False)
class RowFile:
    """One file with rows.

    Parameters
    ----------
    name : str
        The name that errors have.
    read : callable
        Reads the file in pieces. A row group of Parquet, a stripe of ORC and a line of text are in memory as a whole.
        The argument is a schema or None: the types of columns in formats of text, which are inferred otherwise. A
        column of the schema that the file lacks does not appear.
    has_one_schema : bool
        Whether all pieces have the same columns; False for JSON lines.
    """

    name: str
    read: Callable[[pa.Schema | None], Iterator[Piece]]
    has_one_schema: bool = True


def _files(values: Sequence[RowFile]) -> tuple[RowFile, ...]:
    return tuple(values)


@define(eq=False, slots=False)
class FileRows:
    """The rows of files, one file after the other; made by `paimon.read_files`, and written like a data frame.

    Parameters
    ----------
    files : tuple of RowFile
        At least one file.
    is_repeatable : bool
        Whether the rows can be read again; False for a stream.
    """

    files: tuple[RowFile, ...] = field(converter=_files)
    is_repeatable: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(file.name for file in self.files)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the first file that has any. Types of text are those of its first rows."""
        for name, piece in self.read():
            try:
                schema = (piece if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece)).schema
            except (pa.ArrowException, ValueError, OverflowError) as error:
                what = f"contains values that do not fit one type: {error}"
                raise CorruptTable(name, what, hint="declare the columns of the table instead") from error
            if len(set(schema.names)) < len(schema):
                twice = next(column for column in schema.names if schema.names.count(column) > 1)
                raise CorruptTable(name, f"has column {twice!r} more than once", hint="rename or drop one of them")
            return schema
        name = self.files[0].name
        hint = "declare the columns of the table instead"
        raise InvalidRequest(f"File {name!r} has no rows to infer columns from.", subject=name, hint=hint)

    def read(self, schema: pa.Schema | None = None) -> Iterator[tuple[str, Piece]]:
        """Read all files.

        Parameters
        ----------
        schema : pyarrow.Schema, optional
            Types of columns in formats of text.

        Yields
        ------
        (str, pyarrow.Table or list of dict)
            The name of the file and some of its rows, with the columns that the file has.

        Raises
        ------
        CorruptTable
            A file is not of its format.
        NotFound, StorageError
            A file is gone, or the storage failed.
        """
        for file in self.files:
            for piece in file.read(schema):
                yield file.name, piece

    def to_reader(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Read the rows as a stream.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to return; by default all.

        Returns
        -------
        pyarrow.RecordBatchReader
            Batches with the columns of `schema`. A column that a later file lacks is null there.

        Raises
        ------
        CorruptTable
            Raised while the stream is read: a file has other columns than the first one, or is not of its format.
        """
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, self._read_batches(schema))

    def _read_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for name, piece in self.read(self.schema):
            table = piece if isinstance(piece, pa.Table) else pa.Table.from_pylist(piece)
            others = [column for column in table.column_names if column not in self.schema.names]
            if others:
                raise CorruptTable(name, f"has column {others[0]!r}, which the first rows lack", hint=_OTHER_COLUMNS)
            try:
                arrays = [_cast_column(table, wanted) for wanted in schema]
            except pa.ArrowException as error:
                what = f"has other types than the first rows: {error}"
                raise CorruptTable(name, what, hint=_OTHER_COLUMNS) from error
            # Without columns, only the number of rows matters.
            rows = pa.Table.from_arrays(arrays, schema=schema) if len(schema) else table.select([])
            yield from rows.to_batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)


_OTHER_COLUMNS = "write it to a table by itself, with Table.write, which matches columns by name"


def _cast_column(table: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    if wanted.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, wanted.type)], wanted.type)
    found = table.column(wanted.name)
    return found if found.type == wanted.type else found.cast(wanted.type)


class RowFiles(Protocol):
    """Opens files of rows by name."""

    def open(
        self,
        sources: Sequence[Any],
        format_name: str | None = None,
        storage: Mapping[str, object] | None = None,
        roots: Sequence[str] | None = None,
    ) -> FileRows:
        """Find files; no row is read.

        Parameters
        ----------
        sources : sequence of str, path or binary file
            Paths, URLs, and patterns with ``*``, ``?``, ``[…]`` and ``**``, whose files are in the order of their
            names. A binary file, such as the standard input, is read once.
        format_name : str, optional
            One of `ROW_FILE_FORMATS`; by default the extension of each file decides. A compression is always found by
            the extension.
        storage : mapping, optional
            Storage options for URLs, as in `paimon.connect`.
        roots : sequence of str, optional
            Directories and URLs that contain all files, also behind symbolic links. None allows every file.

        Returns
        -------
        FileRows
            The files.

        Raises
        ------
        NotFound
            There is no such file, or a pattern matches none.
        InvalidRequest
            The format is not known, or a file is outside the roots.
        """
        ...

    def create(self, path: str, roots: Sequence[str], protected: Sequence[str] = ()) -> OutputFile:
        """Begin a file, which replaces one of this name when it is closed.

        Parameters
        ----------
        path : str
            A path or URL below one of the roots.
        roots : sequence of str
            Directories and URLs; see `open`.
        protected : sequence of str
            Directories and URLs, such as warehouses, that get no file. The directory of a table never gets one.

        Returns
        -------
        OutputFile
            A stream, which the caller closes or aborts.

        Raises
        ------
        InvalidRequest
            The file is outside the roots, or in a protected directory or that of a table.
        StorageError
            The storage refused.
        """
        ...
