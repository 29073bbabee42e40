"""Check that the files of an append have the number of buckets that their partition has.

A writer reads the number when it starts. If the table is rescaled before it commits, its files would put a key into
two buckets.

Invariant: the partition is only read if the number differs from the option `bucket` of a schema that was published
after the writer started. A rescale publishes such a schema before its snapshot, and its snapshot only while that schema
is the newest. So an append without a rescale costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from paimon.domain.commit.entries import Change
from paimon.domain.errors import BucketCountConflict, CommitConflict
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind


def has_other_bucket_count(change: Change, bucket_options: Collection[int]) -> bool:
    """Return whether an append adds files for another number of buckets than a newer schema names.

    If it does, `check_bucket_counts` must read the partitions. Options below 1 (no fixed number) are ignored.
    """
    if change.kind is not CommitKind.APPEND:
        return False
    options = {option for option in bucket_options if option > 0}
    totals = {e.total_buckets for e in change.entries if e.kind is FileKind.ADD and e.total_buckets > 0}
    return any(option != total for total in totals for option in options)


def check_bucket_option(expected: int | None, bucket_option: int) -> None:
    """Refuse a rescale if another one has changed the option `bucket` since.

    `expected` is the option that the rescale has set; None for other commits, which pass.
    """
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
