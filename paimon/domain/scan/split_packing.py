"""Pack the files of one bucket into splits, and decide which splits are read without merging.

A split is raw convertible if no key is in two of its files and none of them contains retracts. It is also raw
convertible if deletion vectors or first-row keep its files free of replaced rows.

Invariant: Each file is in exactly one split. Files with overlapping keys are in the same split, unless nothing is
merged.
Source: `AppendOnlySplitGenerator`, `MergeTreeSplitGenerator`, `BinPacking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from attrs import frozen

from paimon.domain.lsm.sorted_run import Section
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

T = TypeVar("T")


@frozen
class SplitLimits:
    """Sizes of splits."""

    target_bytes: int
    # the smallest size that a file counts with
    open_cost_bytes: int

    @classmethod
    def of(cls, options: TableOptions) -> SplitLimits:
        """Return the limits that table options set."""
        return cls(options.split_target_bytes, options.split_open_file_cost_bytes)

    def weigh(self, sizes: Iterable[int]) -> list[int]:
        """Return the sizes that items count with."""
        least = self.open_cost_bytes
        return [size if size > least else least for size in sizes]


@frozen
class FileGroup:
    """The files of one split, in reading order."""

    files: tuple[DataFileMeta, ...]
    raw_convertible: bool


def pack(items: Sequence[T], weights: Sequence[int], target: int) -> list[Sequence[T]]:
    """Pack adjacent items in order, up to a total weight of `target`; a larger item is a pack of its own."""
    if items and sum(weights) <= target:
        return [items]
    packs: list[list[T]] = []
    total = 0
    for item, size in zip(items, weights, strict=True):
        if not packs or total + size > target:
            packs.append([])
            total = 0
        packs[-1].append(item)
        total += size
    return list(packs)


def pack_files(files: Sequence[DataFileMeta], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Pack files that are read one after the other, in this order."""
    packs = pack(files, limits.weigh([f.file_size for f in files]), limits.target_bytes)
    return tuple(FileGroup(tuple(p), raw_convertible=True) for p in packs)


def pack_ranges(groups: Sequence[tuple[DataFileMeta, ...]], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Pack groups of files with the same rows. A pack in which each file has its own rows is raw convertible."""
    packs = pack(groups, limits.weigh([sum(f.file_size for f in g) for g in groups]), limits.target_bytes)
    return tuple(FileGroup(tuple(f for g in p for f in g), all(len(g) == 1 for g in p)) for p in packs)


def pack_sections(sections: Sequence[Section], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Pack the sections of an LSM tree. A pack without overlapping files and without retracts is raw convertible."""
    packs = pack(sections, limits.weigh([_section_size(s) for s in sections]), limits.target_bytes)
    return tuple(FileGroup(_list_files(p), raw_convertible=_is_raw(p)) for p in packs)


def _is_raw(sections: Sequence[Section]) -> bool:
    return all(len(s) == 1 for s in sections) and all(has_no_retracts(f) for f in _list_files(sections))


def has_no_retracts(file: DataFileMeta) -> bool:
    """Return whether the file contains no -U and -D rows. False if it is unknown, as for files of older writers."""
    return file.delete_row_count == 0


def can_skip_merge(files: Iterable[DataFileMeta]) -> bool:
    """Return whether files separated by deletion vectors or first-row need no merge: compacted, without retracts."""
    return all(f.level > 0 and has_no_retracts(f) for f in files)


def _list_files(sections: Iterable[Section]) -> tuple[DataFileMeta, ...]:
    return tuple(f for section in sections for run in section for f in run.files)


def _section_size(section: Section) -> int:
    return sum(run.file_size for run in section)
