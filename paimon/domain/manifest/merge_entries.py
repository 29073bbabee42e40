"""Find the live entries in an ordered list of manifests.

An ADD of an identity that is present is an error. A DELETE removes a present ADD; otherwise the DELETE stays, because
its ADD is in an earlier manifest.

Invariant: If no deleted file is added again, merging in order and removing all deleted identities give the same files.
Source: `FileEntry.mergeEntries`, `AbstractFileStoreScan.readAndMergeFileEntries`.
"""

# A snapshot is a list of manifests, and its files are what remains when entries are applied in order. Two ways exist:
#
#     manifest 1   + a (L0)   + b (L0)              in order:      {a b} -> {b, a'} -> {a' d}
#     manifest 2   - a (L0)   + a' = a on L5        by columns:    ADDs a b a' d;  deleted {a, b};  live: a' d
#     manifest 3   - b (L0)   + d
#
# An identity is partition, bucket, level, name, extra files, embedded index and path: a and a' are the same physical
# file on two levels, and two identities. `merge_entries` goes in order, and keeps a DELETE whose ADD is not in the
# list; that is what a minor merge of manifests and a range of deltas need. `mark_live` ignores the order: of a whole
# snapshot, an ADD is live if no DELETE names it. The results are equal as long as no identity is added again after its
# deletion.
#
# Columns are faster because nearly all entries are ADDs whose name no DELETE has. Only those that share a name with a
# DELETE are compared as complete identities.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.checked_columns import to_mask
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries, in order, that remain when the ADD and the DELETE of one file cancel out.

    `entries` are in the order of their manifests. A file that is added twice raises `CorruptTable`.
    """
    merged: dict[tuple[object, ...], ManifestEntry] = {}
    for entry in entries:
        present = merged.get(entry.identity)
        if present is None or present.kind is FileKind.DELETE:
            merged[entry.identity] = entry
        elif entry.kind is FileKind.DELETE:
            del merged[entry.identity]
        else:
            raise _added_twice_error(entry.file.file_name)
    return list(merged.values())


def live_files(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the live files of a whole snapshot.

    If manifests contradict each other (a file added twice, or deleted without being added), `CorruptTable` is raised.
    """
    merged = merge_entries(entries)
    for entry in merged:
        if entry.kind is FileKind.DELETE:
            raise CorruptTable(entry.file.file_name, "is deleted but was never added")
    return merged


def mark_merged(columns: EntryColumns) -> Mask:
    """Mark the entries that `merge_entries` leaves; a file that is added twice raises `CorruptTable`."""
    left = np.ones(len(columns), dtype=bool)
    names = columns.files.field("_FILE_NAME").dictionary_encode().indices.to_numpy()
    suspects = np.flatnonzero(np.bincount(names)[names] > 1)
    adds = (columns.kinds == int(FileKind.ADD)).tolist()
    present: dict[tuple[object, ...], int] = {}
    for row, identity in zip(suspects.tolist(), _list_identities(columns, suspects), strict=True):
        before = present.get(identity)
        if before is None or not adds[before]:
            present[identity] = row
            if before is not None:
                left[before] = False
        elif adds[row]:
            raise _added_twice_error(str(identity[3]))
        else:
            left[[present.pop(identity), row]] = False
    return left


def mark_kept(columns: EntryColumns, deletes: EntryColumns) -> Mask:
    """Mark the ADD entries whose files none of the DELETE entries `deletes` names."""
    kept: Mask = columns.kinds == int(FileKind.ADD)
    if len(deletes):
        names = columns.files.field("_FILE_NAME")
        suspects = np.flatnonzero(kept & to_mask(pc.is_in(names, deletes.files.field("_FILE_NAME"))))
        gone = set(_list_identities(deletes, np.arange(len(deletes))))
        found = zip(suspects.tolist(), _list_identities(columns, suspects), strict=True)
        kept[[row for row, identity in found if identity in gone]] = False
    return kept


def mark_live(columns: EntryColumns) -> Mask:
    """Mark the ADD entries that no DELETE entry names.

    `check_added_once` checks that the entries agree with each other.
    """
    return mark_kept(columns, columns.filter(columns.kinds == int(FileKind.DELETE)))


def check_added_once(live: EntryColumns) -> None:
    """Refuse files that are added twice; `live` are entries that `mark_live` marks, or a part of them."""
    if len(live.files.field("_FILE_NAME").unique()) == len(live):
        return
    seen: set[tuple[object, ...]] = set()
    for identity in _list_identities(live, np.arange(len(live))):
        if identity in seen:
            raise _added_twice_error(str(identity[3]))
        seen.add(identity)


def _list_identities(columns: EntryColumns, rows: Integers) -> list[tuple[object, ...]]:
    files = columns.files.take(rows)
    partitions = [columns.partition_rows[place] for place in columns.partitions[rows].tolist()]
    parts: list[list[Any]] = [partitions, columns.buckets[rows].tolist()]
    names = ("_LEVEL", "_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
    parts += [[tuple(v) if isinstance(v, list) else v for v in files.field(name).to_pylist()] for name in names]
    return list(zip(*parts, strict=True))


def _added_twice_error(name: str) -> CorruptTable:
    hint = "the manifests contradict each other; roll back to an earlier snapshot"
    return CorruptTable(name, "is added twice without a delete in between", hint=hint)
