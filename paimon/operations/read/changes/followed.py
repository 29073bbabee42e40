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
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.plan import plan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.ports.engine import Engine

_KINDS = {Change.DELTA: (ScanKind.DELTA,), Change.CHANGELOG: (ScanKind.CHANGELOG,), Change.NOTHING: ()}


def followed_splits(
    engine: Engine,
    table: TableDefinition,
    snapshots: Iterable[Snapshot],
    predicate: Predicate | None,
    rules: FollowRules,
) -> tuple[DataSplit, ...]:
    """The splits of all changes that these rules show of these snapshots, in their order."""
    skip = None if predicate is None else only_columns(predicate, table.schema.names)
    splits: list[DataSplit] = []
    for snapshot in snapshots:
        for kind in _KINDS[rules.change_of(snapshot)]:
            splits += plan(engine, table, ScanRequest(snapshot, skip, kind=kind)).splits
    return tuple(splits)


def read_changes(
    engine: Engine, table: TableDefinition, read: ReadPlan, schema: pa.Schema, split: DataSplit
) -> Iterator[pa.RecordBatch]:
    """The changes of one split, each led by the id of its snapshot; `schema` is that of the answer."""
    number = pa.scalar(split.snapshot_id, pa.int64())
    for batch in read_split(engine, table, split, read):
        columns = [pa.repeat(number, batch.num_rows), *batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
