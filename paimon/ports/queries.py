"""QueryEngine: run SQL queries over streams of Arrow batches.

The statement layer of `paimon.sql` plans scans of tables, and gives them to the engine as sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from attrs import field, frozen

TYPE_NAMES = (
    *("BIGINT", "BLOB", "BOOLEAN", "BYTES", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT", "INT", "INTEGER", "INTERVAL"),
    *("REAL", "SMALLINT", "STRING", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TINYINT", "UUID", "VARCHAR"),
)
"""The usual types in the dialect of queries, for the hint of an unknown one."""


class SharedFile(Protocol):
    """The bytes of one Parquet file for the engine's own reader. All methods are safe to call from several threads."""

    @property
    def path(self) -> str:
        """The path that errors name."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""

    @property
    def checks(self) -> object | None:
        """The checks of pages that passed, for later calls of `share`; None if the file may change unnoticed."""

    @property
    def checks_bytes(self) -> int:
        """The memory that the checks take at most."""

    def read_at(self, size: int, start: int) -> bytes:
        """Return bytes of the file. Column data is checked before it is returned.

        Parameters
        ----------
        size : int
            The number of bytes; fewer are returned only at the end of the file.
        start : int
            The offset of the first byte.

        Returns
        -------
        bytes
            The bytes.

        Raises
        ------
        CorruptTable
            A page is damaged, or takes more memory than a reader of the library accepts.
        StorageError
            The storage failed.
        """


def _files(values: Iterable[SharedFile]) -> tuple[SharedFile, ...]:
    return tuple(values)


@frozen(eq=False)
class SourceFiles:
    """The rows of a source as Parquet files, and the remaining rows as batches.

    Parameters
    ----------
    files : tuple of SharedFile
        Files whose rows belong to the source, without `lost_rows`. Columns have the names and types of the source. A
        file may contain more columns, which do not belong to the source. It may contain rows that the conditions of the
        query exclude.
    open_rest : callable, optional
        Returns a new reader of the rows that are in none of the files; None if there are no such rows.
    lost_rows : mapping of int to pyarrow.Array, optional
        By the position of a file in `files`: the numbers of its rows that are not in the source, as int64, from 0.
    """

    files: tuple[SharedFile, ...] = field(converter=_files)
    open_rest: Callable[[], pa.RecordBatchReader] | None = None
    lost_rows: Mapping[int, pa.Array] = field(factory=dict)


@frozen(eq=False)
class QuerySource:
    """Rows that a query reads under one name.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns.
    open : callable
        Returns a new reader of all rows; an engine may call it more than once, and from any thread.
    origin : object, optional
        What the rows are read from. An engine that knows its kind may read it itself instead of calling `open`, for
        instance with many workers.
    open_files : callable, optional
        Returns the same rows as `SourceFiles`, for an engine with its own Parquet reader. Any engine may use `open`
        instead. None if no file can be read in this way. Keys may be read, unless the argument is False.
    """

    schema: pa.Schema
    open: Callable[[], pa.RecordBatchReader]
    origin: Any = None
    open_files: Callable[[bool], SourceFiles] | None = None


class QueryEngine(Protocol):
    """Runs queries in DuckDB's dialect of SQL; the query is the text of a user, and data never becomes a part of it.

    An engine with another dialect translates the query.

    Invariant: a query reads only its sources. It neither opens files by name nor changes anything.
    """

    @property
    def reads_files(self) -> bool:
        """Whether the engine reads files of sources itself, by `QuerySource.open_files`."""
        ...

    @property
    def time_zone(self) -> str:
        """The time zone of the next query: of the dates and times of day of instants, and of texts without a zone."""
        ...

    def adopt(self, data: Any) -> QuerySource | None:
        """Return a source for rows that the engine holds itself, such as its own kind of data frame.

        Parameters
        ----------
        data : object
            Tabular data that the caller of a statement gave.

        Returns
        -------
        QuerySource or None
            None where the engine reads the data as Arrow batches, like any other engine. No row is read.
        """
        ...

    def find_view(self, name: Sequence[str]) -> QuerySource | None:
        """Return a source for a view that the engine's own session has under a name.

        Parameters
        ----------
        name : sequence of str
            The parts of the name, as the query writes them.

        Returns
        -------
        QuerySource or None
            None if the engine has no session, or no such view in it. No row is read, and nothing changes.
        """
        ...

    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.RecordBatchReader:
        """Run one query.

        The rows are computed while the reader is consumed. Calls are independent of each other, and may overlap.
        Repeating a call gives the same rows, in an order that only ORDER BY defines.

        Parameters
        ----------
        sql : str
            A query that names its sources in double quotes.
        sources : mapping of str to QuerySource
            What the query reads, by name.

        Returns
        -------
        pyarrow.RecordBatchReader
            The rows of the query.

        Raises
        ------
        InvalidRequest
            The query names an unknown column or function, or a value cannot be computed. The second is raised while
            the reader is consumed.
        PaimonError
            What a source raises, unchanged.
        MissingExtra
            The package of the engine is not installed.
        """
        ...

    def describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        """Return the columns of a query; no row is read.

        Parameters
        ----------
        sql, sources : str, mapping of str to QuerySource
            As in `run`.

        Returns
        -------
        pyarrow.Schema
            The schema of the reader that `run` returns.

        Raises
        ------
        InvalidRequest
            The query names an unknown column or function.
        MissingExtra
            The package of the engine is not installed.
        """
        ...

    def explain(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Return the engine's plan of a query as text; no row is read.

        Parameters
        ----------
        sql, sources : str, mapping of str to QuerySource
            As in `run`.

        Returns
        -------
        str
            Lines for people.

        Raises
        ------
        InvalidRequest
            The query names an unknown column or function.
        PaimonError
            What a source raises when its files are opened, unchanged.
        MissingExtra
            The package of the engine is not installed.
        """
        ...

    def interrupt(self) -> None:
        """Stop the queries that run in this process, from any thread; each raises InvalidRequest in its own thread.

        Nothing happens if no query runs. An engine that runs queries elsewhere may do nothing.
        """
        ...
