"""The changes of a range of snapshots, planned and read.

Law: every change of a followed snapshot comes exactly once, with its kind, at today's columns, in the order of the
snapshots; nothing is merged. Source: `DataTableStreamScan`, `IncrementalDeltaStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from paimon.domain.changelog.follow import Change, FollowRules
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.scan.plan import ScanKind, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.state_difference import replaced_splits
from paimon.domain.schema.rules.scans import scanned_buckets
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.plan import plan
from paimon.operations.read.snapshots import load_snapshot
from paimon.operations.read.split import ReadPlan, read_split
from paimon.ports.engine import Engine

_KINDS = {Change.DELTA: ScanKind.DELTA, Change.CHANGELOG: ScanKind.CHANGELOG}


def followed_splits(
    engine: Engine,
    table: TableDefinition,
    snapshots: Iterable[Snapshot],
    predicate: Predicate | None,
    rules: FollowRules,
    min_level: int = 0,
) -> tuple[DataSplit, ...]:
    """The splits of all changes that these rules show of these snapshots, in their order; files below are left out."""
    skip = None if predicate is None else only_columns(predicate, table.schema.names)
    buckets = scanned_buckets(table.schema, table.options)
    splits: list[DataSplit] = []
    for snapshot in snapshots:
        change = rules.change_of(snapshot)
        if change is Change.REPLACED:
            splits += _replaced(engine, table, snapshot, skip)
        elif change is not Change.NOTHING:
            request = ScanRequest(snapshot, skip, buckets, _KINDS[change], min_level)
            splits += plan(engine, table, request).splits
    return tuple(splits)


def _replaced(
    engine: Engine, table: TableDefinition, snapshot: Snapshot, predicate: Predicate | None
) -> tuple[DataSplit, ...]:
    # Only by key: what is left out of a merge on one side must be left out on the other.
    keys = None if predicate is None else only_columns(predicate, table.schema.primary_keys)
    earlier = load_snapshot(engine, table.paths, snapshot.id - 1) if snapshot.id > 1 else None
    # Level 0 that batches do not see yet was shown to followers, and goes too.
    buckets = scanned_buckets(table.schema, table.options)
    asked = (ScanRequest(state, keys, buckets, shows_level_0=True) for state in (earlier, snapshot))
    before, after = (plan(engine, table, request) for request in asked)
    return replaced_splits(before.splits, after.splits, snapshot.id)


def read_changes(
    engine: Engine, table: TableDefinition, read: ReadPlan, schema: pa.Schema, split: DataSplit
) -> Iterator[pa.RecordBatch]:
    """The changes of one split, each led by the id of its snapshot; `schema` is that of the answer."""
    number = pa.scalar(split.snapshot_id, pa.int64())
    for batch in read_split(engine, table, split, read):
        columns = [pa.repeat(number, batch.num_rows), *batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
