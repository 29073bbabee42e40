"""Count the rows of a snapshot without reading data files, if its metadata is sufficient.

Invariant: a returned number equals the number of rows that a read of the snapshot returns. If only a merge of files can
count the rows, there is no number.
"""

from __future__ import annotations

from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.plan import plan_with_fallback
from paimon.operations.table_context import TableContext


def count_rows_from_metadata(context: TableContext, snapshot: Snapshot | None) -> int | None:
    """Count the rows of a snapshot from its metadata; None without a snapshot, or if counting requires a merge.

    `context` is the table on the branch of the snapshot.
    """
    if snapshot is None:
        return None
    recorded = get_recorded_row_count(context.table, snapshot)
    return plan_with_fallback(context, ScanRequest(snapshot)).merged_row_count if recorded is None else recorded


def get_recorded_row_count(table: TableDefinition, snapshot: Snapshot) -> int | None:
    """Return the row count that the snapshot file records; None if its records may be merged or deleted."""
    options = table.options
    is_plain = not table.schema.primary_keys and snapshot.index_manifest is None
    if not is_plain or options.data_evolution_enabled or options.scan_fallback_branch is not None:
        return None
    return snapshot.total_record_count
