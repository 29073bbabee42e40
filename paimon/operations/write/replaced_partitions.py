"""Check that an overwrite of some partitions of a cross-partition table leaves each key in one partition.

Invariant: no key of the new rows is in a partition that the overwrite does not replace. Java 1.4.2 writes a delete into
such a partition: then it refuses the commit, or, where the written partitions are replaced, it replaces that partition
by the delete, so its other rows are lost.
"""

from __future__ import annotations

from collections.abc import Callable

from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.partition.partition_path import format_partition_path
from paimon.domain.row.binary_row import deserialize
from paimon.operations.buckets.key_bootstrap import plan_key_splits, read_key_places
from paimon.operations.buckets.key_index import KeyIndex
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext


def check_other_partitions(context: TableContext, index: KeyIndex, is_replaced: Callable[[bytes], bool]) -> ReadState:
    """Refuse new rows whose keys are in partitions that the overwrite leaves.

    `index` has the keys of the new rows only. Return the snapshot that was read; the commit checks later ones. Raise
    SnapshotExpired if it expired during the read.
    """
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return ReadState.of(None)
    with check_unexpired(context, snapshot, "write the rows again"):
        splits = [s for s in plan_key_splits(context, snapshot) if not is_replaced(s.partition)]
        for partition, _, keys in read_key_places(context, splits):
            if index.has_any(keys):
                raise _left_key_error(context, partition)
    return ReadState.of(snapshot)


def _left_key_error(context: TableContext, partition: bytes) -> InvalidRequest:
    fields, options = context.schema.partition_fields, context.options
    values = deserialize(partition, [f.type for f in fields])
    path = format_partition_path(values, fields, options.partition_default_name, options.partition_legacy_name)
    return InvalidRequest(
        f"A key of the new rows is in partition {path} of table {context.table.table_name!r}, "
        "which the overwrite does not replace",
        subject=path,
        hint="delete the keys there first, or overwrite the whole table with partition={}",
    )
