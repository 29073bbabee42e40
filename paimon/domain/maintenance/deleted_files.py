"""Compute the data files that a range of snapshots removes.

Whether another reference still needs a removed file is a separate check (`paimon.operations.expire`).

Invariant: A file is removed if a DELETE names it and the file is not live at the end of the range. A file that only
moved to another level, or got another index, is not removed.
Source: `FileDeletionBase.getDataFileToDelete`.
"""

# The delta of a snapshot names what changed against the one before it. If snapshots 1 to 3 expire, and 4 is the first
# that stays, the files that the deltas of 2 to 4 delete belong to no snapshot from 4 on:
#
#     delta of 2   + a  + b
#     delta of 3   - a          + a (level 5)      an upgrade: the file a stays, on another level
#     delta of 4   - b  - c     + d                b and c are removed; c is from before the range
#
# - A physical file is known by partition, bucket, directory and name; an entry also has a level and extra files. So a
#   file can be deleted and added in one delta, in any order: it is removed only if no entry adds it, then or later.
# - Extra files (indexes) go with their file. An entry that replaces only the index deletes the old extra file.
# - Without a changelog producer, the files that writers appended are the changelog of a snapshot. If changelogs live
#   longer than snapshots, these files stay, although compactions have removed them (`keep_appended`).

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.manifest.entries import FileKind, FileSource, ManifestEntry

FileKey = tuple[bytes, int, str | None, str]
"""Partition, bucket, external directory and name of one physical file."""


def find_removed_files(deltas: Iterable[Iterable[ManifestEntry]], keep_appended: bool = False) -> dict[FileKey, None]:
    """Return the files, with extra files, that consecutive snapshots remove; the deltas ascend by snapshot.

    `keep_appended` skips files from writers or of unknown source: they are the changelog if there is no producer.
    """
    removed: dict[FileKey, None] = {}
    for delta in deltas:
        entries = list(delta)
        live = {e.identity: e for e in entries if e.kind is FileKind.ADD}
        deleted = {e.identity for e in entries if e.kind is FileKind.DELETE}
        for entry in entries:
            if entry.kind is FileKind.DELETE and not (keep_appended and _is_appended(entry)):
                removed.update(dict.fromkeys(list_file_keys(entry)))
        for identity, entry in live.items():
            if identity not in deleted:
                for key in list_file_keys(entry):
                    removed.pop(key, None)
    return removed


def list_added_files(delta: Iterable[ManifestEntry]) -> dict[FileKey, None]:
    """Return the files that a delta or a changelog adds, with extra files, in order."""
    return dict.fromkeys(key for e in delta if e.kind is FileKind.ADD for key in list_file_keys(e))


def list_file_keys(entry: ManifestEntry) -> list[FileKey]:
    """Return the keys of a file and of its extra files."""
    file = entry.file
    directory = None if file.external_path is None else file.external_path.rpartition("/")[0]
    return [(entry.partition, entry.bucket, directory, name) for name in file.stored_names]


def _is_appended(entry: ManifestEntry) -> bool:
    return entry.file.file_source is not FileSource.COMPACT
