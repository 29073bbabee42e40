"""Files of one bucket packed into splits, and which of them are read without merging.

Law: every file is in exactly one split; files whose keys overlap are in the same split, unless nothing is merged; a
split is raw convertible only if no key is in two of its files and none of them holds retracts, or deletion vectors or
first-row make each file speak for itself. Source: `AppendOnlySplitGenerator`, `MergeTreeSplitGenerator`,
`BinPacking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from attrs import frozen

from paimon.domain.lsm.sorted_run import Section
from paimon.domain.manifest.entries import DataFileMeta

T = TypeVar("T")


@frozen
class SplitLimits:
    """`target_bytes`: size of a split; `open_cost_bytes`: what a file counts at least."""

    target_bytes: int
    open_cost_bytes: int


@frozen
class FileGroup:
    """The files of one split, in reading order."""

    files: tuple[DataFileMeta, ...]
    raw_convertible: bool


def pack(items: Iterable[T], weight: Callable[[T], int], target: int) -> list[list[T]]:
    """Neighbours packed in order; a pack is full when the next item would exceed the target."""
    packs: list[list[T]] = []
    total = 0
    for item in items:
        size = weight(item)
        if not packs or total + size > target:
            packs.append([])
            total = 0
        packs[-1].append(item)
        total += size
    return packs


def pack_files(files: Sequence[DataFileMeta], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Files that are read one by one, in this order."""
    packs = pack(files, lambda f: max(f.file_size, limits.open_cost_bytes), limits.target_bytes)
    return tuple(FileGroup(tuple(p), raw_convertible=True) for p in packs)


def pack_ranges(groups: Sequence[tuple[DataFileMeta, ...]], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Files of the same rows together; a pack where each file holds rows of its own is read as it is."""
    packs = pack(groups, lambda g: max(sum(f.file_size for f in g), limits.open_cost_bytes), limits.target_bytes)
    return tuple(FileGroup(tuple(f for g in p for f in g), all(len(g) == 1 for g in p)) for p in packs)


def pack_sections(sections: Sequence[Section], limits: SplitLimits) -> tuple[FileGroup, ...]:
    """Sections of a merge tree; a pack where no two files overlap needs no merge."""
    packs = pack(sections, lambda s: max(_size(s), limits.open_cost_bytes), limits.target_bytes)
    return tuple(FileGroup(_files(p), raw_convertible=_is_raw(p)) for p in packs)


def _is_raw(sections: Sequence[Section]) -> bool:
    return all(len(s) == 1 for s in sections) and all(without_retracts(f) for f in _files(sections))


def without_retracts(file: DataFileMeta) -> bool:
    """Whether the file surely holds no -U or -D; files of older writers do not tell."""
    return file.delete_row_count == 0


def speak_for_themselves(files: Iterable[DataFileMeta]) -> bool:
    """Whether files need no merge that deletion vectors or first-row keep apart: compacted and free of retracts."""
    return all(f.level > 0 and without_retracts(f) for f in files)


def _files(sections: Iterable[Section]) -> tuple[DataFileMeta, ...]:
    return tuple(f for section in sections for run in section for f in run.files)


def _size(section: Section) -> int:
    return sum(run.file_size for run in section)
