"""The program API for changes of rows by their ids: prepare them in many processes, commit in one.

Source: the names follow pypaimon's `TableUpdate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID, TRACKING_FIELDS
from paimon.operations.read.projection import bind_predicate, list_readable_fields, select_fields
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.table_context import TableContext
from paimon.read_builder import BuilderDisplay
from paimon.scan import condition_of
from paimon.source_reads import SnapshotRead, SourceReads, note_reader

if TYPE_CHECKING:
    from paimon.merge_builder import PreparedMerge
    from paimon.operations.row_level.row_id_updates import RowGroup, RowIdUpdates


class TableUpdate(BuilderDisplay):
    """Change rows by their ids, in a table with `data-evolution.enabled`; made by `BatchWriteBuilder.new_update`.

    Only the columns that are set are written. All calls change the snapshot that was the newest at the creation, or the
    one that the `scan.*` options of the table select.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    commit_user : str
        The name of the job that commits.

    Raises
    ------
    InvalidRequest
        The table has no data evolution.
    """

    def __init__(self, context: TableContext, commit_user: str) -> None:
        from paimon.operations.row_level.row_id_updates import RowIdUpdates  # loaded when rows are changed

        self._context = context
        self._commit_user = commit_user
        self._updates = RowIdUpdates(context, pin_snapshot(context).snapshot)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return self._context.table.table_name, {"commit_user": self._commit_user}

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot whose rows are updated; None for a table without one."""
        return self._updates.snapshot_id

    def update_by_row_id(self, rows: Any, columns: Sequence[str] | None = None) -> list[CommitMessage]:
        """Set columns of rows; returns the messages to commit.

        Parameters
        ----------
        rows : object
            Rows in any form that `Table.write` takes, with the column `_ROW_ID` and the columns to set.
        columns : sequence of str, optional
            The columns to set; by default all columns of `rows`.

        Returns
        -------
        list of CommitMessage
            The new files. The commit conflicts if another commit removed rows of the same files, or set the same
            columns of them.

        Raises
        ------
        InvalidRequest
            A column does not fit, or row ids are repeated or not in the table.
        """
        return self._updates.update(rows, columns)

    def upsert_by_keys(
        self, rows: Any, keys: Sequence[str], columns: Sequence[str] | None = None
    ) -> list[CommitMessage]:
        """Set columns of the rows with the same keys, and append the other rows; returns the messages to commit.

        Parameters
        ----------
        rows : object
            Rows in any form that `Table.write` takes; of several rows with one key the last one counts.
        keys : sequence of str
            The columns that identify a row. A row only matches rows of its own partition, and nulls are equal.
        columns : sequence of str, optional
            The columns to set in rows of the table; by default all columns of `rows`.

        Returns
        -------
        list of CommitMessage
            The new files.

        Raises
        ------
        InvalidRequest
            A key or a column does not exist, or the rows do not fit.
        """
        from paimon.operations.row_level.row_id_upsert import upsert_by_keys

        return upsert_by_keys(self._context, self._commit_user, rows, keys, columns, self._updates)

    def update_by_function(
        self,
        function: Callable[[pa.Table], pa.Table | Mapping[str, Any]],
        columns: Sequence[str] = (),
        where: str | Predicate | None = None,
    ) -> list[CommitMessage]:
        """Set columns of rows to what a function returns; returns the messages to commit.

        Parameters
        ----------
        function : callable
            Gets the selected rows of one group of files at a time as an Arrow table: `columns` and `_ROW_ID`. Returns
            the columns to set, as a table or by name, with one value for each row.
        columns : sequence of str
            The columns that the function gets.
        where : str or Predicate, optional
            The rows to change; by default all.

        Returns
        -------
        list of CommitMessage
            The new files. If the function fails, none are left behind.

        Raises
        ------
        InvalidRequest
            A column does not exist or does not fit, or the function returns another number of rows.
        """
        from paimon.operations.row_level.row_id_matches import update_by_function

        def compute(rows: pa.Table) -> pa.Table:
            found = function(rows)
            return found if isinstance(found, pa.Table) else pa.table(dict(found))

        return update_by_function(self._context, self._updates, self._bind(where), columns, compute)

    def delete_where(self, where: str | Predicate) -> list[CommitMessage]:
        """Delete the rows for which a condition is true; returns the messages to commit.

        Parameters
        ----------
        where : str or Predicate
            The rows to delete. A condition on partition columns alone removes the files of whole partitions; other
            conditions need `deletion-vectors.enabled`.

        Returns
        -------
        list of CommitMessage
            The new deletion vectors, or the removed files. The commit conflicts if another commit changed rows of the
            same files.

        Raises
        ------
        InvalidRequest
            The condition does not fit the table.
        Unsupported
            The table has no deletion vectors, and the condition does not select whole partitions.
        """
        from paimon.operations.row_level.matches import SelectedChange
        from paimon.operations.row_level.row_id_deletes import write_row_id_deletes

        predicate = self._bind(where)
        if predicate is None or self._updates.snapshot is None:
            return []
        change = SelectedChange(self._updates.snapshot, predicate, (), self._commit_user)
        return list(write_row_id_deletes(self._context, change).messages)

    def delete_by_row_id(self, row_ids: Iterable[int]) -> list[CommitMessage]:
        """Delete rows by their ids; returns the messages to commit.

        Parameters
        ----------
        row_ids : iterable of int
            The ids, in any order; rows that are deleted already are left out.

        Returns
        -------
        list of CommitMessage
            The new deletion vectors.

        Raises
        ------
        InvalidRequest
            A row is not in the table.
        Unsupported
            The table has no deletion vectors.
        """
        from paimon.operations.row_level.row_id_deletes import delete_row_ids

        return delete_row_ids(self._context, self._updates, row_ids)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Predicate,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
    ) -> PreparedMerge:
        """Merge rows of a source into the table: add clauses to the result, then call `prepare_commit`.

        Parameters
        ----------
        source : object
            Rows in any form that `Table.write` takes.
        on : str, sequence of str or Predicate
            When a row of the source matches a row of the table; see `Table.merge`.
        source_alias, target_alias : str
            The names of the sides in SQL text.

        Returns
        -------
        PreparedMerge
            A merge without clauses.
        """
        from paimon.merge_builder import PreparedMerge
        from paimon.operations.row_level.merge_plan import MergeRequest

        request = MergeRequest(on, target_alias, source_alias)
        return PreparedMerge(self._context, source, request, updates=self._updates, commit_user=self._commit_user)

    def _bind(self, where: str | Predicate | None) -> Predicate | None:
        """Return a condition over stored columns and the system columns of rows."""
        if where is None:
            return None
        table = self._context.table
        return bind_predicate(condition_of(where), table, list_readable_fields(table, row_ids=True))

    def shard(self, shard: int, shards: int, columns: Sequence[str]) -> RowShard:
        """Return one of several disjoint parts of the rows, which a process reads and writes new columns of.

        Parameters
        ----------
        shard : int
            The number of the part, from 0.
        shards : int
            The number of parts.
        columns : sequence of str
            The columns to read, also `_ROW_ID`.

        Returns
        -------
        RowShard
            Rows in the order of their ids.

        Raises
        ------
        InvalidRequest
            There is no such part.
        """
        from paimon.operations.row_level.row_id_updates import select_shard

        chosen = select_fields((*self._context.schema.fields, *TRACKING_FIELDS), columns)
        return RowShard(self._updates, select_shard(self._updates.groups, shard, shards), chosen)


