"""Set columns of rows that are named by their ids, in tables with `data-evolution.enabled`.

Invariant: the new values of the columns lie in new files next to the old ones. Each new file has all rows of the files
that it belongs to, in their order; rows that are not named keep their values. Row ids never change.
Source: `DataEvolutionSplitRead` reads such files; pypaimon's `TableUpdateByRowId` writes them.
"""

# Files of these tables with the same range of row ids have columns of the same rows. They are one `RowGroup`:
#
#     id   f0: a  b  c      f1: b      f2: c         read
#     40       1  x  p          x          p'        1  x  p'
#     41       2  y  q          y'         q         2  y' q
#     42       3  z  r          z          r         3  z  r
#
# f0 came first, with all columns. An update of b in row 41 wrote f1; one of c in row 40 wrote f2. A reader takes each
# column from the newest file that has it. A new file has all rows of the group, in the order of their ids, so the
# values of the other rows are read and copied; it has only the columns that are set. The position of a row in
# its group is its id minus the first id. A deletion vector belongs to the oldest file (f0), and holds for the group.
#
# Two writers may change one group at the same time: f1 and f2 above do not conflict. So a message records what it
# depends on (`RowGroupBase`): the columns that it read or set, and how many rows were deleted. The commit compares
# these with what other commits did since.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.assignment.expression import columns_of as columns_of_expression
from paimon.domain.columns.buffers import combine_column
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.columns.replace_rows import replace_rows
from paimon.domain.commit.message import CommitMessage, DataIncrement, RowGroupBase
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.errors import InvalidRequest, RowIdNotFound
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.row_id_groups import first_row_id_of, group_by_row_range
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.schema.rules.row_level import check_evolvable, check_updatable
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID, SEQUENCE_NUMBER
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.data_evolution_read import read_data_evolution_files
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import ReadPlan, select_fields
from paimon.operations.read.split import read_split
from paimon.operations.row_level.selected_rows import SelectedChange, WrittenChanges, apply_assignments, read_old_vector
from paimon.operations.table_context import TableContext
from paimon.operations.write.input_rows import open_files, to_arrow_tables

RowIds = npt.NDArray[np.int64]
ComputeColumns: TypeAlias = Callable[[pa.Table], pa.Table]
"""Returns the new columns of rows, with one row for each of them."""


@frozen(eq=False)
class RowGroup:
    """The files that have columns of the same rows, whose ids are consecutive."""

    split: DataSplit
    files: tuple[DataFileMeta, ...]
    # Id of the first row
    first: int
    # The number of rows, also deleted ones
    rows: int
    # Where the deleted rows are recorded; None if there are none
    vector: DeletionFile | None = None

    @classmethod
    def of_split(cls, split: DataSplit) -> list[RowGroup]:
        """Return the groups of a split, in the order of their ids."""
        vectors = {file.file_name: vector for file, vector in file_vectors(split.files, split.deletion_files)}
        return [
            cls(
                split,
                files,
                min(map(first_row_id_of, files)),
                max(file.row_count for file in files),
                next((found for file in files if (found := vectors[file.file_name]) is not None), None),
            )
            for files in group_by_row_range(split.files)
        ]

    def as_split(self) -> DataSplit:
        """Return a split that has the rows of the group alone."""
        vectors = {file.file_name: vector for file, vector in file_vectors(self.split.files, self.split.deletion_files)}
        deletion_files = tuple(vectors[file.file_name] for file in self.files)
        return evolve(
            self.split,
            files=self.files,
            deletion_files=deletion_files if any(deletion_files) else (),
            raw_convertible=len(self.files) == 1,
        )


