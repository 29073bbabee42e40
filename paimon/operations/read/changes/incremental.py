"""Plan an incremental batch read of the range that `time_travel.find_incremental_range` chose.

Invariant: between two tags, and with mode `diff`, the difference of two states is read. Otherwise the changes of each
snapshot of the range are read, not merged, from the delta or the changelog. Source: `AbstractDataTableScan`,
`IncrementalDiffStartingScanner`, `IncrementalDeltaStartingScanner`.
"""

from __future__ import annotations

from paimon.domain.changelog.incremental_range import Between
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import Plan, ScanKind, ScanRequest
from paimon.domain.scan.state_difference import difference_splits
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.changes.followed import plan_followed_splits
from paimon.operations.read.plan import plan_scan
from paimon.operations.table_context import TableContext


def plan_incremental_read(context: TableContext, read: Between, predicate: Predicate | None) -> Plan:
    """Plan an incremental read, whose predicate skips files; its snapshot is the last one of the range."""
    last = read.end or (read.snapshots[-1] if read.snapshots else None)
    if not read.difference:
        # Batch reads skip level 0 of a range as they do of a state; only stream scans return it.
        lowest = 1 if ReadRules.of(context.table, ScanKind.ALL).hides_level_0 and not read.shows_level_0 else 0
        splits = plan_followed_splits(context, read.snapshots, predicate, read.rules, lowest)
        # Batch reads see postponed rows after the compaction that moves them to their buckets.
        return Plan(last, context.schema.id, tuple(split for split in splits if split.bucket >= 0))
    # Only by key and partition: if one version of a row matches, the other is needed for the comparison.
    keyed = bool(context.schema.primary_keys)
    stable = context.schema.primary_keys if keyed else context.schema.names
    if context.options.data_evolution_enabled:  # a global index would leave out files of one state only
        stable = context.schema.partition_keys
    skip = None if predicate is None else restrict_to_columns(predicate, stable)
    before, after = (_plan_state(context, snapshot, skip) for snapshot in (read.start, read.end))
    return Plan(last, context.schema.id, difference_splits(before.splits, after.splits, keyed))


def _plan_state(context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None) -> Plan:
    return plan_scan(context, ScanRequest(snapshot, predicate, select_scanned_buckets(context.schema, context.options)))
