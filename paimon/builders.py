"""The program API for writing: write in many processes, commit in one.

Commit messages are plain values that can travel between processes. Each builder binds arguments and delegates to an
operation.

Source: the names follow the program APIs of Java and of pypaimon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.display.notebook import given_arguments
from paimon.domain.columns.conform import check_fit
from paimon.domain.commit.entries import find_oldest
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.commit.request import check_long
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_spec import parse_partition_spec
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.missing_columns import ColumnCheck, set_missing_columns
from paimon.domain.schema.rules.row_level import restrict_columns
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_mapping, check_text
from paimon.operations.commit.commit import CommitRequest, CommitResult, SafeSnapshot
from paimon.operations.commit.history import is_committed
from paimon.operations.commit.prepared_files import abort
from paimon.operations.metadata.schemas import check_same_table
from paimon.operations.table_context import TableContext
from paimon.operations.write.commit_rows import commit_rows, repeat_commit
from paimon.operations.write.input_rows import read_checked_rows
from paimon.operations.write.writer import TableWriter
from paimon.read_builder import BuilderDisplay
from paimon.references import run_after_commit
from paimon.row_updates import TableUpdate
from paimon.source_reads import find_own_reads, stamp_messages


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
    """

    def __init__(
        self,
        context: TableContext,
        commit_user: str,
        ignore_previous: bool = False,
        streaming: bool = False,
        replaced: Mapping[str, object] | None = None,
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
        files = [evolve(file, write_cols=self._write_cols) for file in message.data.new_files]
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


@frozen(repr=False)
class TableCommit(BuilderDisplay):
    """Commit the messages of writers as snapshots; made by `BatchWriteBuilder.new_commit`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits; with the commit identifier it identifies a commit.
    overwrite : mapping of str to object, optional
        The partition values to replace; ``{}`` the whole table, None to replace nothing.
    dynamic_overwrite : bool
        Replace the partitions that the messages name.
    ignore_empty : bool
        Make no snapshot where there is nothing to commit.
    owns_messages : bool
        No caller keeps the messages, so their files may be written again; see `commit.late-rows.max-size`.
    """

    context: TableContext
    commit_user: str
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    ignore_empty: bool = True
    owns_messages: bool = field(default=False, repr=False, kw_only=True)
    _safe: SafeSnapshot = field(factory=SafeSnapshot, init=False, eq=False, repr=False)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.context.table.table_name, given_arguments(commit_user=self.commit_user, overwrite=self.overwrite)

    def commit(
        self,
        messages: Sequence[CommitMessage],
        properties: Mapping[str, str] | None = None,
        *,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages as one snapshot; with its own `identifier` a commit of one user is made once.

        After a CommitConflict nothing is published and the files still exist: `abort` deletes them. If only the
        compaction is lost (see `CommitResult.lost_compaction`), its files are deleted already. Where reads skip level 0
        (deletion vectors, first-row), a lost compaction is planned again until reads return the rows.

        Parameters
        ----------
        messages : sequence of CommitMessage
            What the writers prepared, in this or in other processes.
        properties : mapping of str to str, optional
            Text to store in the snapshot.
        identifier : int
            The commit identifier; by default that of batch commits.
        watermark : int, optional
            Event time in epoch milliseconds; the watermark of a table never decreases.

        Returns
        -------
        CommitResult
            The snapshots of the commit, and what they added.

        Raises
        ------
        CommitConflict
            Another commit replaced the same files.
        CommitUncertain, CommitOverwritten
            The commit status is unknown, or another commit replaced the snapshot; see `Table.resolve`.
        CommitNotVisible
            The rows are committed, but their compaction failed too often.
        """
        request = CommitRequest(
            messages=tuple(messages),
            commit_user=self.commit_user,
            commit_identifier=identifier,
            overwrite=self.overwrite,
            dynamic_overwrite=self.dynamic_overwrite,
            watermark=watermark,
            properties=dict(check_mapping(properties, "properties")),
            ignore_empty=self.ignore_empty,
            renumbers=self.owns_messages,
        )
        done = commit_rows(self.context, request, self._safe)
        run_after_commit(self.context, done.snapshot_ids, identifier)
        return done

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Return the commit identifiers that this user has not committed yet.

        For each of the others, callbacks are called again, and rows that reads do not return yet are compacted.
        """
        for identifier in identifiers:
            check_long(identifier, "commit identifier")
        check_same_table(self.context)
        left = [i for i in identifiers if not is_committed(self.context, self.commit_user, i)]
        for identifier in identifiers:
            if identifier not in left:
                repeat_commit(self.context, CommitRequest((), self.commit_user, identifier))
        return left

    def abort(self, messages: Sequence[CommitMessage], identifier: int = BATCH_COMMIT_IDENTIFIER) -> tuple[str, ...]:
        """Delete the files of messages that are never committed, and return their paths; files of a snapshot stay."""
        return abort(self.context, messages, self.commit_user, identifier)


@frozen(repr=False)
class BatchWriteBuilder(BuilderDisplay):
    """Make the writers and the commit of one job; made by `Table.new_batch_write_builder`.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits.
    overwrite_spec : mapping of str to object, optional
        The partition values to replace; None for the partitions that are written.
    overwrites : bool
        The commit replaces rows.
    """

    context: TableContext
    commit_user: str
    overwrite_spec: Mapping[str, object] | None = None
    overwrites: bool = False

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        overwrite = (self.overwrite_spec or {}) if self.overwrites else None
        return self.context.table.table_name, given_arguments(commit_user=self.commit_user, overwrite=overwrite)

    def overwrite(self, static_partition: Mapping[str, object] | None = None) -> BatchWriteBuilder:
        """Return a builder whose commit replaces partitions: those given, or (None) those that are written."""
        return evolve(self, overwrite_spec=static_partition, overwrites=True)

    def new_write(self) -> TableWrite:
        """Return a writer, for this or another process."""
        return TableWrite(
            self.context, self.commit_user, ignore_previous=self.overwrites, replaced=self.replaced_partitions
        )

    def new_update(self) -> TableUpdate:
        """Return the object that updates rows by their ids, in a table with `data-evolution.enabled`."""
        return TableUpdate(self.context, self.commit_user)

    def new_commit(self) -> TableCommit:
        """Return the object that commits the messages of all writers."""
        spec = self.replaced_partitions
        return TableCommit(self.context, self.commit_user, spec, self.overwrites and spec is None)

    @property
    def replaced_partitions(self) -> Mapping[str, object] | None:
        """The partition values that the commit replaces; None for the partitions written, and without an overwrite."""
        if not self.overwrites or self.overwrite_spec is not None:
            return self.overwrite_spec
        is_dynamic = bool(self.context.schema.partition_keys) and self.context.options.dynamic_partition_overwrite
        return None if is_dynamic else {}


@frozen(repr=False)
class StreamWriteBuilder(BuilderDisplay):
    """Make the writers and the commits of a stream; made by `Table.new_stream_write_builder`.

    One user makes many commits with ascending identifiers. Empty commits make a snapshot too, which shows progress.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits; the same after a restart.
    """

    context: TableContext
    commit_user: str

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.context.table.table_name, {"commit_user": self.commit_user}

    def new_write(self) -> TableWrite:
        """Return a writer for many commits."""
        return TableWrite(self.context, self.commit_user, streaming=True)

    def new_update(self) -> TableUpdate:
        """Return the object that updates rows by their ids; see `BatchWriteBuilder.new_update`."""
        return TableUpdate(self.context, self.commit_user)

    def new_commit(self) -> StreamTableCommit:
        """Return the object that commits with ascending identifiers."""
        return StreamTableCommit(TableCommit(self.context, self.commit_user, ignore_empty=False))


@frozen(repr=False)
class StreamTableCommit(BuilderDisplay):
    """Commit with ascending commit identifiers; what is committed already is skipped.

    Parameters
    ----------
    inner : TableCommit
        The commit of one set of messages.
    """

    inner: TableCommit

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self.inner._describe()

    def commit(
        self,
        identifier: int,
        messages: Sequence[CommitMessage],
        watermark: int | None = None,
    ) -> CommitResult:
        """Publish the messages under a commit identifier, unless it is committed already.

        Parameters
        ----------
        identifier : int
            The commit identifier, from 0; greater than that of the commit before.
        messages : sequence of CommitMessage
            What the writers prepared.
        watermark : int, optional
            Event time in epoch milliseconds.

        Returns
        -------
        CommitResult
            The snapshots of the commit; `already_committed` is true if an earlier call committed them.

        Raises
        ------
        InvalidRequest
            The identifier is negative, or not a 64-bit number.
        CommitConflict, CommitUncertain, CommitOverwritten, CommitNotVisible
            As in `TableCommit.commit`.
        """
        if not 0 <= check_long(identifier, "commit identifier") < BATCH_COMMIT_IDENTIFIER:
            raise InvalidRequest(
                f"Commit identifier {identifier} is out of range.",
                subject="identifier",
                hint=f"give 0 to {BATCH_COMMIT_IDENTIFIER - 1}",
            )
        inner = self.inner
        if is_committed(inner.context, inner.commit_user, identifier):
            request = CommitRequest(tuple(messages), inner.commit_user, identifier)
            failed_callbacks = repeat_commit(inner.context, request)
            return CommitResult(already_committed=True, failed_callbacks=failed_callbacks)
        return inner.commit(messages, identifier=identifier, watermark=watermark)

    def filter_committed(self, identifiers: Sequence[int]) -> list[int]:
        """Return the commit identifiers that this user has not committed yet; see `TableCommit.filter_committed`."""
        return self.inner.filter_committed(identifiers)


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