class RowIdUpdates:
    """The rows of a snapshot (by default the newest) to update by id; the table has data evolution."""

    def __init__(self, context: TableContext, snapshot: Snapshot | None = None) -> None:
        check_evolvable(context.table)
        self._context = context
        self._snapshot = latest_snapshot(context) if snapshot is None else snapshot

    @property
    def table(self) -> TableDefinition:
        """The table."""
        return self._context.table

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot; None for a table without one."""
        return self._snapshot

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot; None for a table without one."""
        return None if self._snapshot is None else self._snapshot.id

    @cached_property
    def groups(self) -> list[RowGroup]:
        """All rows, in the order of their ids."""
        if self._snapshot is None:
            return []
        splits = plan_scan(self._context, ScanRequest(self._snapshot)).splits
        return sorted((g for split in splits for g in RowGroup.of_split(split)), key=lambda group: group.first)

    @cached_property
    def _ranges(self) -> tuple[RowIds, RowIds]:
        """The first id of each group, and the one after its last."""
        starts = np.array([group.first for group in self.groups], np.int64)
        return starts, starts + np.array([group.rows for group in self.groups], np.int64)

    def update(self, data: Any, columns: Sequence[str] | None = None, read: Iterable[str] = ()) -> list[CommitMessage]:
        """Write files with new values of columns; return one message for each group of rows with a change.

        The data has any form that `Table.write` takes, and a column `_ROW_ID` of distinct ids of the table. `read`
        names the columns, or paths in them, from which the new values and the choice of rows were computed.
        """
        fields = self._context.schema.fields
        tables = list(to_arrow_tables(open_files(self._context.engine, data), (ROW_ID, *fields)))
        given = pa.concat_tables(tables, promote_options="default") if tables else arrow_schema((ROW_ID,)).empty_table()
        names = [n for n in given.column_names if n != ROW_ID.name] if columns is None else list(dict.fromkeys(columns))
        for name in (ROW_ID.name, *names):
            if name not in given.column_names:
                raise InvalidRequest(f"Rows to update need the column {name!r}", subject=name, hint="add the column")
        if not names:
            raise InvalidRequest("An update must set at least one column", subject="columns", hint="name some columns")
        chosen = check_updatable(self._context.table, names)
        what = f"an update of table {self._context.table.table_name}"
        rows = conform_to_fields(given.select([ROW_ID.name, *names]), (ROW_ID, *chosen), what)
        return self._write(*_sort_by_id(rows), chosen, self._list_columns(names, read))

    def _list_columns(self, names: Iterable[str], read: Iterable[str]) -> tuple[str, ...] | None:
        """Return the columns that an update sets or reads; None for all, as each update changes sequence numbers."""
        paths = {*names, *read} - {ROW_ID.name}
        if SEQUENCE_NUMBER.name in paths:
            return None
        return tuple(field.name for field in select_fields(self._context.schema.fields, paths))

    def _write(
        self, ids: RowIds, rows: pa.Table, columns: tuple[DataField, ...], used: tuple[str, ...] | None
    ) -> list[CommitMessage]:
        messages: list[CommitMessage] = []
        with undo_on_failure(lambda: self.abort(messages)):
            for group, part in self.find_groups(ids):
                chosen = rows.slice(part.start, part.stop - part.start)
                message = self._write_group(group, ids[part] - group.first, chosen, columns)
                messages.append(evolve(message, row_groups=(self.describe_group(group, used),)))
        return messages

    def describe_group(self, group: RowGroup, columns: Iterable[str] | None) -> RowGroupBase:
        """Return what a change of rows of a group depends on; `columns` are those that it reads or sets, None all."""
        columns = None if columns is None else tuple(columns)
        return RowGroupBase(group.first, columns, self.read_vector(group).cardinality)

    def find_groups(self, ids: RowIds, also_deleted: bool = False) -> list[tuple[RowGroup, slice]]:
        """Return the groups of rows, each with the part of the ids that it has; the ids must be in ascending order."""
        starts, ends = self._ranges
        numbers = np.searchsorted(starts, ids, side="right") - 1
        self._check_known(ids[(numbers < 0) | (ids >= ends[numbers])] if len(ends) else ids)
        found = []
        for number in np.unique(numbers).tolist():
            part, group = slice(*np.searchsorted(numbers, [number, number + 1]).tolist()), self.groups[number]
            if group.vector is not None and not also_deleted:
                deleted = self.read_vector(group).mask(0, group.rows)
                self._check_known(ids[part][deleted[ids[part] - group.first]])
            found.append((group, part))
        return found

    def _check_known(self, unknown: RowIds) -> None:
        if len(unknown):
            raise RowIdNotFound(
                f"Row id {unknown[0]} is not in table {self._context.table.table_name!r}",
                subject=ROW_ID.name,
                hint="read the ids again: scan(columns=['_ROW_ID'])",
            )

    def list_live_ids(self, group: RowGroup) -> RowIds:
        """Return the ids of the rows of a group that are not deleted, in ascending order."""
        ids = np.arange(group.first, group.first + group.rows, dtype=np.int64)
        return ids if group.vector is None else ids[~self.read_vector(group).mask(0, group.rows)]

    def read_vector(self, group: RowGroup) -> DeletionVector:
        """Return the deleted rows of a group."""
        return read_old_vector(self._context, group.vector)

    def _write_group(
        self, group: RowGroup, positions: RowIds, rows: pa.Table, columns: tuple[DataField, ...]
    ) -> CommitMessage:
        assert self._snapshot is not None
        layout = FileLayout.of(self._context.table).with_columns(columns).without_limits()
        split = group.split
        files = RollingFiles(self._context.engine, layout, split.bucket_path)
        with undo_on_failure(files.abort):
            for table in self._replace(group, positions, rows, columns):
                files.write(table)
            written = files.close()
        increment = DataIncrement(new_files=[evolve(file, first_row_id=group.first) for file in written])
        return CommitMessage(
            split.partition, split.bucket, split.total_buckets, split.bucket_path, increment, row_base=self._snapshot.id
        )

    def _replace(
        self, group: RowGroup, positions: RowIds, rows: pa.Table, columns: tuple[DataField, ...]
    ) -> Iterator[pa.Table]:
        """Yield the columns of all rows of a group, with the new values."""
        if len(positions) == group.rows:
            yield rows
            return
        start = 0
        for batch in self.read_group(group, columns):
            first, end = np.searchsorted(positions, [start, start + batch.num_rows]).tolist()
            changed = replace_rows(batch, positions[first:end] - start, rows.slice(first, end - first))
            start += batch.num_rows
            yield pa.Table.from_batches([changed])

    def read_group(self, group: RowGroup, columns: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        """Return columns of all rows of a group, also deleted ones, in the order of their ids."""
        return read_data_evolution_files(Bucket.of(self._context, group.split), group.files, columns)

    def read_live_rows(self, group: RowGroup, columns: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        """Return columns of the rows of a group that are not deleted, in the order of their ids."""
        deleted = None if group.vector is None else self.read_vector(group)
        bucket = Bucket.of(self._context, group.split)
        return read_data_evolution_files(bucket, group.files, columns, lambda file: deleted)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of messages that are never committed."""
        paths = [path for m in messages for f in m.data.new_files for path in f.paths_in(m.bucket_path)]
        if paths:
            self._context.files.delete(paths)


def _sort_by_id(rows: pa.Table) -> tuple[RowIds, pa.Table]:
    """Return the ids in ascending order, and the other columns in this order."""
    ids = np.asarray(combine_column(rows[ROW_ID.name]), np.int64)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if len(repeated):
        raise InvalidRequest(
            f"Row id {repeated[0]} is given twice: duplicate {ROW_ID.name} values", subject=ROW_ID.name
        )
    return ids, rows.drop_columns([ROW_ID.name]).take(pa.array(order))


def read_groups(
    updates: RowIdUpdates, groups: Sequence[RowGroup], columns: Sequence[DataField]
) -> pa.RecordBatchReader:
    """Return a reader of columns of several groups, in their order; it reads files while it is consumed."""
    batches = chain.from_iterable(updates.read_live_rows(group, columns) for group in groups)
    return pa.RecordBatchReader.from_batches(arrow_schema(columns), batches)


def select_shard(groups: Sequence[RowGroup], shard: int, shards: int) -> Sequence[RowGroup]:
    """Return one of several disjoint parts of all groups, of about the same number of groups."""
    if not 0 <= shard < shards:
        raise InvalidRequest(f"There is no part {shard} of {shards}.", subject="shard", hint=f"give 0 to {shards - 1}")
    return groups[len(groups) * shard // shards : len(groups) * (shard + 1) // shards]


def write_row_id_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write new values of selected rows next to their old files; memory holds one split's changes."""
    updates = RowIdUpdates(context, change.snapshot)
    read = ReadPlan((*context.schema.names, ROW_ID.name), change.predicate, row_ids=True)
    names = [ROW_ID.name, *(assignment.column.name for assignment in change.assignments)]
    used = {
        *columns_of(change.predicate),
        *(n for a in change.assignments for n in columns_of_expression(a.expression)),
    }
    messages: list[CommitMessage] = []
    rows = 0
    with undo_on_failure(lambda: updates.abort(messages)):
        for split in plan_scan(context, ScanRequest(change.snapshot, change.predicate)).splits:
            changed = [
                apply_assignments(context.engine, batch, change.assignments).select(names)
                for batch in read_split(context, split, read)
            ]
            count = sum(table.num_rows for table in changed)
            if count:
                messages += updates.update(changed, read=used)
            rows += count
    return WrittenChanges(messages, rows)


def update_by_function(
    context: TableContext,
    updates: RowIdUpdates,
    predicate: Predicate | None,
    columns: Sequence[str],
    compute: ComputeColumns,
) -> list[CommitMessage]:
    """Write files with what a function returns for the selected rows.

    The predicate applies to stored columns; None selects all rows. `compute` gets `columns` and then `_ROW_ID`, and
    must return as many rows as it gets.
    """
    if updates.snapshot is None:
        return []
    used = {*columns, *(() if predicate is None else columns_of(predicate))}
    read = ReadPlan((*(name for name in columns if name != ROW_ID.name), ROW_ID.name), predicate, row_ids=True)
    splits = plan_scan(context, ScanRequest(updates.snapshot, predicate)).splits
    groups = sorted((g for split in splits for g in RowGroup.of_split(split)), key=lambda group: group.first)
    messages: list[CommitMessage] = []
    with undo_on_failure(lambda: updates.abort(messages)):
        for group in groups:
            batches = list(read_split(context, group.as_split(), read))
            if batches:
                messages += _update_rows(updates, pa.Table.from_batches(batches), compute, used)
    return messages


def _update_rows(
    updates: RowIdUpdates, rows: pa.Table, compute: ComputeColumns, read: Iterable[str]
) -> list[CommitMessage]:
    new = compute(rows)
    if new.num_rows != rows.num_rows:
        raise InvalidRequest(
            f"The function returned {new.num_rows} rows for {rows.num_rows} rows.",
            subject="function",
            hint="return one row for each row, in the same order",
        )
    return updates.update(new.append_column(ROW_ID.name, rows[ROW_ID.name]), read=read)
