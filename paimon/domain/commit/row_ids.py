"""Row tracking: what a commit writes into the files of tables whose rows have ids.

Law: ids are given once, in the order of the files (partition by partition by default), and never again; files that
already say their rows' ids keep them. A file's sequence number is the id of the snapshot that brought it. Source:
`RowTrackingCommitUtils`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from paimon.domain.commit.entries import Change
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry

ROW_ID_COLUMN = "_ROW_ID"


def with_row_ids(change: Change, next_row_id: int, snapshot_id: int, by_partition: bool) -> tuple[Change, int]:
    """The change with row ids and sequence numbers in its new files, and the first id that is free after it.

    Parameters
    ----------
    change : Change
        An APPEND or OVERWRITE; compactions keep what their files say.
    next_row_id : int
        The first id that is free before it.
    snapshot_id : int
        The snapshot that it becomes.
    by_partition : bool
        `row-tracking.partition-group-on-commit`: files of one partition get ids that follow one another.
    """
    entries = _grouped(change.entries) if by_partition else list(change.entries)
    numbered: list[ManifestEntry] = []
    beside: dict[tuple[str, ...] | None, int] = {}
    main_start = next_row_id
    for entry in entries:
        file = entry.file
        if entry.kind is FileKind.ADD:
            file = _with_sequence(file, snapshot_id)
            if _wants_ids(file) and _is_main(file):
                main_start, beside = next_row_id, {}
                file = evolve(file, first_row_id=main_start)
                next_row_id += file.row_count
            elif _wants_ids(file):
                start = beside.get(file.write_cols, main_start)
                file = evolve(file, first_row_id=start)
                beside[file.write_cols] = start + file.row_count
        numbered.append(evolve(entry, file=file))
    return evolve(change, entries=tuple(numbered)), next_row_id


def _grouped(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.partition, []).append(entry)
    return [entry for group in groups.values() for entry in group]


def _with_sequence(file: DataFileMeta, snapshot_id: int) -> DataFileMeta:
    if file.min_sequence_number == 0:
        return evolve(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    return evolve(file, max_sequence_number=snapshot_id) if file.max_sequence_number == 0 else file


def _wants_ids(file: DataFileMeta) -> bool:
    written = file.write_cols or ()
    return file.file_source is FileSource.APPEND and file.first_row_id is None and ROW_ID_COLUMN not in written


def _is_main(file: DataFileMeta) -> bool:
    """Blob and vector files hold columns of the rows of the main file before them."""
    return not file.file_name.endswith(".blob") and ".vector." not in file.file_name
