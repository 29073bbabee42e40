"""The forms of a result: Arrow, batches, pandas, polars, DuckDB, an Arrow C stream.

Invariant: all forms have the rows of one stream of record batches with one schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra
from paimon.source_reads import find_reads, note_reader

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class Results:
    """Mixin: a class provides `arrow_schema` and `_batches`, and gets all other forms."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of every batch."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch: another name of `arrow_schema`."""
        return self.arrow_schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def to_batches(self) -> pa.RecordBatchReader:
        """Return a reader that reads the batches while it is consumed."""
        reader = pa.RecordBatchReader.from_batches(self.arrow_schema, self._batches())
        return note_reader(reader, partial(find_reads, self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the batches, which are read one after the other: ``for batch in scan``."""
        batches = iter(self._batches())
        note_reader(batches, partial(find_reads, self))
        return batches

    def head(self, rows: int = 10) -> pa.Table:
        """Read the first rows, and no more batches than necessary.

        Parameters
        ----------
        rows : int
            The largest number of rows.

        Returns
        -------
        pyarrow.Table
            The rows, in the schema of the result. Their order is not defined.

        Raises
        ------
        InvalidRequest
            `rows` is not a number, or negative.
        """
        if not isinstance(rows, int) or rows < 0:
            raise InvalidRequest(
                f"Argument 'rows' of head is {rows!r}, which is not a number of rows.",
                subject="rows",
                hint="give 0 or more",
            )
        return pa.Table.from_batches(first_rows(self._batches(), rows), schema=self.arrow_schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(list(self._batches()), schema=self.arrow_schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame.

        Parameters
        ----------
        **options
            Arguments of `pyarrow.Table.to_pandas`.

        Returns
        -------
        pandas.DataFrame
            The rows; column types are those that pyarrow selects.

        Raises
        ------
        MissingExtra
            The extra ``pandas`` is not installed.
        """
        try:
            import pandas  # noqa: F401  (pyarrow imports it, after all was read)
        except ModuleNotFoundError as missing:
            raise missing_extra("to_pandas", "pandas") from missing
        frame: pd.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a polars DataFrame.

        Raises
        ------
        MissingExtra
            The extra ``polars`` is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError as missing:
            raise missing_extra("to_polars", "polars") from missing
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return a DuckDB relation over the rows.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection, optional
            The connection that the relation belongs to; by default that of the module `duckdb`.

        Returns
        -------
        duckdb.DuckDBPyRelation
            The rows, which were read before into memory.

        Raises
        ------
        MissingExtra
            The extra ``duckdb`` is not installed.
        """
        try:
            import duckdb
        except ModuleNotFoundError as missing:
            raise missing_extra("to_duckdb", "duckdb") from missing
        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def count(self) -> int:
        """Return the number of rows."""
        return sum(batch.num_rows for batch in self._batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the Arrow C stream, so that other libraries read the rows without conversion code."""
        return self.to_batches().__arrow_c_stream__(requested_schema)


def first_rows(batches: Iterator[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return batches with at most `rows` rows in total; the last one is cut, and no further batch is read."""
    parts: list[pa.RecordBatch] = []
    left = rows
    while left > 0 and (batch := next(batches, None)) is not None:
        parts.append(batch.slice(0, left))
        left -= parts[-1].num_rows
    return parts
