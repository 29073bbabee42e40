"""Find the files that can contain records of given primary keys, bucket by bucket.

Invariant: every file that can contain a record of a key remains, whatever the kind of the record. So the files that
remain, merged, give the same rows for these keys as all files of the bucket.
Source: `LocalTableQuery`, `LookupLevels`.
"""

# A scan plans for one predicate. A lookup has many small requests for one snapshot, so the files of the snapshot are
# arranged once, by partition, number of buckets and bucket, with the key range of each file:
#
#     day=1, 2 buckets    bucket 0    a: 2..40    b: 12..90    c: 60..99
#                         bucket 1    d: 1..33
#     day=2, 4 buckets    bucket 3    e: 7..7
#
# The keys of a request are grouped in the same way. For the keys 7, 40 and 70 of day=1, all in bucket 0:
#
#     file    by range    by its bloom filter      key    its files    read together
#     a       7 40        7 40                     7      a            7 in a
#     b       40 70       40                       40     a b          40 in a and b, merged
#     c       70          70                       70     c            70 in c
#
# 1. Two binary searches in the ascending keys find the keys in the range of a file.
# 2. A filter decides for each of these keys.
# 3. The keys with the same files are read together: then no file is read, and no row group of it, for the keys of
#    others. If that means many more reads of files, all keys are read together.
#
# A scan must not drop one of several overlapping files by a condition on values, because the file can hold the newest
# record of a row whose older record matches. A key is different: all records of a row have it. A file without the key
# has nothing to say about the row, for any merge engine.
#
# Splits without a fixed number of buckets are under number 0. If the primary key lacks a partition column, a key can be
# in any partition.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.engine_files import restrict_split
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.data_types import CharType, DataType

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
KeyFilter = Callable[[str, DataFileMeta, slice], Mask | None]
"""Marks the keys, in a slice of the ascending keys, that a file with its path can contain; None: all."""
_MOST_MORE_READS = 512
"""The most additional reads of files that a split may cost, so that each read is for few keys."""
_MOST_CELLS = 1 << 24
"""So many pairs of a file and a key, a byte each, are marked at a time."""


@frozen(eq=False)
class KeyedSplit:
    """A split with the smallest and the largest key of each file."""

    split: DataSplit
    # None: the range is unknown
    ranges: tuple[tuple[Comparable, Comparable] | None, ...]
    # of the files
    paths: tuple[str, ...]

    def narrow(self, keys: Sequence[Comparable], key_filter: KeyFilter) -> Iterator[tuple[DataSplit, Rows]]:
        """Yield the files to read together, as a split, with positions of the ascending keys that they can contain."""
        most_keys = max(1, _MOST_CELLS // len(self.split.files))
        for start in range(0, len(keys), most_keys):
            marked = self._mark_keys(keys, slice(start, min(start + most_keys, len(keys))), key_filter)
            is_read, in_files = marked.any(axis=1), marked.any(axis=0)
            if in_files.any():
                files, positions = np.flatnonzero(is_read), np.flatnonzero(in_files)
                for together, some in _group_keys(marked[is_read][:, positions]):
                    yield restrict_split(self.split, files[together].tolist()), start + positions[some]

    def _mark_keys(self, keys: Sequence[Comparable], part: slice, key_filter: KeyFilter) -> Mask:
        """Return for each file which keys, in a slice of all, it can contain."""
        split, start, end = self.split, part.start, part.stop
        marked = np.zeros((len(split.files), end - start), dtype=bool)
        for row, (path, file, limits) in enumerate(zip(self.paths, split.files, self.ranges, strict=True)):
            inside = part
            if limits is not None:
                inside = slice(bisect_left(keys, limits[0], start, end), bisect_right(keys, limits[1], start, end))
            if inside.start < inside.stop:
                admitted = key_filter(path, file, inside)
                marked[row, inside.start - start : inside.stop - start] = True if admitted is None else admitted
        return marked


def _group_keys(marked: Mask) -> Iterator[tuple[Mask, Mask]]:
    """Yield which files to read for which keys; each file and each key of the table of marks has one at least."""
    if marked.shape[1] > 1:
        sets, set_of = np.unique(marked, axis=1, return_inverse=True)
        if int(sets.sum()) <= len(marked) + _MOST_MORE_READS:
            for number in range(sets.shape[1]):
                yield sets[:, number], set_of.reshape(-1) == number
            return
    yield np.ones(marked.shape[0], dtype=bool), np.ones(marked.shape[1], dtype=bool)


@frozen(eq=False)
class KeyedFiles:
    """The splits of a snapshot by partition, number of buckets, and bucket."""

    partitions: dict[bytes, dict[int, dict[int, list[KeyedSplit]]]]

    @classmethod
    def of(cls, splits: Iterable[DataSplit], types: Sequence[DataType]) -> KeyedFiles:
        """Arrange the splits; `types` are those of the primary key without partition columns, if it orders files."""
        # Some formats return CHAR without the blanks that the stored bounds have.
        has_ranges = bool(types) and not any(isinstance(kind, CharType) for kind in types)
        found: dict[bytes, dict[int, dict[int, list[KeyedSplit]]]] = {}
        for split in splits:
            ranges = tuple(_find_range(file, types) if has_ranges else None for file in split.files)
            buckets = found.setdefault(split.partition, {}).setdefault(max(split.total_buckets, 0), {})
            buckets.setdefault(split.bucket, []).append(KeyedSplit(split, ranges, split.file_paths))
        return cls(found)


def _find_range(file: DataFileMeta, types: Sequence[DataType]) -> tuple[Comparable, Comparable]:
    return to_comparable_key(file.min_key, types), to_comparable_key(file.max_key, types)
