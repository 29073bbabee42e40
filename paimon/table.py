"""Table: the verbs of one table.

Law: a table is an immutable handle (engine and definition): picklable, safe between threads; every verb delegates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.builders import BatchWriteBuilder, ReadBuilder, StreamWriteBuilder, TableCommit
from paimon.committing import Committing
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    InvalidRequest,
    NotFound,
    PaimonError,
    Unsupported,
    did_you_mean,
)
from paimon.domain.identifier import Identifier
from paimon.domain.options.setting import option_text
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options
from paimon.domain.paths import TablePaths, segment
from paimon.domain.predicate.expression import Predicate
from paimon.domain.schema.rules.merge import check_dynamic_columns
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon.domain.texts import check_mapping
from paimon.domain.types.arrow import arrow_schema
from paimon.follow import Followed
from paimon.notebook import NotebookDisplay, read_or_explain, table_text
from paimon.operations.commit.abort import is_still_needed
from paimon.operations.commit.after.callbacks import check_callbacks
from paimon.operations.evolve import at_newest_schema, plan_merged_schema, publish_schema
from paimon.operations.maintain.compact import CompactResult, compact
from paimon.operations.maintain.retention.holders import branch_names
from paimon.operations.read.schemas import latest_schema
from paimon.operations.read.snapshots import latest_snapshot, snapshots
from paimon.operations.write.source import can_be_read_again, tables_of
from paimon.ports.engine import Engine
from paimon.scan import Scan, predicate_of
from paimon.schema_evolution import SchemaEvolution
from paimon.system_table import SystemTable, open_system_table
from paimon.upkeep.maintain import Kept
from paimon.upkeep.retention import keep_up

if TYPE_CHECKING:
    from paimon.operations.rows.change import RowChange

_SCHEMA_RACES = 20
"""How often a write with new columns begins again because the schema changed meanwhile."""


@frozen
class WriteResult:
    """What a write did: ids of the snapshots it made (none for an empty write), rows and files added.

    A writer compacts what it has written; where others did so meanwhile, `lost_compaction` tells of it. Nothing is
    missing then: the rows stand and can be read, and a later write or `Table.compact` compacts them.
    """

    snapshot_ids: tuple[int, ...]
    rows: int
    files: int
    lost_compaction: PaimonError | None = None


@frozen(eq=False, repr=False)
class Table(NotebookDisplay, Committing, SchemaEvolution, Kept, Followed):
    """One table, seen from one branch with its effective options."""

    engine: Engine
    definition: TableDefinition

    @property
    def name(self) -> str:
        """``database.table``, or the table's directory name where it was opened by path."""
        return self.definition.identifier

    @property
    def location(self) -> str:
        """The root directory or URL."""
        return self.definition.location

    @property
    def table_schema(self) -> TableSchema:
        """The schema in Paimon's terms: fields with ids, keys, options."""
        return self.definition.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return arrow_schema(self.definition.schema.fields)

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: another name of `arrow_schema`."""
        return self.arrow_schema

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Names of the primary-key columns; empty for an append table."""
        return self.definition.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self.definition.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """Effective options: those of the schema, overridden by this handle's."""
        return self.definition.options.values

    def with_options(self, options: Mapping[str, object]) -> Table:
        """The same table with these dynamic options on top, for this handle alone."""
        text = {key: option_text(value) for key, value in check_mapping(options, "options").items()}
        check_options(text)
        combined = self.definition.options.with_values(text)
        check_table_type(combined, self.name)
        check_dynamic_columns(self.definition.schema, text)
        return evolve(self, definition=evolve(self.definition, options=combined))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | datetime | None = None,
    ) -> Scan:
        """A lazy read.

        Parameters
        ----------
        columns : sequence of str
            Columns wanted, in order; ``"a.b"`` is a nested field; all by default.
        where : str or Predicate
            SQL text (``"amount > 10 AND day = '2026-01-01'"``) or an expression (``paimon.col("amount") > 10``).
            Combine expressions with ``&``, ``|`` and ``~``, each in parentheses; `and`, `or` and `not` raise.
        limit : int
            At most so many rows.
        snapshot, tag, timestamp
            Time travel, at most one: a snapshot id, a tag's name, or a time (epoch milliseconds, ISO text, datetime):
            the last snapshot at or before it.
        """
        return Scan(
            self.engine,
            self.definition,
            columns=columns,
            where=where,
            limit=limit,
            snapshot=snapshot,
            tag=tag,
            timestamp=timestamp,
        )

    def write(
        self,
        data: Any,
        *,
        kind_column: str | None = None,
        commit_user: str | None = None,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        merge_schema: bool = False,
    ) -> WriteResult:
        """Write rows in one commit: appended, or upserted by primary key.

        Afterwards the buckets that were written are compacted, as far as the table's options ask for it (a second
        snapshot, under the same identifier), unless the table is `write-only`.

        Parameters
        ----------
        data
            An Arrow table, batch or reader, a pandas or polars frame, a list of dicts, a dict of columns, anything with
            ``__arrow_c_stream__``, or an iterator of those.
        kind_column : str
            A column of `data` that holds row kinds (``"+I"``, ``"-U"``, ``"+U"``, ``"-D"``) and is not stored.
        commit_user, identifier
            With both given the commit happens once: a second call with the same pair changes nothing.
        properties : mapping
            Text kept in the snapshot.
        watermark : int
            Event time in epoch milliseconds; the snapshot's never goes back.
        merge_schema : bool
            Add the columns that only `data` have (streams: those of their first batch). They are added once all rows
            are written to files, so a write that is refused adds none. This handle keeps its columns: open the table
            again to read the new ones.

        Raises
        ------
        InvalidRequest
            The data do not fit the table; nothing was committed.
        CommitConflict, CommitUncertain, CommitOverwritten
            See there, and `resolve`.
        CommitNotVisible
            The rows are committed, but reads do not show them yet: call `compact`, do not write them again.
        """
        user = _user_of(self, commit_user)
        if merge_schema:
            table, messages = self._write_merged(data, kind_column, user)
        else:
            table, messages = self, self._write_rows(data, kind_column, user)
        commit = table.new_batch_write_builder(user).new_commit()
        return commit_messages(commit, messages, properties, identifier, watermark)

    def _write_rows(self, data: Any, kind_column: str | None, commit_user: str) -> list[CommitMessage]:
        with self.new_batch_write_builder(commit_user).new_write() as writer:
            writer.write(data, kind_column)
            return writer.prepare_commit()

    def _write_merged(
        self, data: Any, kind_column: str | None, commit_user: str
    ) -> tuple[Table, list[CommitMessage]]:
        """Write rows to files of a schema with their new columns, and publish it once no row can be refused."""
        for _ in range(_SCHEMA_RACES):
            table = evolve(self, definition=at_newest_schema(self.engine, self.definition))
            stream = tables_of(data, table.definition.schema.fields, (kind_column,) if kind_column else ())
            first = next(stream, None)
            if first is None:
                return table, []
            named = pa.schema([f for f in first.schema if f.name != kind_column])
            planned = plan_merged_schema(self.engine, table.definition, named)
            rows = chain([first], stream)
            if planned is table.definition:
                return table, table._write_rows(rows, kind_column, commit_user)
            merged = evolve(table, definition=planned)
            with merged.new_batch_write_builder(commit_user).new_write() as writer:
                writer.write(rows, kind_column)
                writer.flush()
                check_callbacks(self.engine, planned)
                if publish_schema(self.engine, planned):
                    return merged, writer.prepare_commit()  # compaction reads the schema that was just published
            if not can_be_read_again(data):
                break
        raise CommitConflict(
            f"The schema of {self.name} changed while rows with new columns were written.",
            hint="Nothing was written. Write the rows again.",
        )

    def overwrite(
        self,
        data: Any,
        partition: Mapping[str, object] | None = None,
        *,
        commit_user: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteResult:
        """Replace rows in one commit.

        `partition` names the partitions that are replaced (``{"day": "2026-01-01"}``; ``{}`` the whole table). Without
        it, the partitions that `data` holds are replaced, or the whole table where it has no partitions
        (`dynamic-partition-overwrite` false: all partitions).
        """
        builder = self.new_batch_write_builder(commit_user).overwrite(partition)
        with builder.new_write() as writer:
            writer.write(data)
            messages = writer.prepare_commit()
        return commit_messages(builder.new_commit(), messages, properties)

    def delete(self, where: str | Predicate, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Delete the rows where `where` is true, in one commit; `rows` of the result counts them.

        Append tables mark the rows in deletion vectors (`deletion-vectors.enabled`) or write their files anew;
        primary-key tables get a delete for each row. CommitConflict: the same files changed meanwhile; delete again.
        """
        from paimon.operations.rows.change import delete_rows  # loaded by those who change rows

        user = _fresh_user(self)
        return _result(self, delete_rows(self.engine, self.definition, predicate_of(where), user, properties))

    def update(
        self, set: Mapping[str, Any], where: str | Predicate, *, properties: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Set columns of the rows where `where` is true, in one commit; `rows` of the result counts them.

        Parameters
        ----------
        set : mapping
            By column: SQL text over the row as it was (``"amount * 2"``, ``"'a text'"``, ``"DATE '2026-01-01'"``), or a
            Python value that is no text. Columns of the primary key and of the partition cannot be set.

        Raises
        ------
        InvalidRequest, CommitConflict
            Nothing was updated: a value does not fit its column; the same files changed meanwhile.
        """
        from paimon.operations.rows.change import expression_of, update_rows

        values = {name: expression_of(value) for name, value in check_mapping(set, "set").items()}
        user = _fresh_user(self)
        return _result(self, update_rows(self.engine, self.definition, values, predicate_of(where), user, properties))

    def compact(self, full: bool = False, where: str | Predicate | None = None) -> CompactResult:
        """Merge files that hold old versions of rows, and put small files together; no row changes.

        Parameters
        ----------
        full : bool
            Everything into one sorted run a bucket (append tables: all small files), rather than what the table's
            options ask for now.
        where : str or Predicate
            Over partition columns: these partitions alone.

        Raises
        ------
        Unsupported
            The table asks for more than compaction does so far; the message names what.
        CommitConflict
            Another compaction, or an overwrite, replaced the same files meanwhile; compact again.
        """
        predicate = None if where is None else predicate_of(where)
        done = compact(self.engine, self.definition, _fresh_user(self), full, predicate)
        writing = self.with_options({"write-only": False})  # upkeep of write-only tables is left to whoever compacts
        keep_up(self.engine, writing.definition, done.snapshot_ids)
        return done

    def snapshots(self) -> list[Snapshot]:
        """All live snapshots, oldest first."""
        return list(snapshots(self.engine, self.definition.paths))

    def snapshot(self) -> Snapshot | None:
        """The latest snapshot; None for a table that nothing was written to."""
        return latest_snapshot(self.engine, self.definition.paths)

    def _with_definition(self, definition: TableDefinition) -> Table:
        return evolve(self, definition=definition)

    def system_table(self, name: str) -> SystemTable:
        """A system table, such as ``"files"`` or ``"snapshots"``."""
        return open_system_table(self.engine, self.definition, name)

    def new_read_builder(self) -> ReadBuilder:
        """The program API for reading: plan here, read there."""
        return ReadBuilder(self.engine, self.definition)

    def new_batch_write_builder(self, commit_user: str | None = None) -> BatchWriteBuilder:
        """The program API for batch writing: write there, commit here."""
        return BatchWriteBuilder(self.engine, self.definition, _user_of(self, commit_user))

    def new_stream_write_builder(self, commit_user: str | None = None) -> StreamWriteBuilder:
        """The program API for streaming writes: many commits of one user with rising identifiers."""
        return StreamWriteBuilder(self.engine, self.definition, _user_of(self, commit_user))

    def __repr__(self) -> str:
        return table_text(self.definition)

    def _repr_html_(self) -> str:
        from paimon.cards import table_card

        return table_card(self.definition, read_or_explain(self.snapshot))


def open_at(
    engine: Engine,
    location: str,
    identifier: Identifier,
    options: Mapping[str, str],
    allowed_roots: tuple[str, ...] = (),
) -> Table | SystemTable:
    """The table (or its system table) at a location; NotFound where there is none."""
    check_options(options)
    branch = segment(options.get("branch", identifier.branch), "branch name")
    paths = TablePaths(location, branch)
    schema = latest_schema(engine, paths)
    if schema is None:
        if branch != "main" and latest_schema(engine, TablePaths(location)) is not None:
            known = did_you_mean(branch, branch_names(engine, TablePaths(location)))
            raise NotFound("branch", branch, hint=known or f"table {location!r} has no branch but main")
        raise NotFound("table", location, hint="a table's directory holds schema/schema-0")
    combined = TableOptions.of(schema.options).with_values(options)
    check_table_type(combined, identifier.full_name)
    check_dynamic_columns(schema, options)
    definition = TableDefinition(
        identifier=identifier.full_name,
        paths=paths,
        schema=schema,
        options=combined,
        allowed_roots=allowed_roots,
    )
    if identifier.system_table is not None:
        return open_system_table(engine, definition, identifier.system_table)
    return Table(engine, definition)


def commit_messages(
    commit: TableCommit,
    messages: Sequence[CommitMessage],
    properties: Mapping[str, str] | None = None,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    watermark: int | None = None,
) -> WriteResult:
    """Commit what writers prepared, here or in other processes, as `Table.write` does.

    Where the commit is refused for certain, or took place before, the files of the messages are removed.
    """
    try:
        done = commit.commit(messages, properties, identifier=identifier, watermark=watermark)
    except (InvalidRequest, CommitConflict, CommitOverwritten, Unsupported) as error:
        if not is_still_needed(messages, error):
            commit.abort(messages, identifier)
        raise
    if done.already_committed:
        commit.abort(messages)  # asked as a batch: the files that the earlier commit holds stay, these are others
    return WriteResult(done.snapshot_ids, done.added_rows, done.added_files, done.lost_compaction)


def _result(table: Table, change: RowChange) -> WriteResult:
    keep_up(table.engine, table.definition, change.commit.snapshot_ids)
    done = change.commit
    return WriteResult(done.snapshot_ids, change.rows, done.added_files, done.lost_compaction)


def _user_of(table: Table, commit_user: str | None) -> str:
    if commit_user is None:
        return _fresh_user(table)
    if not commit_user:
        raise InvalidRequest("commit_user is empty", subject="commit_user", hint="give a name, or leave it out")
    return commit_user


def _fresh_user(table: Table) -> str:
    prefix = table.definition.options.get("commit.user-prefix")
    user = table.engine.ids.uuid()
    return f"{prefix}_{user}" if prefix else user
