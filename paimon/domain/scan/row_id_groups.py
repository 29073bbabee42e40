"""Group the files that contain columns of the same rows, for tables with `data-evolution.enabled`.

Invariant: Files with overlapping ranges of row ids are in one group. If two of them contain a column, the file with the
larger sequence number is used.
Source: `DataEvolutionSplitGenerator`, `RangeHelper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DataFileMeta


def group_by_row_range(files: Sequence[DataFileMeta]) -> list[tuple[DataFileMeta, ...]]:
    """Group the files of one bucket, in any order, by their rows; the groups ascend by row id.

    Each group has its newest file first. A file without row ids is a group at the end.
    """
    with_row_ids = sorted((f for f in files if f.first_row_id is not None), key=first_row_id_of)
    groups: list[list[DataFileMeta]] = []
    end = -1
    for file in with_row_ids:
        if not groups or first_row_id_of(file) >= end:
            groups.append([])
        groups[-1].append(file)
        end = max(end, first_row_id_of(file) + file.row_count)
    without_row_ids = [(f,) for f in files if f.first_row_id is None]
    return [tuple(sorted(g, key=lambda f: -f.max_sequence_number)) for g in groups] + without_row_ids


def count_rows(files: Iterable[DataFileMeta]) -> int:
    """Return the rows of files; those with columns of the same rows count once. Deleted rows count, too."""
    main = [file for file in files if file.is_main_file]
    by_row_id = {file.first_row_id: file.row_count for file in main if file.first_row_id is not None}
    return sum(by_row_id.values()) + sum(file.row_count for file in main if file.first_row_id is None)


def find_anchor_file(files: Sequence[DataFileMeta]) -> DataFileMeta:
    """Return the file of a group that its deletion vector belongs to: the oldest that is no BLOB or vector file."""
    main = [file for file in files if file.is_main_file]
    return min(main or files, key=lambda file: (file.max_sequence_number, file.file_name))


def place_files(files: Sequence[DataFileMeta], main: DataFileMeta) -> list[tuple[int, DataFileMeta]]:
    """Return the dedicated files of a column that are read for the rows of a data file, with their first positions.

    A file that starts in the rows of a file with a larger sequence number is not read. Source: `SpecialFieldBunch`.
    """
    start = first_row_id_of(main)
    placed: list[tuple[int, DataFileMeta]] = []
    end, newest = start, 0
    for file in sorted(files, key=lambda file: (first_row_id_of(file), -file.max_sequence_number)):
        first = first_row_id_of(file)
        if placed and first < end and file.max_sequence_number <= newest:
            continue
        if first != end:
            raise CorruptTable(file.file_name, f"has rows from id {first}, but those from {end} are missing")
        placed.append((first - start, file))
        end, newest = first + file.row_count, file.max_sequence_number
    if end != start + main.row_count:
        raise CorruptTable(
            main.file_name, f"has rows up to id {start + main.row_count}, but its blob files up to {end}"
        )
    return placed


def first_row_id_of(file: DataFileMeta) -> int:
    """Return the id of the first row of a file; -1 if the file has no row ids."""
    return -1 if file.first_row_id is None else file.first_row_id
