"""Deleting and updating rows of primary-key tables: they are read, and written as deletes or as new versions.

Law: what was written is changed, also rows of level 0 that reads do not show before they are compacted (Java changes
what it shows); the merge engine does the rest, so nothing can conflict. Source:
`DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.assignment.expression import Assignment
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.sequence_groups import sequence_groups
from paimon.domain.predicate.expression import Predicate
from paimon.domain.row.kinds import RowKind
from paimon.domain.scan.plan import ScanRequest
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.plan import plan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.rows.assign import assigned_rows
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine


def keyed_table_messages(
    engine: Engine,
    table: TableDefinition,
    snapshot: Snapshot,
    predicate: Predicate,
    assignments: Sequence[Assignment],
    commit_user: str,
) -> tuple[list[CommitMessage], int]:
    """Write the changes of the rows that the predicate selects; what to commit, and how many rows it changes.

    Parameters
    ----------
    assignments : sequence of Assignment
        What is put into the rows; none: they are deleted.
    """
    read = ReadPlan(table.schema.names, predicate)
    shown = evolve(table, options=table.options.with_values({"deletion-vectors.merge-on-read": "true"}))
    writer = TableWriter(engine, table, commit_user)
    kind = RowKind.UPDATE_AFTER if assignments else RowKind.DELETE
    count = 0
    with undone_on_failure(writer.abort):
        for split in plan(engine, shown, ScanRequest(snapshot, predicate)).splits:
            for batch in read_split(engine, shown, split, read):
                rows = assigned_rows(batch, assignments)
                _check_nulls(table, batch, rows, assignments)
                writer.write(rows, pa.array(np.full(rows.num_rows, kind, np.int8)))
                count += rows.num_rows
        return writer.prepare_commit(), count


def _check_nulls(
    table: TableDefinition, before: pa.RecordBatch, after: pa.Table, assignments: Sequence[Assignment]
) -> None:
    """Refuse a null that the merge engine would not take."""
    if table.options.merge_engine != "partial-update":
        return
    grouped = {name for group in sequence_groups(table.options) for name in (*group.members, *group.sequence)}
    for name in (a.column.name for a in assignments if a.column.name not in grouped):
        emptied = pc.and_(after[name].combine_chunks().is_null(), before[name].is_valid())
        if emptied.true_count:
            raise InvalidRequest(
                f"column {name!r} cannot be set to null: partial-update keeps the value that was there",
                subject=name,
                hint="put the column into a sequence group",
            )
