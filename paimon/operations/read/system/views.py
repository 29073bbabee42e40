"""Define the system tables that show the table's own rows: `ro`, `audit_log`, `binlog`, `row_tracking`.

Invariant: a view changes which files are read or which rows are kept, but not how rows are merged. Source:
`ReadOptimizedTable`, `AuditLogTable`, `BinlogTable`, `RowTrackingTable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.schema.table_definition import TableDefinition


@frozen
class DataView:
    """The differences between a view and a plain read."""

    # read only fully compacted files of a primary-key table: no merge, but perhaps older rows
    top_level_only: bool = False
    # keep retracts, and offer the column `rowkind`
    row_kinds: bool = False
    # return columns as lists: one value, or those before and after an update (in incremental reads)
    binlog: bool = False
    # also return `_ROW_ID` and `_SEQUENCE_NUMBER`, after the columns of the table
    row_ids: bool = False

    def min_level(self, table: TableDefinition) -> int:
        """Return the lowest level that is read."""
        return table.options.num_levels - 1 if self.top_level_only and table.schema.primary_keys else 0


PLAIN = DataView()
"""The table itself."""

ROW_TRACKING = "row_tracking"
DATA_VIEWS: Mapping[str, DataView] = {
    "audit_log": DataView(row_kinds=True),
    "binlog": DataView(row_kinds=True, binlog=True),
    "ro": DataView(top_level_only=True),
    ROW_TRACKING: DataView(row_ids=True),
}
