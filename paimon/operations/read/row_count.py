"""How many rows a snapshot has, where that is known without reading data files.

Invariant: a number is what a read of the snapshot would count; where only a merge of files can tell, there is none.
"""

from __future__ import annotations

from paimon.domain.scan.plan import ScanRequest
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.fallback import plan_with_fallback
from paimon.ports.engine import Engine


def known_row_count(engine: Engine, table: TableDefinition, snapshot: Snapshot | None) -> int | None:
    """Count the rows of a snapshot by its metadata.

    Parameters
    ----------
    engine : Engine
        Its manifests are read, unless the snapshot itself tells.
    table : TableDefinition
        The table, seen from the branch of the snapshot.
    snapshot : Snapshot, optional
        The snapshot.

    Returns
    -------
    int or None
        None where there is no snapshot, or files must be merged to know.

    Raises
    ------
    CorruptTable, Unsupported
        Naming the manifest at fault.
    """
    if snapshot is None:
        return None
    told = row_count_of_snapshot(table, snapshot)
    return plan_with_fallback(engine, table, ScanRequest(snapshot)).merged_row_count if told is None else told


def row_count_of_snapshot(table: TableDefinition, snapshot: Snapshot) -> int | None:
    """The rows that the snapshot file itself tells; its records are rows where they are neither merged nor deleted."""
    options = table.options
    is_plain = not table.schema.primary_keys and snapshot.index_manifest is None
    if not is_plain or options.data_evolution_enabled or options.scan_fallback_branch is not None:
        return None
    return snapshot.total_record_count
