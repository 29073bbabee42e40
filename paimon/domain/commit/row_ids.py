"""Row tracking: assign row ids and sequence numbers to the new files of a commit.

Invariant: An id is assigned once, in the order of the files, which by default are grouped by partition. Files that
already have row ids keep them. The sequence number of a file is the id of the snapshot that added it.
Source: `RowTrackingCommitUtils`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from paimon.domain.commit.entries import Change
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry

ROW_ID_COLUMN = "_ROW_ID"


def assign_row_ids(change: Change, next_row_id: int, snapshot_id: int, by_partition: bool) -> tuple[Change, int]:
    """Return the change with row ids and sequence numbers in its new files, and the next free row id.

    The change is an APPEND or OVERWRITE, because the files of compactions keep their ids. `by_partition` gives the
    files of one partition consecutive ids (`row-tracking.partition-group-on-commit`).
    """
    entries = _group_by_partition(change.entries) if by_partition else list(change.entries)
    numbered: list[ManifestEntry] = []
    next_by_columns: dict[tuple[str, ...] | None, int] = {}
    main_first_id = next_row_id
    for entry in entries:
        file = entry.file
        if entry.kind is FileKind.ADD:
            file = _with_sequence(file, snapshot_id)
            if _needs_row_ids(file) and file.is_main_file:
                main_first_id, next_by_columns = next_row_id, {}
                file = evolve(file, first_row_id=main_first_id)
                next_row_id += file.row_count
            elif _needs_row_ids(file):
                start = next_by_columns.get(file.write_cols, main_first_id)
                file = evolve(file, first_row_id=start)
                next_by_columns[file.write_cols] = start + file.row_count
        numbered.append(evolve(entry, file=file))
    return evolve(change, entries=tuple(numbered)), next_row_id


def _group_by_partition(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.partition, []).append(entry)
    return [entry for group in groups.values() for entry in group]


def _with_sequence(file: DataFileMeta, snapshot_id: int) -> DataFileMeta:
    if file.min_sequence_number == 0:
        return evolve(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    return evolve(file, max_sequence_number=snapshot_id) if file.max_sequence_number == 0 else file


def _needs_row_ids(file: DataFileMeta) -> bool:
    written = file.write_cols or ()
    return file.file_source is FileSource.APPEND and file.first_row_id is None and ROW_ID_COLUMN not in written
