"""Check that no commit puts a key into two buckets or two partitions, whatever writers run concurrently.

(Java's writers do not check hash and key indexes, so only one of them may write a partition.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import (
    BucketCountConflict,
    CommitConflict,
    HashIndexConflict,
    InvalidRequest,
    KeyIndexConflict,
)
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import HASH_INDEX, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.types.data_types import DataType


# The number of buckets. A writer reads it when it starts. If the table is rescaled before it commits, its files would
# put a key into two buckets. The partition is only read if the number differs from the option `bucket` of a schema that
# was published after the writer started. A rescale publishes such a schema before its snapshot, and its snapshot only
# while that schema is the newest. So an append without a rescale costs nothing.
def has_other_bucket_count(change: Change, bucket_options: Collection[int]) -> bool:
    """Return whether an append has another bucket count than a newer schema: then read the partitions."""
    if change.kind is not CommitKind.APPEND:
        return False
    options = {option for option in bucket_options if option > 0}
    totals = {e.total_buckets for e in change.entries if e.kind is FileKind.ADD and e.total_buckets > 0}
    return any(option != total for total in totals for option in options)


def check_bucket_option(expected: int | None, bucket_option: int) -> None:
    """Refuse a rescale whose `expected` option `bucket` another rescale has changed; None passes."""
    if expected is not None and expected != bucket_option:
        raise CommitConflict(
            f"Option 'bucket' was changed from {expected} to {bucket_option} during the rescale to {expected} buckets",
            hint="rescale again",
        )


def check_bucket_counts(base: Iterable[ManifestEntry], change: Change, bucket_option: int) -> None:
    """Refuse files for a number of buckets that neither their partition nor the newest schema has.

    `base` has at least one live file of each partition of the change. A conflict means that the table was rescaled
    after the writer started.
    """
    totals = {e.partition: e.total_buckets for e in base if e.total_buckets > 0}
    for entry in change.entries:
        total = totals.get(entry.partition, bucket_option if bucket_option > 0 else entry.total_buckets)
        if entry.kind is FileKind.ADD and 0 < entry.total_buckets != total:
            raise BucketCountConflict(
                f"A partition was rescaled to {total} buckets, but the commit adds files for {entry.total_buckets}",
                files=[entry.file.file_name],
                hint="open the table again, and write the rows again",
            )


def check_hash_index(live: Sequence[IndexManifestEntry], change: Change) -> None:
    """Refuse rows whose buckets came from an index that changed; two messages for one are InvalidRequest."""
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


# The key index of a cross-partition table is built from one snapshot. The commit calls these for each snapshot after
# that one, before it publishes.
def can_move_keys(snapshot: Snapshot, commit_user: str) -> bool:
    """Return whether a snapshot after the key index's may hold moved keys; own commits do not count."""
    is_own = snapshot.commit_user == commit_user and snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER
    return snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE) and not is_own


def check_key_index(
    snapshot: Snapshot, delta: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]
) -> None:
    """Refuse a change if another commit added files that may contain the same keys."""
    own = [KeyedFile.of(entry.file, key_types) for entry in change.entries if entry.kind is FileKind.ADD]
    added = (KeyedFile.of(entry.file, key_types) for entry in delta if entry.kind is FileKind.ADD)
    clash = [keyed.file.file_name for keyed in added if any(keyed.overlaps(other) for other in own)]
    if clash:
        raise KeyIndexConflict(
            f"Snapshot {snapshot.id} of user {snapshot.commit_user!r} may have put the same keys into other partitions",
            files=clash,
            hint="write the rows again with a new writer, which reads where the keys are",
        )


def make_lost_snapshot_error(snapshot_id: int) -> KeyIndexConflict:
    """Return the error for a snapshot after that of the key index that expired, or was rolled back."""
    return KeyIndexConflict(
        f"Snapshot {snapshot_id} no longer exists, so it is unknown where later commits put keys",
        hint="write the rows again with a new writer, which reads where the keys are",
    )
