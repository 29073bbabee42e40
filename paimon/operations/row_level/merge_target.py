"""Read the rows of the target of a MERGE: only the columns that its conditions and clauses need.

Invariant: a position of an append table counts all rows of its file, also deleted ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.assignment.merge_clauses import Merge, MergeAction, is_of_target, to_plain_name
from paimon.domain.assignment.merge_columnar import Integers
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.check_versions import list_version_columns
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.read.projection import select_fields
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.keyed_rows import with_hidden_rows
from paimon.operations.table_context import TableContext


def list_match_columns(context: TableContext, merge: Merge) -> tuple[DataField, ...]:
    """Return the columns of the target that decide which clause applies; at least one column."""
    conditions = [clause for clause in merge.changing if clause.condition is not None]
    names = {n for clause in conditions for n in clause.columns() if is_of_target(n)} | merge.on.target_columns
    fields = select_fields(context.schema.fields, sorted({to_plain_name(name) for name in names}))
    whole = {f.name: f for f in context.schema.fields}
    return tuple(whole[f.name] for f in fields) or context.schema.fields[:1]


def list_read_columns(context: TableContext, merge: Merge) -> tuple[str, ...]:
    """Return the columns to read of a primary-key table: whole rows only where a clause needs them."""
    names = {field.name for field in list_match_columns(context, merge)} | list_version_columns(context.table)
    all_names = context.schema.names
    for clause in merge.changing:
        set_columns = {a.column.name for a in clause.assignments}
        if clause.action is MergeAction.DELETE or context.options.merge_engine == "partial-update":
            return all_names
        read = {to_plain_name(name) for name in clause.columns() if is_of_target(name)}
        columns = {f.name for f in select_fields(context.schema.fields, sorted(read))}
        names |= columns | (set(all_names) - set_columns)
    return tuple(name for name in all_names if name in names)


def read_keyed_target(
    context: TableContext, merge: Merge, condition: Predicate | None, split: DataSplit
) -> Iterator[pa.RecordBatch]:
    """Read a split of a primary-key table, also the rows that reads skip before a compaction.

    The batches have the columns of `list_read_columns`. `condition` is true for each row that can matter; None if all
    can.
    """
    return read_split(with_hidden_rows(context), split, ReadPlan(list_read_columns(context, merge), condition))


@frozen(eq=False)
class LiveRows:
    """Live rows of a file of an append table."""

    # The columns of `list_match_columns`
    rows: pa.RecordBatch
    # Their positions in the file, ascending
    positions: Integers

    @classmethod
    def of(cls, batch: pa.RecordBatch, start: int, before: DeletionVector) -> LiveRows:
        """Return the live rows of a batch, whose first row has position `start` in its file.

        The batch has consecutive rows. `before` are the rows of the file that are deleted before the change.
        """
        live = np.flatnonzero(~before.mask(start, batch.num_rows))
        return cls(batch if len(live) == batch.num_rows else batch.take(pa.array(live)), live + start)


def read_file_vectors(context: TableContext, split: DataSplit) -> list[tuple[DataFileMeta, DeletionVector]]:
    """Return the files of a split with the rows that are deleted before the change."""
    return [(file, _read_vector(context, deleted)) for file, deleted in file_vectors(split.files, split.deletion_files)]


def _read_vector(context: TableContext, deleted: DeletionFile | None) -> DeletionVector:
    return DeletionVector() if deleted is None else read_vector(context.engine, deleted)


def read_live_rows(
    context: TableContext, merge: Merge, bucket: Bucket, file: DataFileMeta, before: DeletionVector
) -> Iterator[LiveRows]:
    """Read the columns that decide which clause applies to the live rows of one file of an append table.

    `before` are the rows that are deleted before the change.
    """
    start = 0
    # No row group may be skipped, because the position of a row is the number of rows before it.
    for batch in read_data_file(bucket, file, list_match_columns(context, merge)):
        yield LiveRows.of(batch, start, before)
        start += batch.num_rows
