"""What a scan can be turned into: Arrow, batches, pandas, polars, DuckDB, an Arrow C stream.

Law: everything here is one stream of record batches of one schema, in another dress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


class Results:
    """Mixin: `arrow_schema` and `_batches` are given, all other forms follow."""

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
        """A reader that yields the batches as they are read."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self._batches())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, as they are read: ``for batch in scan``."""
        return iter(self._batches())

    def head(self, rows: int = 10) -> pa.Table:
        """Read the first rows, and no more batches than they need.

        Parameters
        ----------
        rows : int
            How many rows at most.

        Returns
        -------
        pyarrow.Table
            The rows, in the schema of the result. Which rows are the first is not defined beyond one snapshot's files.

        Raises
        ------
        InvalidRequest
            `rows` is not a count.
        """
        if not isinstance(rows, int) or rows < 0:
            raise InvalidRequest(f"head({rows!r}) is not a count of rows", subject="rows", hint="give 0 or more")
        return pa.Table.from_batches(first_rows(self._batches(), rows), schema=self.arrow_schema)

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(list(self._batches()), schema=self.arrow_schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas DataFrame (needs the extra ``pandas``); `options` go to `pyarrow.Table.to_pandas`."""
        try:
            import pandas  # noqa: F401  (pyarrow imports it, after all was read)
        except ModuleNotFoundError as missing:
            raise missing_extra("to_pandas", "pandas") from missing
        frame: pd.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame (needs the extra ``polars``)."""
        try:
            import polars
        except ModuleNotFoundError as missing:
            raise missing_extra("to_polars", "polars") from missing
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the rows, in `connection` or DuckDB's default one (needs the extra ``duckdb``)."""
        try:
            import duckdb
        except ModuleNotFoundError as missing:
            raise missing_extra("to_duckdb", "duckdb") from missing
        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def count(self) -> int:
        """Number of rows."""
        return sum(batch.num_rows for batch in self._batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream, so that other libraries read a scan with no glue."""
        return self.to_batches().__arrow_c_stream__(requested_schema)


def first_rows(batches: Iterator[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """The batches up to so many rows, of which the last is cut; what is not needed is not read."""
    taken: list[pa.RecordBatch] = []
    left = rows
    while left > 0 and (batch := next(batches, None)) is not None:
        taken.append(batch.slice(0, left))
        left -= taken[-1].num_rows
    return taken
