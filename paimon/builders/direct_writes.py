"""Write rows and commit them, as `Table.write` does; also for writers in other processes.

Invariant: a write that is refused leaves neither rows nor columns in the table.
"""

# A write has two halves: writers make files and messages, then one commit names them in a snapshot. Other processes may
# commit in between. What was read before the commit decides whether the files can still be used:
#
#     outdated                                                 conflict            what runs again
#     the hash index that assigned rows to dynamic buckets     HashIndexConflict   the write (`retry_assignment`)
#     the buckets of keys, in a cross-partition table          KeyIndexConflict    the write
#     rows of the table from which the new ones are computed   ReadConflict        the read of the source, the write
#     the snapshot that was read, which has expired            SnapshotExpired     the same
#
# Data that can be read only once, such as a reader, is written once: the conflict reaches the caller.
#
# New columns (`merge_schema`) are published late, so that a row that is refused leaves no column behind:
#
#     first batch -> planned schema -> files with all rows -> publish the schema -> compact -> commit
#
# If another process changes the schema before it is published, the files are deleted, and the write begins again with
# that schema. Compaction waits for the schema, because it reads the files by it.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from attrs import evolve, frozen

from paimon.builders.write_builder import BatchWriteBuilder, TableCommit
from paimon.domain.assignment.given_values import LateInput, compute_late_input, to_expression
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import (
    CommitConflict,
    CommitOverwritten,
    HashIndexConflict,
    InvalidRequest,
    KeyIndexConflict,
    PaimonError,
    ReadConflict,
    SnapshotExpired,
    StorageError,
    TableDropped,
    TableReplaced,
    Unsupported,
)
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import explain_quotes
from paimon.domain.report import CardDisplay
from paimon.domain.schema.missing_columns import ColumnCheck, find_needed_columns, set_missing_columns
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_mapping
from paimon.domain.undo import undo_after, undo_on_failure
from paimon.operations.commit.commit import check_callbacks
from paimon.operations.commit.prepared_files import defer_flushes, is_still_needed
from paimon.operations.evolve import load_at_newest_schema, plan_merged_schema, publish_schema
from paimon.operations.maintenance.after_commit import run_after_commit
from paimon.operations.metadata.schemas import explain_missing_table
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.operations.write.input_rows import can_be_read_again, open_files, read_checked_rows
from paimon.ports.cancellation import Stopped
from paimon.results import find_own_reads, stamp_messages
from paimon.scan import condition_of

if TYPE_CHECKING:
    from paimon.operations.row_level.delete_update import RowChange, WriteChanges


_Result = TypeVar("_Result")

_ASSIGN_ATTEMPTS = 50
"""How often rows are assigned to dynamic buckets because other writers changed the hash index of their partitions."""
_EXPIRED_ATTEMPTS = 3
SCHEMA_ATTEMPTS = 20
"""How often a write with new columns starts again because another process changed the schema."""


@frozen
class WriteResult(CardDisplay):
    """What a write did.

    Attributes
    ----------
    snapshot_ids : tuple of int
        The snapshots of the commit: none for an empty write, two where files were compacted after the write.
    rows : int
        Rows that were written; for `Table.delete` and `Table.update` the rows that were changed.
    files : int
        Data files that were added.
    lost_compaction : PaimonError, optional
        Why the compaction after the write was not committed, for instance because another writer compacted the same
        files. The rows are committed and can be read; a later write or `Table.compact` compacts them.
    """

    snapshot_ids: tuple[int, ...]
    rows: int
    files: int
    lost_compaction: PaimonError | None = None


def _write_files(
    context: TableContext, data: Any, kind_column: str | None, commit_user: str
) -> tuple[TableContext, list[CommitMessage]]:
    with BatchWriteBuilder(defer_flushes(context), commit_user).new_write() as writer:
        writer.write(data, kind_column)
        return context, writer.prepare_commit()


def _write_files_with_new_columns(
    context: TableContext, data: Any, kind_column: str | None, commit_user: str
) -> tuple[TableContext, list[CommitMessage]]:
    for _ in range(SCHEMA_ATTEMPTS):
        newest = load_at_newest_schema(context)
        needed = find_needed_columns(newest.table, context.schema)
        check = ColumnCheck.of(newest.table, kind_column, needed)
        stream = read_checked_rows(data, newest.schema.fields, kind_column, check)
        newest = newest.with_table(set_missing_columns(newest.table, "null"))  # the stream checks the columns
        first = next(stream, None)
        if first is None:
            return newest, []
        named = pa.schema([f for f in first.schema if f.name != kind_column])
        merged = plan_merged_schema(newest, named)
        rows = chain([first], stream)
        if merged is newest:
            return _write_files(newest, rows, kind_column, commit_user)
        with BatchWriteBuilder(defer_flushes(merged), commit_user).new_write() as writer:
            writer.write(rows, kind_column)
            writer.flush()
            check_callbacks(merged)
            if publish_schema(merged):
                return merged, writer.prepare_commit()  # compaction reads the schema that was just published
        if not can_be_read_again(data):
            break
    raise CommitConflict(
        f"Table {context.table.table_name!r}: the schema changed while rows with new columns were written.",
        hint="Nothing was written. Write the rows again.",
    )


