"""Set columns of the rows that a condition selects to what a function returns, in tables with `data-evolution.enabled`.

Invariant: the function gets the rows of one group of files at a time, in the order of their ids; memory holds these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

from paimon.domain.assignment.expression import columns_of as columns_of_expression
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.types.system_columns import ROW_ID
from paimon.operations.data_files.undo import undo_on_failure
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import ReadPlan
from paimon.operations.read.split import read_split
from paimon.operations.row_level.assign import apply_assignments
from paimon.operations.row_level.matches import SelectedChange, WrittenChanges
from paimon.operations.row_level.row_id_updates import RowGroup, RowIdUpdates
from paimon.operations.table_context import TableContext

ComputeColumns: TypeAlias = Callable[[pa.Table], pa.Table]
"""Returns the new columns of rows, with one row for each of them."""


def write_row_id_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write new values of the selected rows next to their old files, which stay (`data-evolution.enabled`).

    Memory holds the changed rows of one split.
    """
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
