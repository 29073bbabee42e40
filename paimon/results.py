"""The forms in which callers get rows (`Results`), and which snapshots the rows of a source come from (`SourceReads`).

Invariant: all forms of a result have the rows of one stream of record batches with one schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.commit.entries import find_oldest
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.text_layout import ELLIPSIS, to_text_lines

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds


SHOWN_ROWS = 20


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

    def _limit_to(self, rows: int) -> Self:
        """Return a result that reads no more than these rows, where that saves something."""
        return self

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
        return pa.Table.from_batches(first_rows(self._limit_to(rows)._batches(), rows), schema=self.arrow_schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(list(self._batches()), schema=self.arrow_schema)

    def to_dataset(self) -> ds.Dataset:
        """Return all rows, read into memory, as a dataset of pyarrow; that of a `Scan` is read by the engine."""
        import pyarrow.dataset as ds  # loaded with the first dataset

        return ds.dataset(self.to_arrow())

    def lazy(self) -> pl.LazyFrame:
        """Return all rows, read into memory, as a lazy frame of Polars.

        The frame of a `Scan` reads its rows when it is collected.
        """
        return self.to_polars().lazy()

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
        InvalidRequest
            A value has no form in pandas, such as a date after the year 9999 without ``date_as_object=False``.
        """
        try:
            import pandas  # noqa: F401  (pyarrow imports it, after all was read)
        except ModuleNotFoundError as missing:
            raise missing_extra("to_pandas", "pandas") from missing
        rows = self.to_arrow()
        try:
            frame: pd.DataFrame = rows.to_pandas(**options)
        except ValueError as error:  # such as a date after the year 9999
            hint = "pass date_as_object=False, or use to_arrow()"
            raise InvalidRequest(f"The rows cannot become a data frame of pandas: {error}", hint=hint) from error
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
        InvalidRequest
            The rows have no columns.
        """
        try:
            import duckdb
        except ModuleNotFoundError as missing:
            raise missing_extra("to_duckdb", "duckdb") from missing
        rows = self.to_arrow()
        if not rows.column_names:
            raise InvalidRequest(
                "A relation of DuckDB has columns", subject="columns", hint="name one, or use to_arrow()"
            )
        return (connection or duckdb.default_connection()).from_arrow(rows)

    def show(self, rows: int | None = None) -> None:
        """Print the first rows as a table.

        Parameters
        ----------
        rows : int, optional
            The largest number of rows; by default 20, and all of a SQL statement that is not a query.
        """
        print(self.to_text(rows))

    def to_text(self, rows: int | None = None) -> str:
        """Return the first rows, by default 20, as the lines of a table; an ellipsis stands for more rows."""
        from paimon.display.text_table import to_text_columns  # loaded when rows are shown

        most = SHOWN_ROWS if rows is None else rows
        found = pa.Table.from_batches(first_rows(self._batches(), most + 1), schema=self.arrow_schema)
        lines = list(to_text_lines(to_text_columns(found.slice(0, most)))) if found.column_names else []
        return "\n".join([*lines, ELLIPSIS] if found.num_rows > most else lines)

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


# What a source reads. Rows that are computed from a table and replace rows of it are out of date once another user
# changes the table. So the commit names the oldest snapshot that was read, and is refused if later commits changed
# rows. A source that can be read again is then read from the newest snapshot. Another one is refused: a reader has only
# the rows of its snapshot.
#
#     merge(t.scan())                reads t at 5 -> commit refused, 6 changed rows -> reads t at 6 -> committed
#     merge(t.scan().to_batches())   reads t at 5 -> commit refused, 6 changed rows -> ReadConflict
#
# Classes register with `find_reads` how their objects describe themselves. Readers of pyarrow cannot hold such a
# description, so `note_reader` records it next to them. A snapshot that the caller chose, for instance by a tag, does
# not count: its rows are meant to be old.


@frozen
class SnapshotRead:
    """A read of the snapshot of a table that was the newest one; `state` is None if that is not known."""

    location: str
    branch: str
    state: ReadState | None


def _to_reads(values: Iterable[SnapshotRead]) -> tuple[SnapshotRead, ...]:
    return tuple(values)


@frozen(eq=False)
class SourceReads:
    """What a source reads; `again` returns the source as newer snapshots show it, and is None if it cannot."""

    reads: tuple[SnapshotRead, ...] = field(converter=_to_reads, default=())
    again: Callable[[], Any] | None = None


_READERS: WeakKeyDictionary[Any, Callable[[], SourceReads]] = WeakKeyDictionary()
"""What readers that this library made read: they are objects of pyarrow, and cannot hold it themselves."""


def note_reader(reader: Any, describe: Callable[[], SourceReads]) -> Any:
    """Record what a reader or generator reads, and return it."""
    if _is_weakly_referable(reader):
        _READERS[reader] = describe
    return reader


@singledispatch
def find_reads(data: Any) -> SourceReads:
    """Return what a source reads; nothing of data that is in memory already."""
    can_be_noted = type(data).__hash__ is not None and _is_weakly_referable(data)
    describe = _READERS.get(data) if can_be_noted else None
    return SourceReads() if describe is None else evolve(describe(), again=None)


def _is_weakly_referable(data: Any) -> bool:
    return type(data).__weakrefoffset__ > 0


@find_reads.register(list)
@find_reads.register(tuple)
def _find_reads_of_parts(data: Sequence[Any]) -> SourceReads:
    parts = [find_reads(part) for part in data if not isinstance(part, Mapping)]
    reads = [read for found in parts for read in found.reads]
    functions = [found.again for found in parts if found.again is not None]
    return SourceReads(reads, (lambda: [read() for read in functions]) if len(functions) == len(data) else None)


@frozen(eq=False)
class OwnReads:
    """The reads of the table that a source changes: the oldest snapshot, and `again` as in `SourceReads`."""

    state: ReadState
    again: Callable[[], Any] | None


def find_own_reads(table: TableDefinition, data: Any) -> OwnReads | None:
    """Return what a source reads of the table that it changes; None for nothing.

    Refuses a source whose snapshot of the table is not known, because the commit could not detect conflicts.
    """
    found = find_reads(data)
    own = [read.state for read in found.reads if (read.location, read.branch) == (table.location, table.branch)]
    if None in own:
        raise InvalidRequest(
            f"The rows come from table {table.table_name!r}, which they change, and their snapshot is not known.",
            subject="source",
            hint="read the table with paimon.spark.read, or pass paimon.spark.merge a function that returns the frame",
        )
    oldest = find_oldest(own)
    return None if oldest is None else OwnReads(oldest, found.again)


def stamp_messages(
    table: TableDefinition, messages: Sequence[CommitMessage], state: ReadState | None, overwrites: bool = False
) -> list[CommitMessage]:
    """Return messages that name the snapshot from which their rows were computed.

    An overwrite without rows gets an empty message, because it removes rows.
    """
    if state is None:
        return list(messages)
    if not messages and overwrites:
        types = [column.type for column in table.schema.partition_fields]
        messages = [CommitMessage(serialize([None] * len(types), types), 0, 0, "")]
    return [evolve(m, read_state=find_oldest([m.read_state, state])) for m in messages]
