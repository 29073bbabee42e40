"""Which entries of an ordered list of manifests are live.

Law: an ADD of an identity that is present is an error; a DELETE takes a present ADD away, otherwise it stays (its ADD
is in an earlier manifest). A history where no file comes back answers the same live files whether merged in order, or
by taking away all that any DELETE names. Source: `FileEntry.mergeEntries`,
`AbstractFileStoreScan.readAndMergeFileEntries`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.columns import EntryColumns, Integers, Mask
from paimon.domain.manifest.entries import FileKind, ManifestEntry


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """What is left when ADD and DELETE of one file cancel out, in the order of the entries.

    Raises
    ------
    CorruptTable
        A file is added twice.
    """
    merged: dict[tuple[object, ...], ManifestEntry] = {}
    for entry in entries:
        present = merged.get(entry.identity)
        if entry.kind is FileKind.DELETE:
            if present is not None and present.kind is FileKind.ADD:
                del merged[entry.identity]
            else:
                merged[entry.identity] = entry
        elif present is not None and present.kind is FileKind.ADD:
            raise _added_twice(entry.file.file_name)
        else:
            merged[entry.identity] = entry
    return list(merged.values())


def live_files(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """The files of a whole snapshot; a DELETE that is left over means that its manifests contradict each other."""
    merged = merge_entries(entries)
    for entry in merged:
        if entry.kind is FileKind.DELETE:
            raise CorruptTable(entry.file.file_name, "is deleted but was never added")
    return merged


def live_mask(columns: EntryColumns) -> Mask:
    """Marks the ADD entries that no DELETE entry names; `check_once` tells whether they fit each other."""
    added: Mask = columns.kinds == int(FileKind.ADD)
    deleted_rows = np.flatnonzero(~added)
    if len(deleted_rows):
        names = columns.files.field("_FILE_NAME")
        deleted = names.take(pa.array(deleted_rows))
        suspects = np.flatnonzero(added & pc.is_in(names, deleted).to_numpy(zero_copy_only=False))
        gone = set(_identities(columns, deleted_rows))
        hit = [row for row, identity in zip(suspects, _identities(columns, suspects), strict=True) if identity in gone]
        added[hit] = False
    return added


def check_once(live: EntryColumns) -> None:
    """CorruptTable where a file is added twice.

    Parameters
    ----------
    live : EntryColumns
        What `live_mask` marks, or those of them that are of interest.
    """
    if pc.count_distinct(live.files.field("_FILE_NAME")).as_py() == len(live):
        return
    seen: set[tuple[object, ...]] = set()
    for identity in _identities(live, np.arange(len(live))):
        if identity in seen:
            raise _added_twice(str(identity[3]))
        seen.add(identity)


def _identities(columns: EntryColumns, rows: Integers) -> list[tuple[object, ...]]:
    files = columns.files.at(rows)
    parts = [columns.partitions[rows].tolist(), columns.buckets[rows].tolist()]
    names = ("_LEVEL", "_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
    parts += [[tuple(v) if isinstance(v, list) else v for v in files.field(name).to_pylist()] for name in names]
    return list(zip(*parts, strict=True))


def _added_twice(name: str) -> CorruptTable:
    hint = "the manifests contradict each other"
    return CorruptTable(name, "is added twice without being deleted in between", hint=hint)
