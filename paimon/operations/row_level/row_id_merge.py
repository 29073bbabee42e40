"""Write what a MERGE changes in a table with `data-evolution.enabled`: new files of the columns that are set.

Invariant: row ids never change. Each group of rows is written once, with all columns that any clause sets. Memory holds
one part of the source, and the changed rows of one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction, is_of_target, to_plain_name
from paimon.domain.assignment.merge_columnar import Mask
from paimon.domain.commit.message import CommitMessage
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import ROW_ID
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import delete_index_files
from paimon.operations.read.projection import select_fields
from paimon.operations.row_level.merge_changes import compute_insert_rows, group_by_clause, list_match_columns
from paimon.operations.row_level.merge_match import MergeMatcher, list_target_columns
from paimon.operations.row_level.row_id_deletes import delete_row_ids
from paimon.operations.row_level.row_id_updates import RowGroup, RowIds, RowIdUpdates
from paimon.operations.row_level.selected_rows import open_append_writer
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

OpenMatcher: TypeAlias = Callable[[], MergeMatcher]
"""Reads a part of the source, and returns the merge with it."""


@frozen(eq=False)
class _Output:
    """What a merge writes."""

    updates: RowIdUpdates
    writer: TableWriter
    messages: list[CommitMessage] = field(factory=list)
    deleted: list[RowIds] = field(factory=list)
    counts: Counter[MergeAction] = field(factory=Counter)

    def undo(self, context: TableContext) -> None:
        """Delete what was written before an error."""
        self.writer.abort()
        self.updates.abort(self.messages)
        delete_index_files(context, [e for m in self.messages for e in m.data.new_index_files])


def write_row_id_merge(
    context: TableContext, updates: RowIdUpdates, parts: Sequence[OpenMatcher], commit_user: str
) -> tuple[list[CommitMessage], Counter[MergeAction]]:
    """Write a MERGE, a part of the source for each of `parts`; return messages and counts by action."""
    # A group is written once, so it meets all parts of the source before the next group: several parts are read again
    # for each group, a single one is read once.
    opened: list[OpenMatcher] = [cache(parts[0])] if len(parts) == 1 else list(parts)
    matched = [np.zeros(part().source.num_rows, np.bool_) for part in opened]
    output = _Output(updates, open_append_writer(context, commit_user, concurrent=True))
    with undo_on_failure(partial(output.undo, context)):
        for group in updates.groups:
            _change_group(context, group, opened, matched, output)
        if output.deleted:
            output.messages.extend(delete_row_ids(context, updates, np.concatenate(output.deleted)))
        for part, mask in zip(opened, matched, strict=True):
            for rows, _ in compute_insert_rows(context, part(), mask):
                output.writer.write(rows)
                output.counts[MergeAction.INSERT] += rows.num_rows
        return [*output.messages, *output.writer.prepare_commit()], output.counts


def _change_group(
    context: TableContext,
    group: RowGroup,
    parts: Sequence[OpenMatcher],
    matched: Sequence[Mask],
    output: _Output,
) -> None:
    """Write the new columns of a group of rows, and collect its rows to delete."""
    changed: list[pa.Table] = []
    read: set[str] = set()
    for part, mask in zip(parts, matched, strict=True):
        matcher = part()
        if not len(mask) and not matcher.merge.not_matched_by_source:
            continue  # without a row in the source, only rows that it does not match can change
        columns = _list_columns(context, matcher.merge)
        read |= {column.name for column in columns}
        for batch in output.updates.read_live_rows(group, (*columns, ROW_ID)):
            changed.extend(_change_batch(context, matcher, mask, batch, output))
    if changed:
        output.messages.extend(output.updates.update(changed, read=read))


def _change_batch(
    context: TableContext, matcher: MergeMatcher, mask: Mask, batch: pa.RecordBatch, output: _Output
) -> Iterator[pa.Table]:
    """Yield the ids and the new values of updated rows."""
    changes = matcher.find_changes(batch)
    mask[changes.matched] = True
    set_columns = _list_set_columns(context, matcher.merge)
    for clause, rows, sources in group_by_clause(matcher.merge, changes):
        before = batch.take(pa.array(rows))
        output.counts[clause.action] += len(rows)
        if clause.action is MergeAction.DELETE:
            output.deleted.append(to_numpy(before[ROW_ID.name]))
        elif set_columns:
            after = matcher.compute_rows(clause, set_columns, before, sources)
            yield after.append_column(ROW_ID.name, before[ROW_ID.name])


def _list_set_columns(context: TableContext, merge: BoundMerge) -> tuple[DataField, ...]:
    """Return the columns that any clause sets in rows of the table."""
    names = {assignment.column.name for clause in merge.changing for assignment in clause.assignments}
    return tuple(column for column in context.schema.fields if column.name in names)


def _list_columns(context: TableContext, merge: BoundMerge) -> tuple[DataField, ...]:
    """Return the columns to read: those that decide, those that are set, and those that new values need."""
    names = {to_plain_name(name) for clause in merge.changing for name in clause.columns() if is_of_target(name)}
    used = {column.name for column in select_fields(list_target_columns(context), sorted(names))}
    used |= {column.name for column in (*list_match_columns(context, merge), *_list_set_columns(context, merge))}
    return tuple(column for column in context.schema.fields if column.name in used)
