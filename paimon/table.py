"""Table: all methods of one table, in one place, and how the table at a location is opened.

Each method checks its arguments and delegates to an operation. A table is an immutable handle (engine and definition):
picklable where its engine is, and safe to share between threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa
from attrs import evolve, frozen

from paimon.display.listings import SnapshotList
from paimon.display.notebook import NotebookDisplay, read_or_explain, table_text
from paimon.display.other_names import TABLE_NAMES, explain_attribute
from paimon.domain.errors import CommitOverwritten, CommitUncertain
from paimon.domain.identifier import Identifier
from paimon.domain.options.setting import option_text
from paimon.domain.options.validate import check_options
from paimon.domain.predicate.expression import Predicate
from paimon.domain.report import Report
from paimon.domain.schema import changes as to
from paimon.domain.schema.change_columns import Column, to_column_path, to_position
from paimon.domain.schema.change_options import check_dynamic_branch, check_dynamic_changes
from paimon.domain.schema.rules.merge import check_dynamic_columns
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.domain.text_checks import check_mapping
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataType
from paimon.operations.metadata.snapshots import latest_snapshot, snapshots
from paimon.operations.open_context import open_context
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.ports.callbacks import CommitCallback
from paimon.ports.engine import Engine, with_callbacks
from paimon.results import find_reads
from paimon.scan import Scan, lookup_keys

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

    from paimon.builders.direct_writes import WriteResult
    from paimon.builders.merge_builder import MergeBuilder
    from paimon.builders.read_builder import ReadBuilder
    from paimon.builders.stream_read_builder import StreamReadBuilder
    from paimon.builders.write_builder import BatchWriteBuilder, StreamWriteBuilder
    from paimon.changes import Changes, Follow
    from paimon.domain.commit.request import CommitResult
    from paimon.maintain import Maintain
    from paimon.operations.analyze import Analyzed
    from paimon.operations.compact.compact import CompactResult
    from paimon.operations.rescale.rescale import RescaleResult
    from paimon.operations.write.resolve_commit import CommitOutcome
    from paimon.references import Age, Branches, Consumers, Tags
    from paimon.system_table import SystemTable


@frozen(eq=False, repr=False)
class Table(NotebookDisplay):
    """One table on one branch. Methods that change the schema return another handle; this one keeps its columns."""

    context: TableContext

    @property
    def engine(self) -> Engine:
        """The ports through which this handle reads and writes."""
        return self.context.engine

    @property
    def definition(self) -> TableDefinition:
        """The table at this handle's schema version, with its effective options."""
        return self.context.table

    @property
    def name(self) -> str:
        """``database.table``, or the table's directory name where it was opened by path."""
        return self.context.table.table_name

    @property
    def location(self) -> str:
        """The root directory or URL."""
        return self.context.table.location

    @property
    def table_schema(self) -> TableSchema:
        """The schema in Paimon's terms: fields with ids, keys, options."""
        return self.context.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return arrow_schema(self.context.schema.fields)

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: another name of `arrow_schema`."""
        return self.arrow_schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [field.name for field in self.context.schema.fields]

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Names of the primary-key columns; empty for an append table."""
        return self.context.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self.context.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """Effective options: those of the schema, overridden by the dynamic options of this handle."""
        return self.context.options.values

    def snapshots(self) -> list[Snapshot]:
        """Return all live snapshots, oldest first; a notebook and `print` show them as a table."""
        return SnapshotList(snapshots(self.context))

    def snapshot(self) -> Snapshot | None:
        """Return the latest snapshot; None for a table without one."""
        return latest_snapshot(self.context)

    def with_options(self, options: Mapping[str, object], *, allow_unknown_options: bool = False) -> Self:
        """Return the same table with these dynamic options on top, for the new handle alone.

        Parameters
        ----------
        options : mapping
            Values by option. None removes an option: the new handle has its default.
        allow_unknown_options : bool
            Accept options that this library does not know; they have no effect.

        Returns
        -------
        Table
            The new handle.
        """
        given = check_mapping(options, "options")
        text = {key: option_text(value) for key, value in given.items() if value is not None}
        check_options(text, allow_unknown_options, self.context.engine.file_formats)
        combined = self.context.options.without(given.keys() - text.keys()).with_values(text)
        check_table_type(combined, self.name)
        check_dynamic_columns(self.context.schema, text)
        check_dynamic_changes(self.context.schema, combined)
        check_dynamic_branch(text, self.definition.branch)
        return self._with_context(self.context.with_table(evolve(self.context.table, options=combined)))

    def with_engine(self, engine: Engine) -> Self:
        """Return the same table with other ports, for instance another observer or executor."""
        return self._with_context(self.context.with_engine(engine))

    def with_callbacks(self, *callbacks: CommitCallback | Mapping[str, CommitCallback]) -> Self:
        """Return the same table, whose commits also call these callables with a `CommitEvent`.

        A callback runs after the commit, in the process that commits, and does not travel with the table. What it
        raises becomes a RuntimeWarning. It may be called again for a commit that was made before.

        Parameters
        ----------
        *callbacks : callable or mapping of str to callable
            Names are needed where the option `commit.callbacks` lists them (as names of Java classes): such a table
            refuses commits unless each name is bound.
        """
        return self.with_engine(with_callbacks(self.context.engine, callbacks))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
    ) -> Scan:
        """Return a lazy read of the table's rows.

        Parameters
        ----------
        columns : sequence of str
            Columns wanted, in order; ``"a.b"`` is a nested field; all by default.
        where : str or Predicate
            SQL text (``"amount > 10 AND day = '2026-01-01'"``) or an expression (``paimon.col("amount") > 10``), also
            one of pyarrow or Polars, which keeps its meaning there. Combine expressions with ``&``, ``|`` and ``~``,
            each in parentheses; `and`, `or` and `not` raise.
        limit : int
            The largest number of rows.
        snapshot, tag, timestamp : int, str, or int, str or datetime
            Time travel, at most one: a snapshot id, a tag's name, or a time (epoch milliseconds, ISO text, datetime):
            the last snapshot at or before it.

        Returns
        -------
        Scan
            It reads when rows are requested, and uses the snapshot of its first plan.
        """
        return Scan(
            self.context, columns=columns, where=where, limit=limit, snapshot=snapshot, tag=tag, timestamp=timestamp
        )

    def lookup(
        self,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        keep_missing: bool = False,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
    ) -> pa.Table:
        """Return the rows with these whole primary keys, in the order of the keys; a key given twice gives two rows.

        Parameters
        ----------
        keys : object
            The keys as a table, frame or list of dicts with the key columns, as a list of tuples in the order of
            `primary_keys`, or as a list of values if the key has one column.
        columns : sequence of str
            Columns wanted, as in `scan`.
        keep_missing : bool
            Return a row of nulls for a key without a row. By default such keys are left out.
        snapshot, tag, timestamp : int, str, or int, str or datetime
            Time travel, as in `scan`; by default the latest snapshot.

        Returns
        -------
        pyarrow.Table
            The rows. Only files that can contain a key are read; `engine.cache` keeps what was learned about them.

        Raises
        ------
        InvalidRequest
            The table has no primary key, or a key lacks a column, is null, or has another type.
        """
        scan = self.scan(columns, snapshot=snapshot, tag=tag, timestamp=timestamp)
        return lookup_keys(scan, keys, keep_missing)

    def count(self, where: str | Predicate | None = None) -> int:
        """Return the number of rows of the latest snapshot, or of those where `where` is true; it is as in `scan`."""
        return self.scan(where=where).count()

    def head(self, rows: int = 10) -> pa.Table:
        """Read at most `rows` rows of the latest snapshot, in no defined order; see `Scan.head`."""
        return self.scan().head(rows)

    def to_arrow(self) -> pa.Table:
        """Return all rows of the latest snapshot as one Arrow table; `scan` selects rows, columns and snapshots."""
        return self.scan().to_arrow()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows of the latest snapshot as a pandas DataFrame; `options` as in `Scan.to_pandas`."""
        return self.scan().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows of the latest snapshot as a polars DataFrame; see `Scan.to_polars`."""
        return self.scan().to_polars()

    def to_dataset(self) -> ds.Dataset:
        """Return the rows of the latest snapshot for query engines, which push down filters; see `Scan.to_dataset`."""
        return self.scan().to_dataset()

    def lazy(self) -> pl.LazyFrame:
        """Return the rows of the latest snapshot as a lazy frame of Polars; see `Scan.lazy`."""
        return self.scan().lazy()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as an Arrow stream, for other libraries. It takes no filter: `to_dataset` does."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def history(self) -> pa.Table:
        """Return the live snapshots with the columns of ``$snapshots``, newest first; `snapshots` returns values."""
        return self.system_table("snapshots").to_arrow().sort_by([("snapshot_id", "descending")])

    def partitions(self) -> pa.Table:
        """Return a row for each partition with the columns of ``$partitions``, such as rows, bytes and files."""
        return self.system_table("partitions").to_arrow()

    def changes(
        self,
        after: int | None = None,
        through: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> Changes:
        """Return a lazy read of changes: `_snapshot_id`, `_row_kind` (``+I``, ``-U``, ``+U``, ``-D``), then columns.

        Parameters
        ----------
        after, through : int
            Snapshot ids, the first exclusive, the last inclusive. By default all that a stream from the earliest
            snapshot or long-lived changelog gets.
        columns : sequence of str
            Columns of the table wanted after the two first; all by default.
        where : str or Predicate
            Only changes of rows where this is true; it may name `_row_kind`.

        Returns
        -------
        Changes
            It reads when rows are requested.
        """
        from paimon.changes import Changes

        return Changes(self.context, after=after, through=through, columns=columns, where=where)

    def follow(
        self,
        from_snapshot: int | str | None = None,
        consumer_id: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        until: int | None = None,
        idle_timeout: Age | None = None,
        acknowledge: bool = True,
    ) -> Follow:
        """Return an iterator of changes as snapshots arrive: Arrow batches with the columns of `changes`.

        It waits for new snapshots, and looks for them each `continuous.discovery-interval` (10 s), until it is closed.

        Parameters
        ----------
        from_snapshot : int or str
            Begin with the changes of this snapshot, of the ``"earliest"``, or after the ``"latest"``. By default the
            rows of the latest state come first (as ``+I``), then changes; the option `scan.mode` can change this.
        consumer_id : str
            The name (by default the option `consumer-id`) under which progress is recorded. A later reader with this
            name continues there, and unread snapshots do not expire. Recorded progress has priority over
            `from_snapshot`, unless `consumer.ignore-progress` is set.
        columns, where, until : sequence of str, str or Predicate, int
            As in `changes`; end after the snapshot `until`.
        idle_timeout : timedelta, int, str
            End after this time (milliseconds, or text) without a new snapshot; 0: after all existing snapshots.
        acknowledge : bool
            Record progress when the batch after a snapshot's last one is requested. False: only `Follow.acknowledge`
            records it.

        Returns
        -------
        Follow
            An iterator of record batches, each of one snapshot.

        Raises
        ------
        NotFound
            The next snapshot has expired, or (while iterating) history was rewritten; the hint says where to continue.
        InvalidRequest
            A start that is not possible.
        """
        from paimon.changes import Follow

        return Follow(
            self.context,
            from_snapshot=from_snapshot,
            consumer_id=consumer_id,
            columns=columns,
            where=where,
            until=until,
            idle_timeout=idle_timeout,
            acknowledge=acknowledge,
        )

    def new_read_builder(self) -> ReadBuilder:
        """Return the program API for reading: plan in this process, read in others."""
        from paimon.builders.read_builder import ReadBuilder

        return ReadBuilder(self.context)

    def new_stream_read_builder(self) -> StreamReadBuilder:
        """Return the program API for streams: plan new snapshots in this process, read their changes in others."""
        from paimon.builders.stream_read_builder import StreamReadBuilder

        return StreamReadBuilder(self.context)

    def system_table(self, name: str) -> SystemTable:
        """Return a system table, such as ``"files"`` or ``"snapshots"``."""
        from paimon.system_table import open_system_table  # loaded with the first system table

        return open_system_table(self.context, name)

    def write(  # noqa: PLR0913  (a public signature)
        self,
        data: Any,
        *,
        kind_column: str | None = None,
        commit_user: str | None = None,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        merge_schema: bool = False,
        missing_columns: str | None = None,
    ) -> WriteResult:
        """Write rows in one commit: appended, or upserted by primary key.

        Afterwards the buckets that were written are compacted, as far as the table's options ask for it (a second
        snapshot, under the same identifier), unless the table is `write-only`.

        Parameters
        ----------
        data : object
            An Arrow table, batch, reader or dataset, a pandas or polars frame (lazy ones stream), a DuckDB relation, a
            list of dicts, a dict of columns, a `pathlib.Path`, `read_files`, any Arrow stream, or an iterator of those.
        kind_column : str
            A column of `data` that holds row kinds (``"+I"``, ``"-U"``, ``"+U"``, ``"-D"``) and is not stored.
        commit_user, identifier : str, int
            With both given the commit happens once: a second call with the same pair changes nothing. Without a user,
            the snapshot may also have rows that other threads of the process append at the same time.
        properties, watermark : mapping, int
            Text to store in the snapshot; event time in epoch milliseconds, which never goes back in a table.
        merge_schema : bool
            Add the columns that only `data` have (streams: those of their first batch). They are added once all rows
            are written to files, so a refused write adds none. This handle keeps its columns.
        missing_columns : str
            ``"error"`` refuses rows for a `deduplicate` table if none of them has a nullable column of this handle that
            has no default: an upsert would replace its stored values by null. ``"null"`` allows it. Deletes need the
            key alone. By default the option `write.missing-columns` decides, which is ``"error"``.

        Returns
        -------
        WriteResult
            The snapshots of the commit, and the rows and files that it added.

        Raises
        ------
        InvalidRequest
            The data do not fit the table; nothing was committed.
        CommitConflict, CommitUncertain, CommitOverwritten
            See there, and `resolve`.
        CommitNotVisible
            The rows are committed, but reads do not show them yet: call `compact`, do not write them again.
        """
        from paimon.builders.direct_writes import commit_messages, write_and_commit  # loaded with the first write

        user = commit_user_of(self.context, commit_user, identifier)
        commit = partial(commit_messages, properties=properties, shares_snapshot=commit_user is None)
        commit = partial(commit, identifier=identifier, watermark=watermark)
        return write_and_commit(self.context, data, kind_column, user, merge_schema, commit, missing_columns)

    def overwrite(
        self,
        data: Any,
        partition: Mapping[str, object] | None = None,
        *,
        commit_user: str | None = None,
        properties: Mapping[str, str] | None = None,
        missing_columns: str | None = None,
    ) -> WriteResult:
        """Replace rows in one commit.

        Parameters
        ----------
        data : object
            Rows as in `write`. A scan or query of this table is read again after other users changed it.
        partition : mapping
            The partitions to replace (``{"day": "2026-01-01"}``; ``{}`` the whole table). By default those that `data`
            contains, or the whole table where it has no partitions or `dynamic-partition-overwrite` is false.
        commit_user, properties, missing_columns : str, mapping, str
            As in `write`.

        Returns
        -------
        WriteResult
            The snapshots of the commit, and the rows and files that it added.
        """
        from paimon.builders.direct_writes import overwrite_and_commit

        user = commit_user_of(self.context, commit_user)
        return overwrite_and_commit(self.context, data, partition, user, properties, missing_columns)

    def delete(self, where: str | Predicate, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Delete the rows where `where` is true, in one commit; `rows` of the result counts them.

        Append tables mark the rows in deletion vectors (`deletion-vectors.enabled`) or write their files again;
        primary-key tables get a delete for each row. A CommitConflict means that the same files changed; try again.
        """
        from paimon.builders.direct_writes import delete_where

        return delete_where(self.context, where, properties)

    def update(
        self, set: Mapping[str, Any], where: str | Predicate, *, properties: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Set columns of the rows where `where` is true, in one commit.

        Parameters
        ----------
        set : mapping
            By column: SQL text over the row before the update (``"amount * 2"``, ``"'a text'"``, ``"upper(name)"``),
            or a Python value that is not text. Columns of the primary key and of the partition cannot be set.
        where : str or Predicate
            The rows to change, as in `scan`.
        properties : mapping
            Text to store in the snapshot.

        Returns
        -------
        WriteResult
            Its `rows` counts the rows that were changed.

        Raises
        ------
        InvalidRequest, CommitConflict
            Nothing was updated: a value does not fit its column; the same files changed since.
        """
        from paimon.builders.direct_writes import update_where

        return update_where(self.context, set, where, properties)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Predicate,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
    ) -> MergeBuilder:
        """Merge rows of a source into this table: update, delete and insert in one commit.

        Add clauses to the result, then call `execute`.

        Parameters
        ----------
        source : object
            Rows in any form that `write` takes. Rows above half of the memory budget are spilled to local disk. Rows of
            this table itself are read again after other users changed it: pass its scan, a query of `Catalog.sql`, or a
            function that returns rows. A reader of such rows cannot be read again, so it is refused then.
        on : str, sequence of str or Predicate
            When a row of the source matches a row of this table: SQL text (``"target.id = source.id"``), or the names
            of columns that both sides have.
        source_alias, target_alias : str
            The names of the sides in SQL text. A column that only one side has needs no such name.

        Returns
        -------
        MergeBuilder
            A merge without clauses.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://table-merge")
        >>> catalog.create_database("shop")
        >>> stock = catalog.create_table("shop.stock", "item STRING NOT NULL, pieces INT", primary_keys=["item"])
        >>> stock.write([{"item": "pen", "pieces": 5}]).rows
        1
        >>> delivered = [{"item": "pen", "pieces": 3}, {"item": "ink", "pieces": 8}]
        >>> merge = stock.merge(delivered, on="item")
        >>> merge = merge.when_matched_update({"pieces": "target.pieces + source.pieces"})
        >>> result = merge.when_not_matched_insert_all().execute()
        >>> result.updated, result.inserted, result.deleted
        (1, 1, 0)
        >>> sorted((row["item"], row["pieces"]) for row in stock.scan().to_arrow().to_pylist())
        [('ink', 8), ('pen', 8)]
        """
        from paimon.builders.merge_builder import MergeBuilder  # loaded when rows are merged
        from paimon.operations.row_level.merge import MergeRequest

        return MergeBuilder(self.context, source, MergeRequest(on, target_alias, source_alias))

    def drop_partitions(self, *partitions: Mapping[str, object], missing_ok: bool = True) -> tuple[int, ...]:
        """Drop partitions such as ``{"day": "2026-01-01"}`` (some columns suffice) in one commit; return its ids.

        A mapping that matches no partition is a NotFound if `missing_ok` is False.
        """
        from paimon.operations.expire.expire_partitions import drop_partitions

        return drop_partitions(self.context, self.context.engine.ids.uuid(), partitions, missing_ok=missing_ok)

    def resolve(self, error: CommitUncertain | CommitOverwritten) -> CommitResult:
        """Find out whether the commit of an error is committed, and commit it again if it is not.

        Raises
        ------
        CommitUncertain
            The status is still unknown, and nothing was changed. Call `resolve` again.
        NotFound
            It is not committed, and its files are deleted. Write the rows again.
        CommitConflict, InvalidRequest
            It is not committed, and later commits contradict it.
        """
        from paimon.operations.write.resolve_commit import resolve_commit

        return resolve_commit(self.context, error)

    def outcome(
        self,
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        snapshot: int | None = None,
        identity: str | None = None,
    ) -> CommitOutcome:
        """Return the status of a commit; nothing is changed.

        Parameters
        ----------
        commit_user, identifier : str, int
            The user and the identifier of the commit.
        snapshot, identity : int, str
            The id and the UUID of the snapshot that it was to become; `CommitUncertain` has both.

        Returns
        -------
        CommitOutcome
            Whether it is committed, with its snapshots.
        """
        from paimon.operations.write.resolve_commit import find_outcome

        return find_outcome(self.context, commit_user, identifier, snapshot, identity)

    def new_batch_write_builder(self, commit_user: str | None = None) -> BatchWriteBuilder:
        """Return the program API for batch writing: write in other processes, commit in this one."""
        from paimon.builders.write_builder import BatchWriteBuilder

        return BatchWriteBuilder(self.context, commit_user_of(self.context, commit_user))

    def new_stream_write_builder(self, commit_user: str | None = None) -> StreamWriteBuilder:
        """Return the program API for streaming writes: many commits of one user with ascending identifiers."""
        from paimon.builders.write_builder import StreamWriteBuilder

        return StreamWriteBuilder(self.context, commit_user_of(self.context, commit_user))

    def alter(
        self, *changes: to.SchemaChange | str, allow_unknown_options: bool = False, allow_lossy: bool = False
    ) -> Table:
        """Change columns, options or the comment, all in one new version of the schema.

        Parameters
        ----------
        *changes : str or SchemaChange
            SQL text, one clause of ``ALTER TABLE`` each (``"ADD COLUMN x INT AFTER id"``, ``"SET ('bucket' = '4')"``),
            or changes such as ``paimon.AddColumn("x", "INT")``. They apply in order.
        allow_unknown_options : bool
            Accept options that this library does not know.
        allow_lossy : bool
            Change types even if stored values do not fit, or are not proven to fit. Such values are read as Java casts
            them, or end the read.

        Returns
        -------
        Table
            The table at its new schema; dynamic options stay on top.

        Raises
        ------
        InvalidRequest, Unsupported
            A text that cannot be read, or a change that would break the table or its stored rows. Nothing was changed.
        NotFound, AlreadyExists
            A column that does not exist, or exists already. Nothing was changed.

        Warns
        -----
        PaimonWarning
            Keys become unique within a partition only.
        """
        from paimon.operations.evolve import change_schema

        return self._with_context(change_schema(self.context, changes, allow_unknown_options, allow_lossy))

    def add_column(
        self,
        name: Column,
        type: DataType | str,
        *,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Table:
        """Add a column, which is null in the rows that are stored.

        Parameters
        ----------
        name : str or sequence of str
            Its name; ``"place.zip"`` adds a field to the ROW column `place`.
        type : DataType or str
            A Paimon type such as ``"DECIMAL(10, 2)"``; it must be nullable.
        comment : str
            What the column contains.
        first, after, before : bool, str, str
            Its position, at most one: before all columns, or next to another column; by default at the end.

        Returns
        -------
        Table
            The table at its new schema.
        """
        return self.alter(to.AddColumn(self._path(name), type, comment, to_position(first, after, before)))

    def rename_column(self, name: Column, new_name: str) -> Table:
        """Give a column another name; keys and options follow. Stored rows do not change."""
        return self.alter(to.RenameColumn(self._path(name), new_name))

    def drop_column(self, name: Column) -> Table:
        """Remove a column; its stored values are never read again, also not by a new column of that name."""
        return self.alter(to.DropColumn(self._path(name)))

    def alter_column_type(self, name: Column, type: DataType | str, *, allow_lossy: bool = False) -> Table:
        """Give a column another type, into which stored values are cast when they are read.

        Parameters
        ----------
        name : str or sequence of str
            The column, as in `add_column`.
        type : DataType or str
            The new type. Whether the column may be null does not change, unless `type` contains ``NOT NULL``.
        allow_lossy : bool
            See `alter`.

        Returns
        -------
        Table
            The table at its new schema.

        Raises
        ------
        InvalidRequest
            The statistics of live files do not prove that all stored values fit. Nothing was changed.
        """
        change = to.SetColumnType(self._path(name), type, allow_lossy=allow_lossy)
        return self.alter(evolve(change, keep_nullability=change.type.nullable))

    def alter_column_nullability(self, name: Column, nullable: bool) -> Table:
        """Allow nulls in a column, or forbid them (see `alter-column-null-to-not-null.disabled`)."""
        return self.alter(to.SetColumnNullability(self._path(name), nullable))

    def alter_column_comment(self, name: Column, comment: str | None) -> Table:
        """Set a column's comment; None removes it."""
        return self.alter(to.SetColumnComment(self._path(name), comment))

    def alter_column_default(self, name: Column, default: object) -> Table:
        """Set what is written where a row has no value; None removes it. Stored rows do not change."""
        return self.alter(to.SetColumnDefault(self._path(name), None if default is None else option_text(default)))

    def move_column(
        self, name: Column, *, first: bool = False, after: str | None = None, before: str | None = None
    ) -> Table:
        """Move a column.

        Parameters
        ----------
        name, first, after, before : str, bool, str, str
            The column, and its new position as in `add_column`.

        Returns
        -------
        Table
            The table at its new schema.
        """
        position = to_position(first, after, before) or to.Position.last()
        return self.alter(to.MoveColumn(self._path(name), position))

    def set_options(self, options: Mapping[str, object], *, allow_unknown_options: bool = False) -> Table:
        """Store table options, as text; `with_options` sets them for one handle alone."""
        changes = [to.SetOption(key, option_text(value)) for key, value in options.items()]
        return self.alter(*changes, allow_unknown_options=allow_unknown_options)

    def reset_options(self, *keys: str) -> Table:
        """Set table options back to their defaults."""
        return self.alter(*(to.RemoveOption(key) for key in keys))

    def set_comment(self, comment: str | None) -> Table:
        """Set the comment of the table; None removes it."""
        return self.alter(to.SetComment(comment))

    def compact(
        self,
        full: bool = False,
        where: str | Predicate | None = None,
        *,
        order_strategy: str = "none",
        order_by: Sequence[str] | str | None = None,
        dry_run: bool = False,
    ) -> CompactResult:
        """Merge files that hold old versions of rows, and put small files together; no row changes.

        Parameters
        ----------
        full : bool
            Merge everything into one sorted run a bucket (append tables: all small files), whatever the options ask.
        where : str or Predicate
            Over partition columns: only these partitions.
        order_strategy : str
            ``"order"``, ``"zorder"`` or ``"hilbert"``: rewrite all files of an append table, with the rows of each
            bucket sorted by `order_by`, or along a curve through these columns. With a primary key and dynamic buckets,
            rows go to buckets in this order, and the snapshot is an OVERWRITE.
        order_by : sequence of str or str, optional
            The columns to sort by; a text separates them by commas.
        dry_run : bool
            Write nothing, and return what would be compacted.

        Returns
        -------
        CompactResult
            The snapshot of the compaction, if there was anything to do, and counts of buckets, files and rows.

        Raises
        ------
        Unsupported
            The table needs a kind of compaction that this library lacks; the message names it.
        CommitConflict
            Another compaction, or an overwrite, replaced the same files; compact again.
        """
        from paimon.domain.maintenance.sort_order import bind_sort_order
        from paimon.maintain import compact_where

        order = bind_sort_order(self.context.table, order_strategy, order_by)
        return compact_where(self.context, full, where, dry_run, order)

    def rescale(self, buckets: int, where: str | Predicate | None = None, *, dry_run: bool = False) -> RescaleResult:
        """Rewrite partitions to another number of buckets, in one commit; no row changes.

        It sets the option `bucket`. This handle keeps its own: open the table again before you write.

        Parameters
        ----------
        buckets : int
            The new number of buckets of each partition.
        where : str or Predicate
            Over partition columns: only these partitions are rewritten. The others keep their number: they can be
            read, but writes to them are refused until they are rescaled, too.
        dry_run : bool
            Write nothing, and return what would be rewritten.

        Returns
        -------
        RescaleResult
            The snapshot, and how many partitions, files and rows were rewritten.

        Raises
        ------
        InvalidRequest
            The table has no fixed number of buckets, or the number is out of range.
        CommitConflict
            Other writers changed the same partitions again and again; nothing was changed.
        """
        from paimon.maintain import rescale_where

        return rescale_where(self.context, buckets, where, dry_run)

    def analyze(self, columns: Sequence[str] | None = None) -> Analyzed:
        """Compute statistics of the newest snapshot, and store them with a new snapshot; no row changes.

        Planners of queries read them. They stay until the columns change.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to summarize; by default all but nested values, VARIANT and BLOB. With ``[]`` only rows and
            bytes are counted.

        Returns
        -------
        Analyzed
            The snapshot, what was stored, and for which columns the number of distinct values is an estimate: with
            more values than fit into a part of the memory budget, its standard error is 0.8 %.

        Raises
        ------
        InvalidRequest
            The table has no snapshot, or a column does not exist.
        Unsupported
            A column has a type that has no statistics.
        CommitConflict
            The schema changed meanwhile; analyze again.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://table-analyze")
        >>> catalog.create_database("shop")
        >>> orders = catalog.create_table("shop.orders", "id BIGINT, city STRING")
        >>> snapshot_ids = orders.write([{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Oslo"}]).snapshot_ids
        >>> orders.analyze().statistics.columns["city"].distinct_count
        1
        """
        from paimon.operations.analyze import analyze

        return analyze(self.context, columns, commit_user_of(self.context, None))

    def call(self, procedure: str, /, *arguments: object, **named: object) -> pa.Table:
        """Run a procedure on this table, as ``CALL sys.…`` does; ``CALL sys.help()`` lists the procedures.

        Parameters
        ----------
        procedure : str
            Its name, such as ``"sys.compact"``.
        *arguments : object
            Values in the order of the parameters after the table.
        **named : object
            Values by the name of the parameter.

        Returns
        -------
        pyarrow.Table
            What the procedure did.

        Raises
        ------
        NotFound
            There is no such procedure.
        InvalidRequest
            An argument is not valid.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://table-call")
        >>> catalog.create_database("shop")
        >>> orders = catalog.create_table("shop.orders", "id BIGINT")
        >>> snapshot_ids = orders.write([{"id": 1}]).snapshot_ids
        >>> orders.call("sys.create_tag", "first").to_pylist()
        [{'tag': 'first', 'snapshot': 1}]
        """
        from paimon.verbs.verb_table import call_verb

        return call_verb(self, procedure, arguments, named)

    @property
    def tags(self) -> Tags:
        """The tags by name, with methods that create, replace, rename and delete them."""
        from paimon.references import Tags  # loaded with the first reference

        return Tags(self.context)

    @property
    def branches(self) -> Branches:
        """The branches other than main, with methods that create, delete and fast-forward them."""
        from paimon.references import Branches

        return Branches(self.context)

    @property
    def consumers(self) -> Consumers:
        """The consumers by name, with methods that reset and delete them."""
        from paimon.references import Consumers

        return Consumers(self.context)

    @property
    def maintain(self) -> Maintain:
        """Methods for expiry, orphan files, checks and rollback."""
        from paimon.maintain import Maintain

        return Maintain(self.context)

    if not TYPE_CHECKING:  # a type checker must not accept these names

        def __getattr__(self, name: str) -> NoReturn:
            raise explain_attribute(self, name, TABLE_NAMES)

        def __len__(self) -> NoReturn:
            raise TypeError(f"Table {self.name!r} has no len(). Write table.count(), which reads it.")

        def __getitem__(self, key: object) -> NoReturn:
            # Iteration calls it too. A method `__iter__` would make every table an `Iterable`.
            message = f"Table {self.name!r} is not iterable, and has no items."
            raise TypeError(f"{message} Write 'for batch in table.scan()', or table.scan(columns=['…']).")

        def __bool__(self) -> bool:
            return True  # without it, `if table` would call len

    def _with_context(self, context: TableContext) -> Self:
        return evolve(self, context=context)

    def __repr__(self) -> str:
        return table_text(self.context.table)

    def _report(self) -> Report:
        from paimon.display.cards import report_table

        return report_table(self.context.table, read_or_explain(self.snapshot))

    def _path(self, name: Column) -> tuple[str, ...]:
        return to_column_path(self.context.schema, name)


find_reads.register(Table, lambda table: find_reads(table.scan()))


def open_at(
    engine: Engine,
    location: str,
    identifier: Identifier,
    options: Mapping[str, str],
    allowed_roots: tuple[str, ...] = (),
) -> Table | SystemTable:
    """Open the table, or its system table, at a location; see `open_context`."""
    context = open_context(engine, location, identifier, options, allowed_roots)
    if identifier.system_table is not None:
        from paimon.system_table import open_system_table

        return open_system_table(context, identifier.system_table)
    return Table(context)
