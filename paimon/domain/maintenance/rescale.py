"""Select what moves to other buckets: the partitions of a rescale, and postponed files in the order of their commits.

Invariant: a partition is rewritten as a whole or not at all, so its files always have one number of buckets. Postponed
rows are replayed as they were committed.
Source: `RescaleAction`, `PostponeUtils`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.scan.assemble import BucketFiles
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition

MAX_BUCKETS = 32_768
"""More buckets than this are refused: each one is a directory, and a reader opens at least one file of it."""
_LOWEST_REPORTED_LEVEL = {"lookup": 1, "full-compaction": None}
"""By changelog producer: the level from which the changes of a file are in the changelog; None for the top level."""


@frozen
class SourceBucket:
    """A bucket that is rewritten; a picklable task."""

    # all live files of the bucket
    files: BucketFiles
    directory: str
    # the index files with the deletion vectors of the bucket
    vectors: tuple[IndexManifestEntry, ...] = ()


@frozen
class PartitionSources:
    """All buckets of one partition that is rewritten; `partition` is a serialized BinaryRow."""

    partition: bytes
    buckets: tuple[SourceBucket, ...]


def check_rescalable(table: TableDefinition, buckets: int) -> None:
    """Refuse a table without a fixed number of buckets, and a number that is out of range."""
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidRequest(
            f"Number of buckets must be an integer from 1 to {MAX_BUCKETS}, but is {buckets!r}.", subject="buckets"
        )
    if table.options.pk_clustering_override:
        raise Unsupported(
            f"a rescale of table {table.table_name!r}, which has 'pk-clustering-override'",
            hint="write its rows to a new table with another number of buckets",
        )
    stored = TableOptions.of(table.schema.options).bucket
    if stored == POSTPONED:
        raise Unsupported(
            f"a rescale of table {table.table_name!r}, which has postponed buckets",
            hint="set 'postpone.default-bucket-num' for new partitions; the other partitions keep their number",
        )
    if stored < 1:
        reason = (
            "assigns keys to buckets dynamically (option 'bucket' is -1)"
            if table.schema.primary_keys
            else "has no buckets (option 'bucket' is -1)"
        )
        raise InvalidRequest(
            f"Table {table.table_name!r} cannot be rescaled, because it {reason}.",
            subject="bucket",
            hint="only tables whose option 'bucket' is a positive number can be rescaled",
        )


def select_partitions(buckets: Iterable[SourceBucket], total_buckets: int | None) -> tuple[PartitionSources, ...]:
    """Group buckets, ascending, by partition in input order, without those that have `total_buckets`."""
    found: dict[bytes, list[SourceBucket]] = {}
    for bucket in buckets:
        if bucket.files.total_buckets != total_buckets:
            found.setdefault(bucket.files.partition, []).append(bucket)
    return tuple(
        PartitionSources(partition, tuple(sorted(sources, key=lambda s: s.files.bucket)))
        for partition, sources in found.items()
    )


def has_unreported_changes(partitions: Sequence[PartitionSources], changelog_producer: str, top_level: int) -> bool:
    """Return whether a compaction would write changelog; a rewrite without it loses changes for streams."""
    if changelog_producer not in _LOWEST_REPORTED_LEVEL:
        return False
    lowest = _LOWEST_REPORTED_LEVEL[changelog_producer]
    lowest = top_level if lowest is None else lowest
    return any(f.level < lowest for p in partitions for source in p.buckets for f in source.files.files)


CommitPosition = tuple[int, int]
"""The id of the snapshot that added a file, and the position of the file among those that it added."""
_BEFORE_ALL: CommitPosition = (-1, 0)


def sort_postponed_files(
    files: Sequence[DataFileMeta], positions: Mapping[str, CommitPosition]
) -> tuple[DataFileMeta, ...]:
    """Sort a partition's postponed files by commit; those of expired ones come first, by creation."""

    def sort_key(file: DataFileMeta) -> tuple[CommitPosition, int]:
        """Return what orders a file: its commit, or its time of creation if the commit is not known."""
        known = positions.get(file.file_name)
        return (_BEFORE_ALL, file.creation_time_millis or 0) if known is None else (known, 0)

    return tuple(sorted(files, key=sort_key))
