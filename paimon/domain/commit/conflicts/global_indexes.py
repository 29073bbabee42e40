"""Keep global indexes true: check new ones, and those of columns that a change sets.

Invariant: an index file that stays in the table names, for each row of its range, the value that reads show. Rows that
are appended are outside of its range, deleted rows do not matter, and compactions keep values and row ids.
Source: `MergeIntoUpdateChecker` and `IndexManifestFileHandler.GlobalIndexCombiner`; Java checks updates of MERGE INTO.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict, InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta, FileKind, GlobalIndex, IndexManifestEntry, ManifestEntry
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import CommitKind

UPDATE_ACTION = "global-index.column-update-action"
DROP_ACTION = "drop_partition_index"


def drop_stale_indexes(change: Change, held: Iterable[IndexManifestEntry], schema: TableSchema, action: str) -> Change:
    """Return the change without the global indexes that its updates make wrong, or refuse the change.

    `schema` is that of the commit. The option `global-index.column-update-action` has the action.
    """
    updates = [e for e in change.entries if e.kind is FileKind.ADD and e.file.first_row_id is not None]
    if not updates or change.kind is CommitKind.COMPACT:
        return change
    indexes = [entry for entry in held if entry.global_index is not None]
    stale = {
        (update.partition, field_id)
        for entry in indexes
        for update in updates
        for field_id in _indexed_ids(entry)
        if entry.partition == update.partition and _sets(update.file, entry, field_id, schema)
    }
    if not stale:
        return change
    names = sorted({f.name for f in schema.fields for _, field_id in stale if f.id == field_id})
    if names and action != DROP_ACTION:  # the index of a dropped column is of no use
        raise InvalidRequest(
            f"Column {names[0]!r} has a global index, which this change of its values would make wrong",
            subject=names[0],
            hint=f"drop the index first, or set {UPDATE_ACTION!r} to {DROP_ACTION}",
        )
    known = {e.file_name for e in change.index if e.kind is FileKind.DELETE}
    dropped = (
        evolve(entry, kind=FileKind.DELETE)
        for entry in indexes
        if any((entry.partition, field_id) in stale for field_id in _indexed_ids(entry))
        and entry.file_name not in known
    )
    return evolve(change, index=(*dropped, *change.index))


def _indexed_ids(entry: IndexManifestEntry) -> tuple[int, ...]:
    """Return the ids of the columns of an index."""
    index = _index_of(entry)
    return (index.index_field_id, *(index.extra_field_ids or ()))


def _index_of(entry: IndexManifestEntry) -> GlobalIndex:
    assert entry.global_index is not None
    return entry.global_index


def _sets(file: DataFileMeta, entry: IndexManifestEntry, field_id: int, schema: TableSchema) -> bool:
    """Return whether a new file has values of a column, by its id, in the range of an index."""
    names = {f.name for f in schema.fields if f.id == field_id}
    # a file of another schema may know the column by another name
    may_set = file.write_cols is None or file.schema_id != schema.id or not names.isdisjoint(file.write_cols)
    return may_set and _overlaps(file, _index_of(entry))


def _overlaps(file: DataFileMeta, index: GlobalIndex) -> bool:
    first = file.first_row_id
    return first is not None and first <= index.row_range_end and index.row_range_start < first + file.row_count


def check_new_indexes(
    live: Iterable[ManifestEntry], held: Iterable[IndexManifestEntry], change: Change, schema: TableSchema
) -> None:
    """Refuse new global indexes of rows that have one of the same type and column, or that others changed meanwhile.

    `live` has at least the files of the partitions of the indexes. The files that were read are in `change.looked_up`.
    """
    removed = {e.file_name for e in change.index if e.kind is FileKind.DELETE}
    remaining = [e for e in held if e.global_index is not None and e.file_name not in removed]
    read = {(partition, name) for partition, _, name in change.looked_up}
    live = list(live)
    for entry in change.index:
        if entry.kind is FileKind.ADD and entry.global_index is not None:
            _check_overlap(entry, remaining)
            _check_values(entry, live, read, schema)


def _check_overlap(entry: IndexManifestEntry, held: Iterable[IndexManifestEntry]) -> None:
    index = _index_of(entry)
    for other in held:
        known = _index_of(other)
        if (
            other.index_type == entry.index_type
            and known.index_field_id == index.index_field_id
            and known.row_range_start <= index.row_range_end
            and index.row_range_start <= known.row_range_end
        ):
            raise CommitConflict(
                f"Rows from id {index.row_range_start} already have a global index of this column",
                files=[other.file_name],
                hint="create the index again, which indexes the other rows, or drop it first",
            )


def _check_values(
    entry: IndexManifestEntry,
    live: Iterable[ManifestEntry],
    read: Collection[tuple[bytes, str]],
    schema: TableSchema,
) -> None:
    index = _index_of(entry)
    names: Mapping[int, str] = {f.id: f.name for f in schema.fields}
    name = names.get(index.index_field_id)
    for found in live:
        file = found.file
        is_known = (found.partition, file.file_name) in read
        if is_known or found.partition != entry.partition or not _overlaps(file, index):
            continue
        # a file of another schema may know the column by another name
        if file.write_cols is None or name in file.write_cols or file.schema_id != schema.id:
            raise CommitConflict(
                f"Another commit set values of rows from id {file.first_row_id} while their index was built",
                files=[file.file_name],
                hint="create the index again",
            )
