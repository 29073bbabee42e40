"""QueryEngine: run SQL queries over streams of Arrow batches.

The statement layer of `paimon.sql` plans scans of tables, and gives them to the engine as sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa
from attrs import frozen


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
    """

    schema: pa.Schema
    open: Callable[[], pa.RecordBatchReader]
    origin: Any = None


class QueryEngine(Protocol):
    """Runs queries in DuckDB's dialect of SQL; the query is the text of a user, and data never becomes a part of it.

    An engine with another dialect translates the query.

    Invariant: a query reads only its sources. It neither reads files nor changes anything.
    """

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
        MissingExtra
            The package of the engine is not installed.
        """
        ...
