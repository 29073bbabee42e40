"""The program API for changes of rows by their ids: prepare them in many processes, commit in one.

Source: the names follow pypaimon's `TableUpdate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paimon.display.notebook import BuilderDisplay
from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID, TRACKING_FIELDS
from paimon.operations.read.projection import bind_predicate, list_readable_fields, select_fields
from paimon.operations.read.time_travel import pin_snapshot
from paimon.operations.row_level.row_id_changes import delete_row_ids, upsert_by_keys, write_row_id_deletes
from paimon.operations.row_level.row_id_updates import (
    RowGroup,
    RowIdUpdates,
    read_groups,
    select_shard,
    update_by_function,
)
from paimon.operations.row_level.selected_rows import SelectedChange
from paimon.operations.table_context import TableContext
from paimon.results import SnapshotRead, SourceReads, note_reader
from paimon.scan import condition_of

if TYPE_CHECKING:
    from paimon.builders.merge_builder import PreparedMerge


class TableUpdate(BuilderDisplay):
    """Change rows by their ids, in a table with `data-evolution.enabled`; made by `BatchWriteBuilder.new_update`.

    Only the columns that are set are written. All calls change the snapshot that was the newest at the creation, or the
    one that the `scan.*` options of the table select.
    """

    def __init__(self, context: TableContext, commit_user: str) -> None:
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

        `rows` has the column `_ROW_ID` and the columns to set, by default all others. Row ids must exist, each once.
        The commit conflicts if another commit removed rows of the same files, or set the same columns of them.
        """
        return self._updates.update(rows, columns)

    def upsert_by_keys(
        self, rows: Any, keys: Sequence[str], columns: Sequence[str] | None = None
    ) -> list[CommitMessage]:
        """Set columns of the rows with the same keys, and append the other rows; returns the messages to commit.

        `keys` identify a row within its partition, and null equals null. If `rows` repeat a key, the last row counts.
        `columns` are set in existing rows; by default all columns of `rows`.
        """
        return upsert_by_keys(self._context, self._commit_user, rows, keys, columns, self._updates)

    def update_by_function(
        self,
        function: Callable[[pa.Table], pa.Table | Mapping[str, Any]],
        columns: Sequence[str] = (),
        where: str | Predicate | None = None,
    ) -> list[CommitMessage]:
        """Set columns of rows to what a function returns; returns the messages to commit.

        The function gets the selected rows of one file group at a time, with `columns` and `_ROW_ID`. It returns the
        columns to set, with one value for each row. If it fails, no file is left behind.
        """

        def compute(rows: pa.Table) -> pa.Table:
            found = function(rows)
            return found if isinstance(found, pa.Table) else pa.table(dict(found))

        return update_by_function(self._context, self._updates, self._bind(where), columns, compute)

    def delete_where(self, where: str | Predicate) -> list[CommitMessage]:
        """Delete the rows for which a condition is true; returns the messages to commit.

        A condition on partition columns alone removes whole partitions; others need `deletion-vectors.enabled`. The
        commit conflicts if another commit changed rows of the same files.
        """
        predicate = self._bind(where)
        if predicate is None or self._updates.snapshot is None:
            return []
        change = SelectedChange(self._updates.snapshot, predicate, (), self._commit_user)
        return list(write_row_id_deletes(self._context, change).messages)

    def delete_by_row_id(self, row_ids: Iterable[int]) -> list[CommitMessage]:
        """Delete rows by their ids, in any order; returns the messages to commit.

        Rows that are already deleted are skipped. Raises `Unsupported` if the table has no deletion vectors.
        """
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

        `on` is the match condition, as in `Table.merge`. The aliases name the two sides in SQL text.
        """
        from paimon.builders.merge_builder import PreparedMerge
        from paimon.operations.row_level.merge import MergeRequest

        request = MergeRequest(on, target_alias, source_alias)
        return PreparedMerge(self._context, source, request, updates=self._updates, commit_user=self._commit_user)

    def _bind(self, where: str | Predicate | None) -> Predicate | None:
        """Return a condition over stored columns and the system columns of rows."""
        if where is None:
            return None
        table = self._context.table
        return bind_predicate(condition_of(where), table, list_readable_fields(table, row_ids=True))

    def shard(self, shard: int, shards: int, columns: Sequence[str]) -> RowShard:
        """Return part `shard` of `shards` disjoint parts of the rows, for one process that computes new columns.

        Rows are in the order of their ids. `columns` are read, and may include `_ROW_ID`.
        """
        chosen = select_fields((*self._context.schema.fields, *TRACKING_FIELDS), columns)
        return RowShard(self._updates, select_shard(self._updates.groups, shard, shards), chosen)


class RowShard:
    """A part of the rows of a table with `data-evolution.enabled`; made by `TableUpdate.shard`."""

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
        reader = read_groups(self._updates, self._groups, self._columns)
        table, state = self._updates.table, ReadState.of(self._updates.snapshot)
        return note_reader(reader, lambda: SourceReads([SnapshotRead(table.location, table.branch, state)]))

    def update(self, values: pa.Table) -> list[CommitMessage]:
        """Set columns of all rows of the part; returns the messages to commit.

        `values` has the new columns, with one row for each row of the part, in the same order.
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