class RowShard:
    """A part of the rows of a table with `data-evolution.enabled`; made by `TableUpdate.shard`.

    Parameters
    ----------
    updates : RowIdUpdates
        The rows of the table.
    groups : sequence of RowGroup
        The rows of the part.
    columns : tuple of DataField
        The columns to read.
    """

    def __init__(self, updates: RowIdUpdates, groups: Sequence[RowGroup], columns: tuple[DataField, ...]) -> None:
        self._updates = updates
        self._groups = groups
        self._columns = columns

    @property
    def row_ids(self) -> pa.Int64Array:
        """The ids of the rows, in ascending order."""
        ranges = [self._updates.list_live_ids(group) for group in self._groups]
        return pa.array(np.concatenate(ranges) if ranges else np.empty(0, np.int64))

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the columns, in the order of the ids."""
        from paimon.operations.row_level.row_id_updates import read_groups

        reader = read_groups(self._updates, self._groups, self._columns)
        table, state = self._updates.table, ReadState.of(self._updates.snapshot)
        return note_reader(reader, lambda: SourceReads([SnapshotRead(table.location, table.branch, state)]))

    def update(self, values: pa.Table) -> list[CommitMessage]:
        """Set columns of all rows of the part; returns the messages to commit.

        Parameters
        ----------
        values : pyarrow.Table
            The new columns, with one row for each row of the part, in their order.

        Returns
        -------
        list of CommitMessage
            The new files.

        Raises
        ------
        InvalidRequest
            There are more or fewer rows, or a column does not fit.
        """
        ids = self.row_ids
        if values.num_rows != len(ids):
            raise InvalidRequest(
                f"The part has {len(ids)} rows, but {values.num_rows} were given.",
                subject="values",
                hint="give one row for each row that was read, in the same order",
            )
        read = [column.name for column in self._columns]
        return self._updates.update(values.append_column(ROW_ID.name, ids), read=read)
