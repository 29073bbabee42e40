"""Distribute the rows of a plan: shards for parallel readers, and slices by position.

Invariant: the shards of a plan are disjoint and contain all its rows, and each reader computes its own without the
others. Positions count the stored rows of the planned files, before predicates and deletion vectors.
Source: `with_shard` and `with_slice` of pypaimon's scans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from paimon.domain.errors import InvalidRequest
from paimon.domain.scan.row_id_groups import group_by_row_range
from paimon.domain.scan.splits import DataSplit


def select_shard(splits: Sequence[DataSplit], shard: int, shards: int) -> tuple[DataSplit, ...]:
    """Return the part of the splits that one of several readers reads, in the order of the plan.

    Files that are read as they are stored are divided by rows, and so are files with columns of the same rows. Files
    that must be merged stay together: their split belongs to the shard with its first row.

    >>> select_shard((), 0, 3)
    ()
    """
    if not isinstance(shard, int) or not isinstance(shards, int) or not 0 <= shard < shards:
        raise InvalidRequest(
            f"There is no shard {shard!r} of {shards!r}.",
            subject="shard",
            hint="give a shard from 0, below the number of shards",
        )
    rows, larger = divmod(sum(_count_rows(split) for split in splits), shards)
    first = shard * rows + min(shard, larger)
    return tuple(_cut_splits(splits, first, first + rows + (shard < larger)))


def select_slice(splits: Sequence[DataSplit], first: int, end: int) -> tuple[DataSplit, ...]:
    """Return the splits for the rows from position `first` up to, but not including, `end`, in the order of the plan.

    Raises `InvalidRequest` if a split must be merged, because its rows have no positions.
    """
    if not isinstance(first, int) or not isinstance(end, int) or not 0 <= first < end:
        raise InvalidRequest(
            f"Rows {first!r} to {end!r} are not a range.", subject="slice", hint="give 0 <= first < end"
        )
    merged = next((split for split in splits if not _can_be_cut(split)), None)
    if merged is not None:
        raise InvalidRequest(
            f"The rows of bucket {merged.bucket} have no positions, because its files are merged.",
            subject="slice",
            hint="use shards: with_shard(shard, shards)",
        )
    return tuple(_cut_splits(splits, first, end))


def _can_be_cut(split: DataSplit) -> bool:
    return (split.raw_convertible or _joins_columns(split)) and not split.before_files


def _joins_columns(split: DataSplit) -> bool:
    """Return whether files of the split have columns of the same rows (data evolution)."""
    return not split.raw_convertible and bool(split.files) and all(f.first_row_id is not None for f in split.files)


def _list_units(split: DataSplit) -> list[tuple[int, ...]]:
    """Return the positions of files that have the same rows, in reading order."""
    if not _joins_columns(split):
        return [(position,) for position in range(len(split.files))]
    positions = {id(file): position for position, file in enumerate(split.files)}
    return [tuple(positions[id(file)] for file in group) for group in group_by_row_range(split.files)]


def _count_rows(split: DataSplit) -> int:
    """Return the rows that are read of a split; rows of several files with their columns count once."""
    if not _joins_columns(split):
        return split.row_count
    return sum(end - first for first, end in (_find_range(split, unit) for unit in _list_units(split)))


def _find_range(split: DataSplit, unit: tuple[int, ...]) -> tuple[int, int]:
    """Return the positions of the rows to read of files with the same rows; a BLOB file may have a part of them."""
    return split.row_ranges[unit[0]] if split.row_ranges else (0, max(split.files[i].row_count for i in unit))


def _cut_splits(splits: Sequence[DataSplit], first: int, end: int) -> Iterator[DataSplit]:
    at = 0
    for split in splits:
        rows = _count_rows(split)
        if not _can_be_cut(split):
            if first <= at < end:
                yield split
        elif max(first, at) < min(end, at + rows):
            yield split if first <= at and at + rows <= end else _cut_split(split, first - at, end - at)
        at += rows


def _cut_split(split: DataSplit, first: int, end: int) -> DataSplit:
    """Return the rows of a split from one position to another, without the files that have none of them."""
    kept: list[int] = []
    ranges: list[tuple[int, int]] = []
    at = 0
    for unit in _list_units(split):
        start, stop = _find_range(split, unit)
        low, high = max(first - at, 0), min(end - at, stop - start)
        if low < high:
            kept += unit
            ranges += [(start + low, start + high)] * len(unit)
        at += stop - start
    return evolve(
        split,
        files=[split.files[i] for i in kept],
        deletion_files=[split.deletion_files[i] for i in kept] if split.deletion_files else (),
        row_ranges=ranges,
    )
