"""Check whether rows of dynamic buckets still belong to the buckets that their writer chose.

Invariant: no key of a partition is in two buckets, whatever writers run concurrently. (Java's writers do not check
this, so only one of them may write a partition.)
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import HashIndexConflict, InvalidRequest
from paimon.domain.manifest.entries import HASH_INDEX, FileKind, IndexManifestEntry


def check_hash_index(live: Sequence[IndexManifestEntry], change: Change) -> None:
    """Refuse a change whose rows were assigned to dynamic buckets by an index that another commit has changed.

    Two messages with an index of the same bucket are an InvalidRequest, not a conflict.
    """
    _check_one_index(change)
    if not change.index_bases:
        return
    by_partition: dict[bytes, dict[int, str]] = {}
    for entry in live:
        if entry.index_type == HASH_INDEX:
            by_partition.setdefault(entry.partition, {})[entry.bucket] = entry.file_name
    for partition, bucket, base in change.index_bases:
        current = by_partition.get(partition, {})
        names = set(current.values()) if base.is_whole_partition else {current.get(bucket, "")} - {""}
        if names != set(base.names):
            raise HashIndexConflict(
                f"Another commit changed the hash index of bucket {bucket}'s partition"
                if base.is_whole_partition
                else f"Another commit changed the hash index of bucket {bucket}",
                files=sorted(names ^ set(base.names)),
                hint="write the rows again, so that they are assigned to the present buckets",
            )


def _check_one_index(change: Change) -> None:
    seen: set[tuple[bytes, int]] = set()
    for entry in change.index:
        if entry.index_type != HASH_INDEX or entry.kind is not FileKind.ADD:
            continue
        if (entry.partition, entry.bucket) in seen:
            raise InvalidRequest(
                f"Dynamic bucket {entry.bucket} of one partition was written by two writers of this commit",
                hint="route the rows of a partition to one writer, as paimon.spark.write does",
            )
        seen.add((entry.partition, entry.bucket))
