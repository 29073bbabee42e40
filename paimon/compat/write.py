"""Write builders, writers and commits by the names of pypaimon.

Source: `pypaimon.write`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon.compat.commit_message import (
    CommitCallback,
    CommitMessage,
    commit_errors,
    from_paimon_messages,
    to_paimon_callback,
    to_paimon_messages,
)
from paimon.compat.data_types import arrow_schema_of, to_plain_texts
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import RowKind, named_values
from paimon.compat.stored_table import StoredTable
from paimon.compat.update import BatchTableUpdate, PendingChange, StreamTableUpdate, TableUpdate, run_pending_changes
from paimon.domain.columns.plain import plain_type

if TYPE_CHECKING:
    import paimon
    from paimon.builders.table_write import TableWrite as PaimonTableWrite
    from paimon.builders.write_builder import BatchWriteBuilder as PaimonBatchWriteBuilder

_KIND = "__row_kind__"
_ROWS_OF_BATCH = 8_192


class WriteBuilder(PeerClass, ABC):
    """Make the writers and the commits of one job."""

    def __init__(self, table: StoredTable) -> None:
        self.table = table
        self.commit_user = table.inner.new_batch_write_builder().commit_user

    @abstractmethod
    def new_write(self) -> TableWrite:
        """Return a writer."""

    @abstractmethod
    def new_commit(self) -> TableCommit:
        """Return the object that commits."""

    def with_restore_snapshot(self, snapshot_id: int) -> WriteBuilder:
        """Refuse to assign rows to buckets by an earlier state."""
        refuse("with_restore_snapshot", "write with a new writer, which reads the newest state")

    @abstractmethod
    def new_update(self) -> TableUpdate:
        """Return the object that updates rows."""


class BatchWriteBuilder(WriteBuilder):
    """Make the writers and the commit of one job; made by `FileStoreTable.new_batch_write_builder`."""

    def __init__(self, table: StoredTable) -> None:
        super().__init__(table)
        self.static_partition: dict[str, Any] | None = None

    def overwrite(self, static_partition: dict[str, Any] | None = None) -> BatchWriteBuilder:
        """Replace rows: those of the partition given, or of the partitions that are written."""
        self.static_partition = {} if static_partition is None else static_partition
        return self

    def new_write(self) -> BatchTableWrite:
        """Return a writer."""
        return BatchTableWrite(self.table, self.commit_user, self.static_partition)

    def new_update(self) -> BatchTableUpdate:
        """Return the object that updates and deletes rows."""
        return BatchTableUpdate(self.table, self.commit_user)

    def new_commit(self) -> BatchTableCommit:
        """Return the object that commits."""
        return BatchTableCommit(self.table, self.commit_user, self.static_partition)


class StreamWriteBuilder(WriteBuilder):
    """Make the writers and the commits of a stream; made by `FileStoreTable.new_stream_write_builder`."""

    def new_write(self) -> StreamTableWrite:
        """Return a writer for many commits."""
        return StreamTableWrite(self.table, self.commit_user)

    def new_commit(self) -> StreamTableCommit:
        """Return the object that commits with identifiers."""
        return StreamTableCommit(self.table, self.commit_user)

    def new_update(self) -> StreamTableUpdate:
        """Return the object that updates rows under commit identifiers, in tables with data evolution."""
        return StreamTableUpdate(self.table, self.commit_user)


class TableWrite(PeerClass):
    """Write rows."""

    _streams = False

    def __init__(self, table: StoredTable, commit_user: str, static_partition: Mapping[str, Any] | None = None) -> None:
        self.table = table
        self.commit_user = commit_user
        self.static_partition = static_partition
        self._inner = self._open(static_partition)
        self._columns: list[str] | None = None
        self._rows: list[dict[str, Any]] = []

    def _open(self, static_partition: Mapping[str, Any] | None) -> PaimonTableWrite:
        if self._streams:
            return self.table.open_writing().new_stream_write_builder(self.commit_user).new_write()
        return self._build(static_partition).new_write()

    def _build(self, static_partition: Mapping[str, Any] | None) -> PaimonBatchWriteBuilder:
        builder = self.table.open_writing().new_batch_write_builder(self.commit_user)
        return builder if static_partition is None else builder.overwrite(static_partition or None)

    def write_arrow(self, data: pa.Table | pa.RecordBatch, bucket: int | None = None) -> None:
        """Write an Arrow table or batch."""
        if bucket is not None:
            refuse("write_arrow(bucket=…)", "leave the argument out: rows are assigned to buckets by the writer")
        if self._columns is not None and data.schema.names == self.table.field_names:
            data = data.select(self._schema().names)  # pypaimon leaves the other columns out, too
        self._check_columns(data.schema)
        self._write_rows()
        self._inner.write(data, missing_columns="null")  # `with_write_type` says which columns there are

    def write_arrow_batch(self, data: pa.RecordBatch, bucket: int | None = None) -> None:
        """Write one record batch; see `write_arrow`."""
        self.write_arrow(data, bucket)

    def write_pandas(self, dataframe: Any) -> None:
        """Write a pandas DataFrame."""
        self.write_arrow(pa.Table.from_pandas(dataframe, schema=self._schema(), preserve_index=False))

    def write_row(self, row: Any) -> None:
        """Write one row; rows are gathered, so that they are written as columns."""
        names = self._schema().names
        values, kind = named_values(row, self.table.field_names)
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"write_row requires row field(s) {missing}, but row only contains {list(values)}.")
        self._rows.append({**{name: values[name] for name in names}, _KIND: kind})
        if len(self._rows) >= _ROWS_OF_BATCH:
            self._write_rows()

    def with_write_type(self, write_cols: list[str]) -> TableWrite:
        """Write these columns alone; the others are null or have their default."""
        unknown = [name for name in write_cols if name not in self.table.field_names]
        if unknown:
            raise ValueError(f"Column {unknown[0]} is not in table schema.")
        self._columns = list(write_cols)
        if self.table.options.data_evolution_enabled():
            self._inner = self._inner.with_write_type(self._columns)
        return self

    def with_blob_consumer(self, blob_consumer: object) -> TableWrite:
        """Refuse to report where BLOB values were written."""
        refuse("with_blob_consumer", "write the values and read them back")

    def write_ray(
        self,
        dataset: Any,
        overwrite: bool = False,
        concurrency: int | None = None,
        ray_remote_args: Mapping[str, Any] | None = None,
        hash_fixed_precluster: str = "auto",
        static_partition: dict[str, Any] | None = None,
    ) -> None:
        """Write a Ray dataset block by block in this process, and commit it."""
        if ray_remote_args or hash_fixed_precluster not in ("auto", "off"):
            refuse("write_ray with tasks of their own", "call write_ray(dataset), or write_arrow in each task")
        builder = BatchWriteBuilder(self.table)
        replaced = self.static_partition if static_partition is None else static_partition
        if overwrite or replaced is not None:
            builder = builder.overwrite(None if replaced is None else dict(replaced))
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
                writer.write_arrow(batch)
            commit.commit(writer.prepare_commit())
        finally:
            writer.close()
            commit.close()

    def close(self) -> None:
        """Release buffers."""
        self._rows.clear()
        self._inner.close()

    def abort(self) -> None:
        """Delete the files that no message names."""
        self._rows.clear()
        self._inner.abort()
        self._inner.close()

    def _schema(self) -> pa.Schema:
        fields = self.table.inner.table_schema.fields
        chosen = fields if self._columns is None else [f for f in fields if f.name in self._columns]
        return arrow_schema_of(chosen)

    def _check_columns(self, given: pa.Schema) -> None:
        wanted = self._schema()
        if given.names != wanted.names or not all(map(_is_writable, given.types, wanted.types)):
            raise ValueError(
                f"Input schema isn't consistent with table schema and write cols. Input schema is: {given}"
                f" Table schema is: {wanted} Write cols is: {self._columns}"
            )

    def _write_rows(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        kinds = [row.pop(_KIND) for row in rows]
        table = pa.Table.from_pylist(rows, schema=self._schema())
        if all(kind is RowKind.INSERT for kind in kinds):
            self._inner.write(table, missing_columns="null")
            return
        texts = pa.array([kind.to_string() for kind in kinds])
        self._inner.write(table.append_column(_KIND, texts), kind_column=_KIND, missing_columns="null")


class BatchTableWrite(TableWrite):
    """Write rows of one commit; made by `BatchWriteBuilder.new_write`."""

    _prepared = False

    def prepare_commit(self) -> list[CommitMessage]:
        """Return the messages to commit."""
        if self._prepared:
            raise RuntimeError("BatchTableWrite only supports one-time committing.")
        self._prepared = True
        self._write_rows()
        return from_paimon_messages(self._inner.prepare_commit(), self.table)


class StreamTableWrite(TableWrite):
    """Write rows of many commits; made by `StreamWriteBuilder.new_write`."""

    _streams = True

    def prepare_commit(self, commit_identifier: int) -> list[CommitMessage]:
        """Return the messages to commit with this identifier."""
        self._write_rows()
        return from_paimon_messages(self._inner.prepare_commit(commit_identifier), self.table)


class TableCommit(PeerClass):
    """Commit messages."""

    _streams = False

    def __init__(self, table: StoredTable, commit_user: str, static_partition: Mapping[str, Any] | None = None) -> None:
        self.table = table
        self.commit_user = commit_user
        self.overwrite_partition = static_partition
        self._callbacks: list[CommitCallback] = []

    def add_commit_callback(self, callback: CommitCallback) -> None:
        """Call an object after each commit."""
        self._callbacks.append(callback)

    def abort(self, commit_messages: Sequence[CommitMessage | PendingChange]) -> None:
        """Delete the files of messages that are never committed."""
        builder = self.table.inner.new_batch_write_builder(self.commit_user)
        builder.new_commit().abort(to_paimon_messages([m for m in commit_messages if isinstance(m, CommitMessage)]))

    def close(self) -> None:
        """Close the callbacks."""
        for callback in self._callbacks:
            callback.close()

    def _builder(self) -> Any:
        """Return the builder of this library, whose commits call the callbacks."""
        table = self._with_callbacks(self.table.open_writing())
        if self._streams:
            return table.new_stream_write_builder(self.commit_user)
        builder = table.new_batch_write_builder(self.commit_user)
        if self.overwrite_partition is None:
            return builder
        return builder.overwrite(self.overwrite_partition or None)

    def _with_callbacks(self, table: paimon.Table) -> paimon.Table:
        return table.with_callbacks(*map(to_paimon_callback, self._callbacks))

    def _publish(
        self,
        messages: Sequence[CommitMessage | PendingChange],
        properties: Mapping[str, str] | None,
        identifier: int | None = None,
    ) -> None:
        prepared = [message for message in messages if not isinstance(message, PendingChange)]
        pending = [message for message in messages if isinstance(message, PendingChange)]
        if pending:
            if self.overwrite_partition is not None or identifier is not None:
                refuse("updates in overwrites and under commit identifiers", "commit them with a new batch builder")
            with commit_errors():
                run_pending_changes(self._with_callbacks(self.table.inner), pending, prepared, properties)
            return
        commit = self._builder().new_commit()
        with commit_errors():
            if identifier is None:
                commit.commit(to_paimon_messages(prepared), properties)
            else:
                commit.inner.commit(to_paimon_messages(prepared), properties, identifier=identifier)


class BatchTableCommit(TableCommit):
    """Commit once; made by `BatchWriteBuilder.new_commit`."""

    _committed = False

    def commit(
        self,
        commit_messages: Sequence[CommitMessage | PendingChange],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Publish the messages, with these properties in the snapshot."""
        self._check_first()
        self._publish(commit_messages, snapshot_properties)

    def truncate_table(self) -> None:
        """Delete all rows."""
        self._check_first()
        empty = self.table.inner.arrow_schema.empty_table()
        self.table.inner.overwrite(empty, {})

    def truncate_partitions(self, partitions: Sequence[Mapping[str, str]]) -> None:
        """Delete the rows of partitions."""
        self._check_first()
        if not partitions:
            raise ValueError("Partitions list cannot be empty.")
        self.table.inner.drop_partitions(*partitions)

    def _check_first(self) -> None:
        if self._committed:
            raise RuntimeError("BatchTableCommit only supports one-time committing.")
        self._committed = True


class StreamTableCommit(TableCommit):
    """Commit many times; made by `StreamWriteBuilder.new_commit`."""

    _streams = True

    def commit(
        self,
        commit_messages: Sequence[CommitMessage | PendingChange],
        commit_identifier: int,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Publish the messages."""
        if self._builder().new_commit().filter_committed([commit_identifier]):
            self._publish(commit_messages, snapshot_properties, commit_identifier)


def _is_writable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether pypaimon writes values of a type to a column: only the forms and encodings may differ."""
    given = plain_type(given)
    if given == wanted or to_plain_texts(given) == to_plain_texts(wanted):
        return True
    return all(pa.types.is_binary(one) or pa.types.is_fixed_size_binary(one) for one in (given, wanted))
