"""Compute the data files that a range of snapshots removes.

Whether another reference still needs a removed file is a separate check (`paimon.operations.expire`).

Invariant: A file is removed if a DELETE names it and the file is not live at the end of the range. A file that only
moved to another level, or got another index, is not removed.
Source: `FileDeletionBase.getDataFileToDelete`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.manifest.entries import FileKind, FileSource, ManifestEntry

FileKey = tuple[bytes, int, str | None, str]
"""Partition, bucket, external directory and name of one physical file."""


def dropped_files(deltas: Iterable[Iterable[ManifestEntry]], spare_appended: bool = False) -> dict[FileKey, None]:
    """Return the files, with extra files, that consecutive snapshots remove; the deltas ascend by snapshot.

    `spare_appended` skips files from writers or of unknown source: they are the changelog if there is no producer.
    """
    removed: dict[FileKey, None] = {}
    for delta in deltas:
        entries = list(delta)
        live = {e.identity: e for e in entries if e.kind is FileKind.ADD}
        deleted = {e.identity for e in entries if e.kind is FileKind.DELETE}
        for entry in entries:
            if entry.kind is FileKind.DELETE and not (spare_appended and _is_appended(entry)):
                removed.update(dict.fromkeys(file_keys(entry)))
        for identity, entry in live.items():
            if identity not in deleted:
                for key in file_keys(entry):
                    removed.pop(key, None)
    return removed


def added_files(delta: Iterable[ManifestEntry]) -> dict[FileKey, None]:
    """Return the files that a delta or a changelog adds, with extra files, in order."""
    return dict.fromkeys(key for e in delta if e.kind is FileKind.ADD for key in file_keys(e))


def file_keys(entry: ManifestEntry) -> list[FileKey]:
    """Return the keys of a file and of its extra files."""
    file = entry.file
    directory = None if file.external_path is None else file.external_path.rpartition("/")[0]
    return [(entry.partition, entry.bucket, directory, name) for name in (file.file_name, *file.extra_files)]


def _is_appended(entry: ManifestEntry) -> bool:
    return entry.file.file_source is not FileSource.COMPACT