def write_and_commit(
    context: TableContext,
    data: Any,
    kind_column: str | None,
    commit_user: str,
    merge_schema: bool,
    commit: Callable[[TableCommit, list[CommitMessage]], WriteResult],
    missing_columns: str | None = None,
) -> WriteResult:
    """Write rows to files and commit them; again if another writer changed the hash index that assigned them.

    `merge_schema` adds the columns that only `data` has, and publishes the schema after the last row. `missing_columns`
    is as in `Table.write`. Raises `CommitConflict`, with nothing committed, after some attempts, or after the first one
    if `data` can be read only once.
    """
    context, data = (
        context.with_table(set_missing_columns(context.table, missing_columns)),
        open_files(context.engine, data),
    )
    write_files = _write_files_with_new_columns if merge_schema else _write_files

    def write_rows(rows: Any, state: ReadState | None) -> WriteResult:
        written, messages = write_files(context, rows, kind_column, commit_user)
        messages = stamp_messages(written.table, messages, state)
        return commit(evolve(BatchWriteBuilder(written, commit_user).new_commit(), flushes_files=True), messages)

    with explain_missing_table(context):
        if context.schema.primary_keys:
            return retry_source(context, data, write_rows)
        return retry_assignment(lambda: write_rows(data, None)) if can_be_read_again(data) else write_rows(data, None)


def overwrite_and_commit(
    context: TableContext,
    data: Any,
    partition: Mapping[str, object] | None,
    commit_user: str,
    properties: Mapping[str, str] | None,
    missing_columns: str | None,
) -> WriteResult:
    """Replace partitions by rows in one commit, as `Table.overwrite` does; again if the rows read outdated ones."""
    builder, data = BatchWriteBuilder(context, commit_user).overwrite(partition), open_files(context.engine, data)

    def overwrite_with(rows: Any, state: ReadState | None) -> WriteResult:
        with evolve(builder, context=defer_flushes(context)).new_write() as writer:
            writer.write(rows, missing_columns=missing_columns)
            messages = writer.prepare_commit()
        return commit_messages(evolve(builder.new_commit(), flushes_files=True), messages, properties)

    return retry_source(context, data, overwrite_with)


def retry_source(context: TableContext, data: Any, write: Callable[[Any, ReadState | None], _Result]) -> _Result:
    """Write rows that replace others, again while other writers make what was read outdated.

    `write` gets the rows, and the oldest snapshot of the table from which they are computed. Rows of this table are
    read again for each attempt; a reader of it is not, so a change by others refuses it.
    """
    own = find_own_reads(context.table, data)
    if own is None:
        return retry_assignment(lambda: write(data, None)) if can_be_read_again(data) else write(data, None)
    again = own.again
    if again is None:
        return write(data, own.state)

    def write_newest_rows() -> _Result:
        rows = again()
        newest = find_own_reads(context.table, rows)
        return write(rows, newest.state if newest else None)

    return retry_assignment(write_newest_rows)


def publish_planned_schema(builder: BatchWriteBuilder, messages: Sequence[CommitMessage]) -> bool:
    """Publish the schema of written files; return False, without the files, if another one was published first."""
    with undo_on_failure(lambda: builder.new_commit().abort(messages)):
        check_callbacks(builder.context)
        is_published = publish_schema(builder.context)
    if not is_published:
        builder.new_commit().abort(messages)
    return is_published


def schema_changed_error(table_name: str) -> CommitConflict:
    """Return the error for a write with new columns during which the schema changed each time."""
    return CommitConflict(
        f"Table {table_name!r}: the schema changed each time while rows with new columns were written.",
        hint="write the rows again",
    )


