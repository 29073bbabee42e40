"""Sorted runs, and the sections that a merge works through one after another.

Law: inside a run the key intervals of the files are disjoint and ascending; every key lies in one section only, so
sections merge apart from each other. Bounds of files are bounds, not necessarily stored keys. Source: `SortedRun`,
`IntervalPartition`.
"""

from __future__ import annotations

import heapq
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


def _runs(group: Sequence[_Keyed]) -> Section:
    """Append each file to the run that ends first, if it begins after that end; else open a run."""
    runs: list[list[DataFileMeta]] = []
    ends: list[tuple[Comparable, int]] = []
    for low, high, file in group:
        if ends and low > ends[0][0]:
            run = ends[0][1]
            heapq.heapreplace(ends, (high, run))
            runs[run].append(file)
        else:
            heapq.heappush(ends, (high, len(runs)))
            runs.append([file])
    return tuple(SortedRun(tuple(run)) for run in runs)
