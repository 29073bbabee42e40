"""Files with their key ranges, sorted runs, and the sections of a bucket that are merged independently.

Invariant: the key ranges of the files of a run are disjoint and ascending. Each key lies in one section only. The
bounds of files are bounds; a file need not store them as keys. Where `sort_oldest_first` returns an order, of two
records with the same key the one in the later file has the larger sequence number.

Source: `SortedRun`, `IntervalPartition`, `MergeTreeWriter` (sequence numbers ascend within a bucket).
"""

# A sorted run is a sequence of files with ascending, disjoint keys, so it is read one file at a time. Files of a bucket
# in any order become sections: key ranges that no file crosses. Each section is merged on its own, with as few runs as
# possible:
#
#     keys     1 .... 5 .... 10 .... 15 .... 20
#     files    [  a  ]  [  c  ]      [ d ]               section 1: runs (a c) and (b)
#                [   b   ]           [ e    ]            section 2: runs (d) and (e)
#
# 1. Files are sorted by first key. A file that begins after the highest key so far begins a section.
# 2. In a section, each file is appended to the run that ends first, if it begins after that end; otherwise it opens a
#    run. This interval partitioning needs as many runs as files overlap at one key, and not more.
#
# The heap of open runs is a copy of Java's `PriorityQueue`, not `heapq`: the runs of a section are in the order of
# Java's heap, and where a NaN in a user sequence makes records incomparable, the result depends on that order.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


@frozen
class SortedRun:
    """Files whose key ranges are disjoint and ascending."""

    files: tuple[DataFileMeta, ...]

    @property
    def level(self) -> int | None:
        """The level of all files; None where they are on several levels."""
        levels = {f.level for f in self.files}
        return levels.pop() if len(levels) == 1 else None

    @property
    def row_count(self) -> int:
        """The number of stored rows, deleted ones included."""
        return sum(f.row_count for f in self.files)

    @property
    def file_size(self) -> int:
        """The size of all files in bytes."""
        return sum(f.file_size for f in self.files)


@frozen
class KeyedFile:
    """A file with its smallest (`low`) and largest (`high`) key as comparable values."""

    file: DataFileMeta
    low: Comparable
    high: Comparable

    @classmethod
    def of(cls, file: DataFileMeta, key_types: Sequence[DataType]) -> KeyedFile:
        """Return a file with its keys as comparable values; without types, its range overlaps all others."""
        if not key_types:
            return cls(file, (), ())
        return cls(file, to_comparable_key(file.min_key, key_types), to_comparable_key(file.max_key, key_types))

    def overlaps(self, other: KeyedFile) -> bool:
        """Return whether both files of a bucket can hold the same key."""
        return self.low <= other.high and other.low <= self.high


Section = tuple[SortedRun, ...]
"""The files of one closed key range, as the smallest number of sorted runs that hold them."""


def cut_into_sections(files: Sequence[DataFileMeta], key_types: Sequence[DataType]) -> tuple[Section, ...]:
    """Cut a bucket's files into sections of disjoint key ranges, ascending; without types, into one."""
    return cut_keyed_files(KeyedFile.of(f, key_types) for f in files)


def cut_keyed_files(files: Iterable[KeyedFile]) -> tuple[Section, ...]:
    """Cut files in any order into sections of disjoint ranges, ascending."""
    keyed = sorted(files, key=lambda file: (file.low, file.high))
    return tuple(_runs(group) for group in _group_overlapping(keyed))


def _group_overlapping(keyed: Sequence[KeyedFile]) -> Iterator[list[KeyedFile]]:
    """Yield groups of files whose key ranges overlap, ascending by key."""
    group: list[KeyedFile] = []
    highest: Comparable = ()
    for file in keyed:
        if group and file.low > highest:
            yield group
            group = []
        highest = max(highest, file.high) if group else file.high
        group.append(file)
    if group:
        yield group


_OpenRun = tuple[Comparable, list[DataFileMeta]]
"""The last key of a run that may still grow, and its files."""


def _runs(group: Sequence[KeyedFile]) -> Section:
    """Append each file to the run that ends first, if the file begins after that end; otherwise open a run.

    The order of runs is that of Java's heap. Where a NaN orders records, it matters which runs are merged first.
    """
    heap: list[_OpenRun] = []
    for keyed in group:
        end, files = _pop_run(heap) if heap else (keyed.low, [])
        if files and keyed.low > end:
            files.append(keyed.file)
            _push_run(heap, (keyed.high, files))
            continue
        _push_run(heap, (keyed.high, [keyed.file]))
        if files:
            _push_run(heap, (end, files))
    return tuple(SortedRun(tuple(files)) for _, files in heap)


def _push_run(heap: list[_OpenRun], run: _OpenRun) -> None:
    """Add a run to the heap as `PriorityQueue.offer` does: move it up until its parent does not end later."""
    heap.append(run)
    position = len(heap) - 1
    while position and heap[(position - 1) // 2][0] > run[0]:
        heap[position] = heap[(position - 1) // 2]
        position = (position - 1) // 2
    heap[position] = run


def _pop_run(heap: list[_OpenRun]) -> _OpenRun:
    """Remove the first run as `PriorityQueue.poll` does: move the last run down until no child ends earlier."""
    first, last = heap[0], heap.pop()
    position = 0
    while 2 * position + 1 < len(heap):
        child = 2 * position + 1
        if child + 1 < len(heap) and heap[child + 1][0] < heap[child][0]:
            child += 1
        if not heap[child][0] < last[0]:
            break
        heap[position] = heap[child]
        position = child
    if heap:
        heap[position] = last
    return first


def sort_oldest_first(files: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...] | None:
    """Return the files from oldest to newest; None if numbers overlap in a way that levels do not explain."""
    groups: dict[tuple[int, int], list[DataFileMeta]] = defaultdict(list)
    for position, file in enumerate(files):
        groups[(file.level, 0) if file.level > 0 else (0, position)].append(file)
    spans = sorted(
        (min(f.min_sequence_number for f in group), max(f.max_sequence_number for f in group), number)
        for number, group in enumerate(groups.values())
    )
    if any(later[0] <= earlier[1] for earlier, later in pairwise(spans)):
        return None
    ordered = list(groups.values())
    return tuple(file for _, _, number in spans for file in ordered[number])
