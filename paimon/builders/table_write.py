"""Write the rows of one job, in any number of processes; the messages of all writers are committed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Self

import pyarrow as pa
from attrs import evolve

from paimon.display.notebook import BuilderDisplay
from paimon.domain.columns.conform import check_fit
from paimon.domain.commit.entries import find_oldest
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.missing_columns import ColumnCheck, set_missing_columns
from paimon.domain.schema.rules.row_level import restrict_columns
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_text
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import open_files, read_checked_rows
from paimon.operations.write.writer import TableWriter
from paimon.results import find_own_reads, stamp_messages


class TableWrite(BuilderDisplay):
    """Write rows of one job; `prepare_commit` returns the messages that a `TableCommit` takes.

    A ``with`` block that ends with an exception deletes the files that no message names yet.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits.
    ignore_previous : bool
        Do not read the existing files of a bucket, because the commit overwrites them.
    streaming : bool
        Several commits follow each other, each with its own commit identifier.
    replaced : mapping of str to object, optional
        For overwrites: the partition values to replace (``{}`` the whole table); None for the partitions written.
    planned_buckets : mapping of bytes to int
        The numbers of buckets of serialized partitions of a postponed table.
    number_gap : int
        How many sequence numbers this writer leaves free in each bucket, for other writers of the same commit.
    """

    def __init__(
        self,
        context: TableContext,
        commit_user: str,
        ignore_previous: bool = False,
        streaming: bool = False,
        replaced: Mapping[str, object] | None = None,
        planned_buckets: Mapping[bytes, int] = MappingProxyType({}),
        number_gap: int = 0,
    ) -> None:
        self._context = context
        self._table = context.table
        self._streaming = streaming
        self._write_cols: tuple[str, ...] | None = None
        self._open = partial(
            TableWriter,
            commit_user=commit_user,
            ignore_previous=ignore_previous,
            replaced=replaced,
            streaming=streaming,
            planned_buckets=planned_buckets,
            number_gap=number_gap,
        )
        self._writer = self._open(context)
        self._has_torn_call = False
        self._overwrites = ignore_previous
        self._read_state: ReadState | None = None

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._table.table_name, {"streaming": self._streaming}

    def with_write_type(self, columns: Sequence[str]) -> Self:
        """Write files with some columns alone, in a table with `data-evolution.enabled`; call it before the first row.

        The other columns of the rows are null, until an update sets them. Rows of other tables can leave columns out.

        Parameters
        ----------
        columns : sequence of str
            The columns, among them all partition columns.

        Returns
        -------
        TableWrite
            This writer.

        Raises
        ------
        InvalidRequest
            The table has no data evolution, a column does not exist, or a partition column is missing.
        """
        partial_table = restrict_columns(self._context.table, columns)
        self._writer.close()
        self._table = partial_table
        is_whole = partial_table.schema.names == self._context.schema.names
        self._write_cols = None if is_whole else partial_table.schema.names
        self._writer = self._open(self._context.with_table(partial_table))
        return self

    def write(self, data: Any, kind_column: str | None = None, *, missing_columns: str | None = None) -> None:
        """Write rows in any form that `Table.write` takes.

        Rows of this table itself, such as a scan, make the commit conflict if other users change rows after the scan,
        where the rows replace others: in overwrites, and in tables with a primary key.

        Parameters
        ----------
        data : object
            Rows as in `Table.write`.
        kind_column : str, optional
            The column that holds row kinds.
        missing_columns : str, optional
            ``"null"`` or ``"error"``, as in `Table.write`.

        Raises
        ------
        InvalidRequest
            The rows do not fit the table; none of them was accepted. Where an iterator had given others before, this
            writer has to be aborted.
        """
        if kind_column is not None:
            check_text(kind_column, "kind_column")
        data = open_files(self._context.engine, data)
        check = ColumnCheck.of(set_missing_columns(self._table, missing_columns), kind_column)
        own = find_own_reads(self._table, data) if self._overwrites or self._table.schema.primary_keys else None
        self._read_state = find_oldest([self._read_state, own.state if own else None])
        accepted = False
        try:
            for rows in read_checked_rows(data, self._table.schema.fields, kind_column, check, self._check_types):
                self._writer.write(rows, kind_column)
                accepted = True
        except InvalidRequest:
            self._has_torn_call = self._has_torn_call or accepted
            raise

    def _check_types(self, given: pa.Schema) -> None:
        check_fit(given, self._table.schema.fields, f"table {self._table.table_name}")

    def write_arrow(self, table: pa.Table | pa.RecordBatch, *, missing_columns: str | None = None) -> None:
        """Write an Arrow table or batch; see `write`."""
        self.write(table, missing_columns=missing_columns)

    def write_arrow_batch(self, batch: pa.RecordBatch, *, missing_columns: str | None = None) -> None:
        """Write one record batch; see `write`."""
        self.write(batch, missing_columns=missing_columns)

    def write_pandas(self, frame: Any, *, missing_columns: str | None = None) -> None:
        """Write a pandas DataFrame; see `write`."""
        self.write(frame, missing_columns=missing_columns)

    def compact(self, partition: Mapping[str, object], bucket: int = 0, full: bool = False) -> None:
        """Compact one bucket at the next `prepare_commit`.

        Parameters
        ----------
        partition : mapping of str to object
            The values of all partition columns; ``{}`` for a table without partitions.
        bucket : int
            The bucket number, from 0.
        full : bool
            Write everything into one sorted run. By default the options of the table select what is compacted.

        Raises
        ------
        InvalidRequest
            A partition column has no value, or a name or value does not fit.
        """
        self._writer.compact(_to_partition_row(self._table, partition), bucket, full)

    def flush(self) -> None:
        """Write buffered rows to data files; nothing is compacted, and nothing is visible before the commit."""
        self._writer.flush()

    def prepare_commit(self, identifier: int | None = None) -> list[CommitMessage]:
        """Write buffered rows to data files, compact, and return one message for each bucket that changed.

        Parameters
        ----------
        identifier : int, optional
            The commit identifier of the commit that follows; `full-compaction.delta-commits` counts by it.

        Returns
        -------
        list of CommitMessage
            The files that were added and replaced.

        Raises
        ------
        InvalidRequest
            A call of `write` was refused after it had accepted rows.
        """
        if self._has_torn_call:
            raise InvalidRequest(
                f"The writer of table {self._table.table_name!r} has accepted a part of rows that were then refused.",
                hint="call abort(), and write all rows of this commit again",
            )
        if identifier is None and not self._streaming:
            identifier = BATCH_COMMIT_IDENTIFIER
        messages = self._writer.prepare_commit(identifier)
        messages = stamp_messages(self._table, messages, self._read_state, self._overwrites)
        self._read_state = None
        return messages if self._write_cols is None else [self._name_columns(message) for message in messages]

    def _name_columns(self, message: CommitMessage) -> CommitMessage:
        """Return a message whose files have the columns that were written."""
        files = [evolve(file, write_cols=file.write_cols or self._write_cols) for file in message.data.new_files]
        return evolve(message, data=evolve(message.data, new_files=files))

    def abort(self) -> None:
        """Delete the files that were written since the last `prepare_commit`."""
        self._has_torn_call = False
        self._writer.abort()

    def close(self) -> None:
        """Release buffers; files that no message names are deleted."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        self.close()


def _to_partition_row(table: TableDefinition, partition: Mapping[str, object]) -> bytes:
    fields = table.schema.partition_fields
    values = parse_partition_spec(partition, fields, table.options.partition_default_name)
    missing = [f.name for f in fields if f.name not in values]
    if missing:
        raise InvalidRequest(
            f"Table {table.table_name!r}: the partition has no value for {missing[0]!r}.",
            subject=missing[0],
            hint="give a value for each partition column",
        )
    return serialize([values[f.name] for f in fields], [f.type for f in fields])
