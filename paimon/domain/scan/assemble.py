"""Live files put into splits, bucket by bucket.

Law: every file that may hold a selected row is in exactly one split, and in the split of its own partition and
bucket. Source: `SnapshotReaderImpl.generateSplits`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from paimon.domain.lsm.sorted_run import sections
from paimon.domain.manifest.columns import EntryColumns, Mask, files_at
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.live_sections import matching_sections
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.row_ranges import range_groups
from paimon.domain.scan.split_packing import FileGroup, pack_files, pack_ranges, pack_sections, speak_for_themselves
from paimon.domain.scan.splits import DataSplit, DeletionFile

BucketKey = tuple[bytes, int]
"""Serialised partition and bucket."""


@frozen
class BucketFiles:
    """The files of one bucket; `matching` are the names of those with a row that may be selected (None: all)."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    matching: frozenset[str] | None = None


def by_bucket(entries: EntryColumns, matching: Mask | None) -> list[BucketFiles]:
    """The files by partition and bucket, in the order in which they were added."""
    files = files_at(entries.files)
    grouped: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(zip(entries.partitions.tolist(), entries.buckets.tolist(), strict=True)):
        grouped.setdefault(key, []).append(row)
    totals = entries.total_buckets.tolist()
    marks = None if matching is None else matching.tolist()
    return [
        BucketFiles(
            entries.partition_rows[partition],
            bucket,
            totals[rows[0]],
            tuple(files[row] for row in rows),
            None if marks is None else frozenset(files[row].file_name for row in rows if marks[row]),
        )
        for (partition, bucket), rows in grouped.items()
    ]


def file_groups(bucket: BucketFiles, rules: ReadRules) -> tuple[FileGroup, ...]:
    """The files of each split of a bucket."""
    files: Sequence[DataFileMeta] = bucket.files
    if rules.side_by_side:
        return pack_ranges(range_groups(files), rules.limits)
    if rules.in_sequence:
        files = sorted(files, key=lambda f: f.min_sequence_number)
    if not rules.merges:
        return pack_files(_kept(files, bucket.matching), rules.limits)
    if rules.unmerged_above_0 and speak_for_themselves(files):
        return pack_files(_kept(files, bucket.matching), rules.limits)
    found = sections(files, rules.key_types)
    if bucket.matching is not None:
        found = matching_sections(found, bucket.matching, rules.engine)
    return pack_sections(found, rules.limits)


def _kept(files: Sequence[DataFileMeta], matching: Collection[str] | None) -> Sequence[DataFileMeta]:
    return files if matching is None else [f for f in files if f.file_name in matching]


def splits_of(
    snapshot_id: int,
    bucket: BucketFiles,
    rules: ReadRules,
    directory: str,
    vectors: Mapping[str, DeletionFile],
) -> Iterator[DataSplit]:
    """The splits of a bucket that lies in `directory`; `vectors` are its deletion vectors by data file."""
    for group in file_groups(bucket, rules):
        deletions = tuple(vectors.get(f.file_name) for f in group.files)
        yield DataSplit(
            snapshot_id=snapshot_id,
            partition=bucket.partition,
            bucket=bucket.bucket,
            total_buckets=bucket.total_buckets,
            bucket_path=directory,
            files=group.files,
            raw_convertible=group.raw_convertible,
            deletion_files=deletions if any(deletions) else (),
        )
