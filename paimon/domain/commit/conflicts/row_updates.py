"""Check whether changes of rows by their ids still fit the snapshot that they are committed on.

Invariant: a change is refused if another commit changed rows of a group that it read: if it set a column that the
change read or set, or deleted rows of the group. Append tables refuse changes of the same file in the same way. Files
of the same rows are removed together.
Source: `ConflictDetection.checkRowIdExistence` and `checkForRowIdFromSnapshot`, which compare columns that are set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict, DeletionVectorConflict, InvalidRequest, RowUpdateConflict
from paimon.domain.manifest.entries import DELETION_VECTORS, DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.scan.row_id_groups import first_row_id_of, group_by_row_range

_Place = tuple[bytes, int]
"""A partition and a bucket."""
_READ_AGAIN = "read the rows again, and repeat the delete"


def check_row_updates(live: Iterable[ManifestEntry], held: Iterable[IndexManifestEntry], change: Change) -> None:
    """Refuse changes of rows that others changed after `change.row_base`; `live` and `held` are the base."""
    assert change.row_base is not None
    live = list(live)
    _check_removals(live, change)
    updates = _group_updates(change)
    present = _group_by_place(live, {*updates, *((p, b) for p, b, _ in change.row_groups)})
    for place, files in updates.items():
        for number, file in enumerate(files):
            if any(_overlaps(file, other) for other in files[:number]):
                raise InvalidRequest(
                    f"One commit sets the same column of rows from id {file.first_row_id} twice",
                    hint="update all rows of a column in one call, or commit after each call",
                )
            _check_update(file, present.get(place, ()), change.row_base)
    _check_groups(present, held, change)


def _check_groups(
    present: Mapping[_Place, Sequence[DataFileMeta]], held: Iterable[IndexManifestEntry], change: Change
) -> None:
    """Refuse a change of rows if another commit set columns that it read, or deleted rows of the same groups."""
    assert change.row_base is not None
    groups = {
        (*place, group[0].first_row_id): group
        for place, files in present.items()
        for group in group_by_row_range(files)
    }
    deleted = {
        (e.partition, e.bucket, r.data_file): r.cardinality
        for e in held if e.index_type == DELETION_VECTORS
        for r in e.deletion_vectors or ()
    }  # fmt: skip
    for partition, bucket, read in change.row_groups:
        files = groups.get((partition, bucket, read.first_row_id), ())
        later = [f.file_name for f in files if f.max_sequence_number > change.row_base and _has_column(f, read.columns)]
        if later:
            raise RowUpdateConflict(
                f"Another commit set columns of rows from id {read.first_row_id}, from which this change was computed",
                files=later,
                hint="read the rows again, and repeat the change",
            )
        counts = [deleted.get((partition, bucket, f.file_name), 0) for f in files]
        if files and (None in counts or sum(filter(None, counts)) != read.deleted_rows):
            raise DeletionVectorConflict(
                f"Another commit changed the deletion vectors of rows from id {read.first_row_id}",
                files=[f.file_name for f in files],
                hint="read the rows again, and repeat the change",
            )


def _has_column(file: DataFileMeta, columns: Sequence[str] | None) -> bool:
    return columns is None or file.write_cols is None or not set(columns).isdisjoint(file.write_cols)


def check_joined_rows(live: Iterable[ManifestEntry], change: Change) -> None:
    """Refuse a compaction if another commit set columns of its rows: their files would have different rows."""
    live = list(live)
    hint = "compact again"
    _check_removals((entry for entry in live if entry.file.is_main_file), change, "compacted", hint)
    joined = [e for e in change.entries if e.kind is FileKind.ADD and e.file.first_row_id is not None]
    places = {(e.partition, e.bucket) for e in joined}
    dedicated = _group_by_place((entry for entry in live if not entry.file.is_main_file), places)
    ordered = {place: sorted(files, key=first_row_id_of) for place, files in dedicated.items()}
    for entry in joined:
        files = ordered.get((entry.partition, entry.bucket), [])
        name = _find_partial_column(entry.file, files)
        if name is not None:
            raise RowUpdateConflict(
                f"Another commit set column {name!r} of some of the rows from id {entry.file.first_row_id}, "
                "which are to be compacted",
                files=[entry.file.file_name],
                hint=hint,
            )


def _find_partial_column(joined: DataFileMeta, dedicated: Sequence[DataFileMeta]) -> str | None:
    """Return a column of dedicated files, in ascending order of rows, that lack some of the rows of a file."""
    first = first_row_id_of(joined)
    last = first + joined.row_count
    ends: dict[str, int] = {}
    for place in range(*(bisect_left(dedicated, row, key=first_row_id_of) for row in (first, last))):
        file = dedicated[place]
        for name in file.write_cols or ():
            end = ends.setdefault(name, first)
            if first_row_id_of(file) <= end:
                ends[name] = max(end, first_row_id_of(file) + file.row_count)
    return next((name for name, end in ends.items() if end < last), None)


def _check_removals(
    live: Iterable[ManifestEntry], change: Change, done: str = "deleted", hint: str = _READ_AGAIN
) -> None:
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
                    f"Another commit set columns of rows from id {remaining[0].first_row_id}, which are to be {done}",
                    files=[file.file_name for file in remaining],
                    hint=hint,
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
    # BLOB files keep their ranges when a compaction joins the other files: they fit only new values of their column
    if not any(f.is_main_file or (not update.is_main_file and _overlaps(update, f)) for f in same_rows):
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
