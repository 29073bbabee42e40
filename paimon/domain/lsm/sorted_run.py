"""Sorted runs, and the sections that a merge works through one after another.

Law: inside a run the key intervals of the files are disjoint and ascending; every key lies in one section only, so
sections merge apart from each other. Bounds of files are bounds, not necessarily stored keys. Source: `SortedRun`,
`IntervalPartition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from paimon.domain.lsm.keys import Comparable, comparable
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


@frozen
class SortedRun:
    """Files whose key intervals follow one another."""

    files: tuple[DataFileMeta, ...]

    @property
    def level(self) -> int | None:
        """The level of all its files; None where they come from several."""
        levels = {f.level for f in self.files}
        return levels.pop() if len(levels) == 1 else None

    @property
    def row_count(self) -> int:
        """Stored rows."""
        return sum(f.row_count for f in self.files)

    @property
    def file_size(self) -> int:
        """Bytes of its files."""
        return sum(f.file_size for f in self.files)


Section = tuple[SortedRun, ...]
"""The fewest sorted runs that hold the files of one closed key interval."""

_Keyed = tuple[Comparable, Comparable, DataFileMeta]


def sections(files: Sequence[DataFileMeta], key_types: Sequence[DataType]) -> tuple[Section, ...]:
    """Cut files into sections of disjoint key intervals, ascending, each as the fewest sorted runs.

    Parameters
    ----------
    files : sequence of DataFileMeta
        Files of one bucket, in any order.
    key_types : sequence of DataType
        Types of the trimmed primary key, in key order.
    """
    keyed = [(comparable(f.min_key, key_types), comparable(f.max_key, key_types), f) for f in files]
    keyed.sort(key=lambda entry: entry[:2])
    return tuple(_runs(group) for group in _overlapping(keyed))


def _overlapping(keyed: Sequence[_Keyed]) -> Iterator[list[_Keyed]]:
    group: list[_Keyed] = []
    highest: Comparable = ()
    for entry in keyed:
        if group and entry[0] > highest:
            yield group
            group = []
        highest = max(highest, entry[1]) if group else entry[1]
        group.append(entry)
    if group:
        yield group


_Open = tuple[Comparable, list[DataFileMeta]]
"""A run that may still grow, led by where it ends."""


def _runs(group: Sequence[_Keyed]) -> Section:
    """Append each file to the run that ends first, if it begins after that end; else open a run.

    Runs stand as in the heap that Java keeps them in: where a NaN orders records, it matters which runs meet first.
    """
    heap: list[_Open] = []
    for low, high, file in group:
        end, files = _popped(heap) if heap else (low, [])
        if files and low > end:
            files.append(file)
            _pushed(heap, (high, files))
            continue
        _pushed(heap, (high, [file]))
        if files:
            _pushed(heap, (end, files))
    return tuple(SortedRun(tuple(files)) for _, files in heap)


def _pushed(heap: list[_Open], run: _Open) -> None:
    """`PriorityQueue.offer`: up from the end, until the parent does not end later."""
    heap.append(run)
    place = len(heap) - 1
    while place and heap[(place - 1) // 2][0] > run[0]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = run


def _popped(heap: list[_Open]) -> _Open:
    """`PriorityQueue.poll`: the last one goes down from the top, until no child ends earlier."""
    first, last = heap[0], heap.pop()
    place = 0
    while 2 * place + 1 < len(heap):
        child = 2 * place + 1
        if child + 1 < len(heap) and heap[child + 1][0] < heap[child][0]:
            child += 1
        if not heap[child][0] < last[0]:
            break
        heap[place] = heap[child]
        place = child
    if heap:
        heap[place] = last
    return first
