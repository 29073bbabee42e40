"""Plan and read the changes of a range of snapshots, for stream scans and for incremental batch reads.

Invariant: each change of a followed snapshot is returned once, with its row kind, in the current columns, and in the
order of the snapshots. Rows are not merged. Between two tags, and with mode `diff`, an incremental read returns the
difference of two states. Source: `DataTableStreamScan`, `AbstractDataTableScan`, `IncrementalDeltaStartingScanner`,
`IncrementalDiffStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.changelog.incremental_range import Between
from paimon.domain.changelog.stream_read import Change, FollowRules
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import Plan, ScanKind, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.state_difference import difference_splits, replaced_splits
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.arrow_arrays import make_array, make_scalar
from paimon.operations.metadata.snapshots import load_snapshot
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.table_context import TableContext

_STORED_KINDS = make_array(["+I", "+U"], pa.string())
_KINDS = {Change.DELTA: ScanKind.DELTA, Change.CHANGELOG: ScanKind.CHANGELOG}


def plan_followed_splits(
    context: TableContext,
    snapshots: Iterable[Snapshot],
    predicate: Predicate | None,
    rules: FollowRules,
    min_level: int = 0,
) -> tuple[DataSplit, ...]:
    """Plan the splits with the changes of snapshots in ascending order; files below `min_level` are skipped.

    The predicate skips only files that cannot contain matching rows. `rules` select the delta, the changelog, the
    replaced state or nothing of each snapshot.
    """
    skip = None if predicate is None else restrict_to_columns(predicate, context.schema.names)
    buckets = select_scanned_buckets(context.schema, context.options)
    splits: list[DataSplit] = []
    for snapshot in snapshots:
        change = rules.get_change(snapshot)
        if change is Change.REPLACED:
            splits += _plan_overwrite_changes(context, snapshot, skip)
        elif change is not Change.NOTHING:
            request = ScanRequest(snapshot, skip, buckets, _KINDS[change], min_level)
            splits += plan_scan(context, request).splits
    return tuple(splits)


def _plan_overwrite_changes(
    context: TableContext, snapshot: Snapshot, predicate: Predicate | None
) -> tuple[DataSplit, ...]:
    # Only by key: a file that is skipped in one state must be skipped in the other.
    keys = None if predicate is None else restrict_to_columns(predicate, context.schema.primary_keys)
    earlier = load_snapshot(context, snapshot.id - 1) if snapshot.id > 1 else None
    # Stream scans have returned rows of level 0 that batch reads skip, so these are replaced, too.
    buckets = select_scanned_buckets(context.schema, context.options)
    requests = (ScanRequest(state, keys, buckets, shows_level_0=True) for state in (earlier, snapshot))
    before, after = (plan_scan(context, request) for request in requests)
    return replaced_splits(before.splits, after.splits, snapshot.id)


def read_changes(
    context: TableContext, read: ReadPlan, schema: pa.Schema, split: DataSplit
) -> Iterator[pa.RecordBatch]:
    """Read the changes of one split in file order, with the int64 snapshot id as the first column."""
    number = make_scalar(split.snapshot_id, pa.int64())
    for batch in read_split(context, split, read):
        columns = [pa.repeat(number, batch.num_rows), *batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def read_stream_split(
    context: TableContext, read: ReadPlan, schema: pa.Schema, split: DataSplit, is_state: bool
) -> Iterator[pa.RecordBatch]:
    """Read a stream's split with snapshot id and row kind first; `is_state` omits deletes. No empty batch."""
    for batch in read_changes(context, read, schema, split):
        rows = batch.filter(pc.is_in(batch.column(1), _STORED_KINDS)) if is_state else batch
        if rows.num_rows:
            yield rows


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
