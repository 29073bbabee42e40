"""Divide the splits of a row-level change into units, each for one task.

Invariant: all splits of a bucket are in one unit. In append tables without buckets, each split is a unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.data_files.deletion_vectors import BucketVectors
from paimon.operations.read.plan import plan_scan
from paimon.operations.table_context import TableContext


def _to_splits(values: Iterable[DataSplit]) -> tuple[DataSplit, ...]:
    return tuple(values)


@frozen(eq=False)
class WorkUnit:
    """Splits of one bucket that one task changes."""

    # At least one split
    splits: tuple[DataSplit, ...] = field(converter=_to_splits)
    # Deletion vectors of the bucket; empty if the unit is only a part of the bucket
    vectors: BucketVectors

    @property
    def key(self) -> BucketKey:
        """The partition and the bucket."""
        return self.splits[0].partition, self.splits[0].bucket


def plan_units(
    context: TableContext,
    snapshot: Snapshot,
    predicate: Predicate | None,
    old_vectors: Mapping[BucketKey, BucketVectors] | None = None,
) -> list[WorkUnit]:
    """Plan the units that can have rows for which a predicate over stored columns is true, in the order of the plan.

    `old_vectors` has the current deletion vectors of an append table.
    """
    splits = plan_scan(context, ScanRequest(snapshot, predicate)).splits
    groups: dict[object, list[DataSplit]] = {}
    for number, split in enumerate(splits):
        groups.setdefault((split.partition, split.bucket) if context.table.is_bucketed else number, []).append(split)
    vectors = old_vectors if old_vectors is not None and context.table.is_bucketed else {}
    keys = [(group[0].partition, group[0].bucket) for group in groups.values()]
    return [
        WorkUnit(group, vectors.get(key, BucketVectors(*key))) for key, group in zip(keys, groups.values(), strict=True)
    ]


def has_partial_units(context: TableContext, old_vectors: Mapping[BucketKey, BucketVectors]) -> bool:
    """Return whether several units of an append table share deletion vectors, so that one task has to change them."""
    return not context.table.is_bucketed and (context.options.deletion_vectors_enabled or bool(old_vectors))
