"""Check whether updates of columns by row id still fit the snapshot that they are committed on.

Invariant: no update of another commit is lost. A file with new values of a column replaces the whole column of its
rows, so it conflicts with each later file that has the same column of some of these rows. Files of the same rows are
removed together.
Source: `ConflictDetection.checkRowIdExistence` and `checkForRowIdFromSnapshot`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict, InvalidRequest, RowUpdateConflict
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.scan.row_ranges import group_by_row_range

_Place = tuple[bytes, int]
"""A partition and a bucket."""


def check_row_updates(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse updates of rows that another commit removed, or whose columns it set after they were read.

    Parameters
    ----------
    live : iterable of ManifestEntry
        The live files of the partitions that the change touches.
    change : Change
        The change to publish; its `row_base` is the snapshot from which the rows were read.

    Raises
    ------
    CommitConflict
        The error lists the files.
    InvalidRequest
        The change sets one column of the same rows twice.
    """
    assert change.row_base is not None
    live = list(live)
    _check_removals(live, change)
    updates = _group_updates(change)
    present = _group_by_place(live, updates)
    for place, files in updates.items():
        for number, file in enumerate(files):
            if any(_overlaps(file, other) for other in files[:number]):
                raise InvalidRequest(
                    f"One commit sets the same column of rows from id {file.first_row_id} twice",
                    hint="update all rows of a column in one call, or commit after each call",
                )
            _check_update(file, present.get(place, ()), change.row_base)


def _check_removals(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse to remove some of the files of the same rows: another commit added files of them."""
    removed: dict[_Place, set[str]] = {}
    for entry in change.entries:
        if entry.kind is FileKind.DELETE and entry.file.first_row_id is not None:
            removed.setdefault((entry.partition, entry.bucket), set()).add(entry.file.file_name)
    for place, files in _group_by_place(live, removed).items():
        for group in group_by_row_range(files):
            remaining = [file for file in group if file.file_name not in removed[place]]
            if 0 < len(remaining) < len(group):
                raise RowUpdateConflict(
                    f"Another commit set columns of rows from id {remaining[0].first_row_id}, which are to be deleted",
                    files=[file.file_name for file in remaining],
                    hint="read the rows again, and repeat the delete",
                )


def _group_by_place(live: Iterable[ManifestEntry], places: Container[_Place]) -> dict[_Place, list[DataFileMeta]]:
    """Return the live files with row ids of some places."""
    found: dict[_Place, list[DataFileMeta]] = {}
    for entry in live:
        place = entry.partition, entry.bucket
        if place in places and entry.file.first_row_id is not None:
            found.setdefault(place, []).append(entry.file)
    return found


def _group_updates(change: Change) -> dict[_Place, list[DataFileMeta]]:
    found: dict[_Place, list[DataFileMeta]] = {}
    for entry in change.entries:
        if entry.kind is FileKind.ADD and entry.file.first_row_id is not None and entry.file.write_cols is not None:
            found.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return found


def _check_update(update: DataFileMeta, present: Iterable[DataFileMeta], base: int) -> None:
    range_of_rows = update.first_row_id, update.row_count
    same_rows = [file for file in present if (file.first_row_id, file.row_count) == range_of_rows]
    if not same_rows:
        raise CommitConflict(
            f"The rows from id {update.first_row_id} are no longer in the table", files=[update.file_name]
        )
    later = [f.file_name for f in present if f.max_sequence_number > base and _overlaps(update, f)]
    if later:
        raise RowUpdateConflict(
            f"Another commit set the same columns of rows from id {update.first_row_id}",
            files=later,
            hint="read the rows again, and repeat the update",
        )


def _overlaps(one: DataFileMeta, other: DataFileMeta) -> bool:
    """Return whether two files have a column of the same row."""
    assert one.first_row_id is not None and other.first_row_id is not None
    if one.first_row_id >= other.first_row_id + other.row_count:
        return False
    if other.first_row_id >= one.first_row_id + one.row_count:
        return False
    return one.write_cols is None or other.write_cols is None or not set(one.write_cols).isdisjoint(other.write_cols)
