"""Select the files of each bucket that a predicate leaves, and assemble them into splits.

Invariant: Each file that can contain a selected row is in exactly one split, which is of its partition and bucket.
Pruning never changes a merged row that is selected.
Source: `SnapshotReaderImpl.generateSplits`, `KeyValueFileStoreScan`.
"""

# The last stage of scan planning. The live files are there as columns, with a mask of the files whose statistics admit
# a row of the predicate (`matching`). Which of them may be left out depends on whether their rows are merged:
#
# - Append tables, and primary-key tables whose files are free of replaced rows (deletion vectors, first-row; all above
#   level 0): every file without a match is left out, and files are packed up to the split size.
# - Merged tables are cut into sections (`paimon.domain.lsm.sorted_run`). A file that is alone in its section is left
#   out if it has no match. Of overlapping files, one cannot be left out alone:
#
#       a: key 1, v = 5 (older)      b: key 1, v = 9 (newer)      predicate v = 5: only a matches
#       without b, the scan would return a row that b has replaced
#
#   They are left out together if none matches, and only if each merged row is a stored row: sums of values that do not
#   match can match.
# - Data evolution tables: files with the same row ids are one group, because each holds other columns.
#
# A split whose files need no merge is raw convertible (`split_packing`), and any Parquet reader can read it.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress

import numpy as np
from attrs import evolve, frozen

from paimon.domain.lsm.sorted_run import Section, SortedRun, cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Mask, drain_files, files_at
from paimon.domain.merge.merge_engines import is_row_keeping
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.row_id_groups import first_row_id_of, group_by_row_range
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.scan.split_packing import (
    FileGroup,
    can_skip_merge,
    has_no_retracts,
    pack_files,
    pack_ranges,
    pack_sections,
)
from paimon.domain.scan.splits import DataSplit, DeletionFile

BucketKey = tuple[bytes, int]
"""A serialized partition and a bucket."""


@frozen
class BucketFiles:
    """The files of one bucket."""

    # serialized BinaryRow of the partition columns
    partition: bytes
    bucket: int
    # the number of buckets of the partition
    total_buckets: int
    # in the order in which they were added
    files: tuple[DataFileMeta, ...]
    # names of the files that can contain a selected row; None: all files
    matching: frozenset[str] | None = None
    # the row ids that a predicate can select by global indexes; None: all
    row_ids: RowIdRanges | None = None


def group_by_bucket(entries: EntryColumns, matching: Mask | None, drains: bool = False) -> list[BucketFiles]:
    """Group live files by partition and bucket, in the order in which they were added.

    `matching` marks the files that can contain a selected row; None means all files. With `drains`, nothing can be read
    from the files of the entries afterwards.
    """
    files = (drain_files if drains else files_at)(entries.files)
    keys = entries.addresses
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order], prepend=-(1 << 62), append=-(1 << 62)))
    firsts = order[edges[:-1]]
    groups = zip(firsts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    files = np.array(files, dtype=object)[order].tolist()
    marks = None if matching is None else matching[order]
    return [
        BucketFiles(
            entries.partition_rows[entries.partitions[first]],
            int(entries.buckets[first]),
            int(entries.total_buckets[first]),
            tuple(files[start:stop]),
            None if marks is None else frozenset(f.file_name for f in compress(files[start:stop], marks[start:stop])),
        )
        for first, start, stop in sorted(groups)
    ]


def pack_bucket(bucket: BucketFiles, rules: ReadRules) -> tuple[FileGroup, ...]:
    """Return the files of each split of a bucket."""
    files: Sequence[DataFileMeta] = bucket.files
    if rules.is_data_evolution:
        return pack_ranges(_select_groups(group_by_row_range(files), bucket.row_ids), rules.limits)
    if rules.is_ordered:
        files = sorted(files, key=lambda f: f.min_sequence_number)
    if not rules.merges:
        return pack_files(_select_files(files, bucket.matching), rules.limits)
    if rules.unmerged_above_0 and can_skip_merge(files):
        return pack_files(_select_files(files, bucket.matching), rules.limits)
    if rules.is_clustered and all(f.level > 0 for f in files):
        groups = pack_files(_select_files(files, bucket.matching), rules.limits)
        return tuple(evolve(group, raw_convertible=all(map(has_no_retracts, group.files))) for group in groups)
    found = cut_into_sections(files, rules.key_types)
    if bucket.matching is not None:
        found = prune_sections(found, bucket.matching, rules.engine)
    return pack_sections(found, rules.limits)


def _select_groups(
    groups: Sequence[tuple[DataFileMeta, ...]], row_ids: RowIdRanges | None
) -> Sequence[tuple[DataFileMeta, ...]]:
    """Return the groups of files that have selected rows, or rows without ids."""
    return groups if row_ids is None else [g for g in groups if (ids := _find_ids(g)) is None or row_ids.cut(*ids)]


def _find_ids(group: Sequence[DataFileMeta]) -> tuple[int, int] | None:
    """Return the row ids of a group: the first one, and the end."""
    first = min(map(first_row_id_of, group))
    return None if first < 0 else (first, max(first_row_id_of(file) + file.row_count for file in group))


def _find_row_id_ranges(files: Sequence[DataFileMeta], row_ids: RowIdRanges | None) -> tuple[tuple[int, int], ...]:
    """Return the selected row ids of the files of a split; none if all rows are selected, or some have no ids."""
    ids = None if row_ids is None else [_find_ids(group) for group in group_by_row_range(files)]
    if row_ids is None or ids is None or None in ids:
        return ()
    whole = [span for span in ids if span is not None]
    selected = [part for span in whole for part in row_ids.cut(*span)]
    return () if selected == whole else tuple(selected)


def _select_files(files: Sequence[DataFileMeta], matching: Collection[str] | None) -> Sequence[DataFileMeta]:
    return files if matching is None else [f for f in files if f.file_name in matching]


def prune_sections(sections: Sequence[Section], matching: Collection[str], engine: str) -> tuple[Section, ...]:
    """Return the sections, reduced to the files that can contain a selected row.

    A file that is alone in its section is pruned if none of its rows can match. Several overlapping files are pruned
    only together, and only if each merged row is a stored row.
    """
    remaining: list[Section] = []
    for section in sections:
        if len(section) == 1:
            files = tuple(f for f in section[0].files if f.file_name in matching)
            if files:
                remaining.append((SortedRun(files),))
        elif not is_row_keeping(engine) or any(f.file_name in matching for run in section for f in run.files):
            remaining.append(section)
    return tuple(remaining)


def assemble_splits(
    snapshot_id: int,
    bucket: BucketFiles,
    rules: ReadRules,
    directory: str,
    vectors: Mapping[str, DeletionFile],
) -> Iterator[DataSplit]:
    """Yield the splits of one bucket."""
    for group in pack_bucket(bucket, rules):
        deletions = tuple(vectors.get(f.file_name) for f in group.files) if vectors else ()
        yield DataSplit(
            snapshot_id=snapshot_id,
            partition=bucket.partition,
            bucket=bucket.bucket,
            total_buckets=bucket.total_buckets,
            bucket_path=directory,
            files=group.files,
            raw_convertible=group.raw_convertible,
            deletion_files=deletions if any(deletions) else (),
            row_id_ranges=_find_row_id_ranges(group.files, bucket.row_ids) if rules.is_data_evolution else (),
        )
