"""Files that hold columns of the same rows, under `data-evolution.enabled`.

Law: files whose ranges of row ids overlap belong together and are never parted; of two that hold a column the newer
one, by sequence number, is believed. Source: `DataEvolutionSplitGenerator`, `RangeHelper`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.manifest.entries import DataFileMeta


def range_groups(files: Sequence[DataFileMeta]) -> list[tuple[DataFileMeta, ...]]:
    """The files by the rows they hold, in the order of row ids; in each group the newest first.

    A file without row ids stands alone, at the end.
    """
    placed = sorted((f for f in files if f.first_row_id is not None), key=first_row)
    groups: list[list[DataFileMeta]] = []
    end = -1
    for file in placed:
        if not groups or first_row(file) >= end:
            groups.append([])
        groups[-1].append(file)
        end = max(end, first_row(file) + file.row_count)
    alone = [(f,) for f in files if f.first_row_id is None]
    return [tuple(sorted(g, key=lambda f: -f.max_sequence_number)) for g in groups] + alone


def first_row(file: DataFileMeta) -> int:
    """The id of the first row; -1 where a file has none."""
    return -1 if file.first_row_id is None else file.first_row_id