def retry_assignment(write: Callable[[], _Result]) -> _Result:
    """Call a function that writes and commits, again while other writers make outdated what it read.

    It read the hash index, the buckets of keys, or rows that changed, or its snapshot expired. The conflict of the last
    attempt is raised.
    """
    expired = 0
    for _ in range(_ASSIGN_ATTEMPTS - 1):
        try:
            return write()
        except (HashIndexConflict, KeyIndexConflict, ReadConflict):
            continue
        except SnapshotExpired:  # of the table, or of a source, which stays expired
            expired += 1
            if expired == _EXPIRED_ATTEMPTS:
                raise
    return write()


def delete_where(
    context: TableContext,
    where: str | Predicate,
    properties: Mapping[str, str] | None,
    write: WriteChanges | None = None,
) -> WriteResult:
    """Delete rows in one commit, as `Table.delete` does; the result's `rows` counts the deleted rows.

    `properties` are stored in the snapshot. `write` writes the changes; None means in this process.
    """
    from paimon.operations.row_level.delete_update import delete_rows, write_changes  # loaded when rows are changed

    user = commit_user_of(context, None)
    condition = condition_of(where)
    write = write or write_changes

    def delete_once() -> WriteResult:
        state = _read_before(context, condition)
        found = condition_of(compute_late_input(condition))
        return _run_maintenance(context, delete_rows(context, found, user, properties, write, state))

    with explain_missing_table(context), explain_quotes(where):
        return retry_assignment(delete_once)


def _read_before(context: TableContext, *given: Any) -> ReadState | None:
    """Return the newest snapshot if an input is computed late; then the commit checks what was changed since."""
    is_late = any(isinstance(value, LateInput) for value in given)
    return ReadState.of(latest_snapshot(context)) if is_late else None


def update_where(
    context: TableContext,
    set: Mapping[str, Any],
    where: str | Predicate,
    properties: Mapping[str, str] | None,
    write: WriteChanges | None = None,
) -> WriteResult:
    """Set columns of rows in one commit, as `Table.update` does; the result's `rows` counts the changed rows.

    A string in `set` is SQL over the row before the update; other values are constants. `properties` are stored in the
    snapshot. `write` writes the changes; None means in this process.
    """
    from paimon.operations.row_level.delete_update import update_rows, write_changes

    given = check_mapping(set, "set")
    user = commit_user_of(context, None)
    condition = condition_of(where)
    write = write or write_changes

    def update_once() -> WriteResult:
        state = _read_before(context, condition, *given.values())
        values = {name: to_expression(compute_late_input(value)) for name, value in given.items()}
        found = condition_of(compute_late_input(condition))
        return _run_maintenance(context, update_rows(context, values, found, user, properties, write, state))

    with explain_missing_table(context), explain_quotes(where):
        return retry_assignment(update_once)


def _run_maintenance(context: TableContext, change: RowChange) -> WriteResult:
    """Run the maintenance that follows the commit of a delete or an update, and return the result of the change."""
    done = change.commit
    run_after_commit(context, done.snapshot_ids)
    return WriteResult(done.snapshot_ids, change.rows, done.added_files, done.lost_compaction)


def commit_messages(
    commit: TableCommit,
    messages: Sequence[CommitMessage],
    properties: Mapping[str, str] | None = None,
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    watermark: int | None = None,
    shares_snapshot: bool = False,
) -> WriteResult:
    """Commit what writers prepared, here or in other processes, as `Table.write` does.

    Where the commit is certainly refused, or was already committed, the files of the messages are deleted. `identifier`
    is unique for each commit of a user. `properties` are stored in the snapshot. `watermark` is in epoch milliseconds.
    The snapshot may contain concurrent commits if it `shares_snapshot`, because no caller knows its user.
    """
    try:
        owner = evolve(commit, owns_messages=True, shares_snapshot=shares_snapshot)
        done = owner.commit(messages, properties, identifier=identifier, watermark=watermark)
    except (InvalidRequest, CommitConflict, CommitOverwritten, Unsupported, TableDropped, TableReplaced) as error:
        if not is_still_needed(messages, error):
            # A refused identifier may be that of another commit, so only the names of the files tell.
            named = BATCH_COMMIT_IDENTIFIER if isinstance(error, InvalidRequest) else identifier
            undo_after(error, lambda: commit.abort(messages, named))
        raise
    except (Stopped, StorageError) as error:
        # A flush may have failed, as that of a writer, whose files are deleted.
        if isinstance(error, Stopped) or commit.flushes_files:
            undo_after(error, lambda: commit.abort(messages, identifier))
        raise
    if done.already_committed:
        commit.abort(messages)  # the files of the earlier commit are others than these, and stay
    return WriteResult(done.snapshot_ids, done.added_rows, done.added_files, done.lost_compaction)
