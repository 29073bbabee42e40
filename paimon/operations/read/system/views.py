"""System tables whose rows are the table's own: `ro`, `audit_log`, `binlog`.

Law: a view changes which files are read or what is kept of them, never how rows are merged. Source:
`ReadOptimizedTable`, `AuditLogTable`, `BinlogTable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.schema.table_definition import TableDefinition


@frozen
class DataView:
    """How a view differs from a plain read.

    Parameters
    ----------
    top_level_only : bool
        Of a primary-key table, read only what was fully compacted: no merge, but older rows.
    row_kinds : bool
        Keep retracts, and offer the column `rowkind`.
    binlog : bool
        Show columns as lists: one value, or of an update (in incremental reads) the one before and the one after.
    """

    top_level_only: bool = False
    row_kinds: bool = False
    binlog: bool = False

    def min_level(self, table: TableDefinition) -> int:
        """The lowest level that is read."""
        return table.options.num_levels - 1 if self.top_level_only and table.schema.primary_keys else 0


PLAIN = DataView()
"""The table itself."""

DATA_VIEWS: Mapping[str, DataView] = {
    "audit_log": DataView(row_kinds=True),
    "binlog": DataView(row_kinds=True, binlog=True),
    "ro": DataView(top_level_only=True),
}
