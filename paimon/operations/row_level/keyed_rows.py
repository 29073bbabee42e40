"""Delete and update rows of primary-key tables: read the rows, and write them as deletes or as new versions.

Invariant: all written rows are changed, also rows of level 0 that reads skip before a compaction (Java changes only the
rows that it shows). Source: `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from attrs import evolve

from paimon.domain.merge.check_versions import check_versions
from paimon.domain.row.kinds import RowKind
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.operations.data_files.undo import undo_on_failure
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.row_level.assign import apply_assignments
from paimon.operations.row_level.matches import SelectedChange, WrittenChanges
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter


def write_keyed_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the changes of selected rows with one writer."""
    writer = TableWriter(context, change.commit_user)
    count = 0
    with undo_on_failure(writer.abort):
        for split in plan_scan(with_hidden_rows(context), ScanRequest(change.snapshot, change.predicate)).splits:
            for rows, kinds in read_keyed_changes(context, split, change):
                writer.write(rows, kinds)
                count += rows.num_rows
        return WrittenChanges(writer.prepare_commit(), count)


def with_hidden_rows(context: TableContext) -> TableContext:
    """Return the context of a table whose reads include the rows of level 0 that they skip before a compaction."""
    options = context.options.with_values({"deletion-vectors.merge-on-read": "true"})
    return context.with_table(evolve(context.table, options=options))


def read_keyed_changes(
    context: TableContext, split: DataSplit, change: SelectedChange
) -> Iterator[tuple[pa.Table, pa.Int8Array]]:
    """Read the selected rows of a split as the changes to write: all columns after the change, and the row kinds."""
    read, assignments = ReadPlan(context.schema.names, change.predicate), change.assignments
    kind = RowKind.UPDATE_AFTER if assignments else RowKind.DELETE
    for batch in read_split(with_hidden_rows(context), split, read):
        rows = apply_assignments(context.engine, batch, assignments)
        check_versions(context.table, batch, rows, assignments)
        yield rows, repeat_kind(kind, rows.num_rows)


def repeat_kind(kind: RowKind, count: int) -> pa.Int8Array:
    """Return the row kind of rows that all have the same one."""
    return pa.array(np.full(count, kind, np.int8))
