"""Which data files a stretch of history takes away.

Law: a file is dropped where a DELETE names it and nothing in the stretch has it in the end; a file that only moved to
another level, or got another index beside it, is not. Whether somebody else still needs a dropped file is another
question (`reach`). Source: `FileDeletionBase.getDataFileToDelete`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.manifest.entries import FileKind, FileSource, ManifestEntry

FileKey = tuple[bytes, int, str | None, str]
"""Partition, bucket, external directory, and name: one physical file."""


def dropped_files(deltas: Iterable[Iterable[ManifestEntry]], spare_appended: bool = False) -> dict[FileKey, None]:
    """The files, extra files among them, that are gone after the deltas of snapshots, in their order.

    Parameters
    ----------
    spare_appended : bool
        Leave out files that writers wrote, or nobody knows who: they are the changelog of a table without a producer.
    """
    gone: dict[FileKey, None] = {}
    for delta in deltas:
        entries = list(delta)
        live = {e.identity: e for e in entries if e.kind is FileKind.ADD}
        ended = {e.identity for e in entries if e.kind is FileKind.DELETE}
        for entry in entries:
            if entry.kind is FileKind.DELETE and not (spare_appended and _is_appended(entry)):
                gone.update(dict.fromkeys(file_keys(entry)))
        for identity, entry in live.items():
            if identity not in ended:
                for key in file_keys(entry):
                    gone.pop(key, None)
    return gone


def added_files(delta: Iterable[ManifestEntry]) -> dict[FileKey, None]:
    """The files, extra files among them, that a delta (or a changelog) brings."""
    return dict.fromkeys(key for e in delta if e.kind is FileKind.ADD for key in file_keys(e))


def file_keys(entry: ManifestEntry) -> list[FileKey]:
    """A file and the extra files beside it."""
    file = entry.file
    directory = None if file.external_path is None else file.external_path.rpartition("/")[0]
    return [(entry.partition, entry.bucket, directory, name) for name in (file.file_name, *file.extra_files)]


def _is_appended(entry: ManifestEntry) -> bool:
    return entry.file.file_source is not FileSource.COMPACT
