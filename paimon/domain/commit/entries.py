"""What a commit changes: messages turned into the entries of at most two snapshots.

Law: what was written comes first (APPEND, or OVERWRITE where it takes files or deletion vectors away), what was
compacted second (COMPACT); nothing is lost and nothing is made up on the way. Source:
`FileStoreCommitImpl.collectChanges`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.manifest.entries import (
    DELETION_VECTORS,
    DataFileMeta,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
)
from paimon.domain.paths import check_within, segment
from paimon.domain.snapshot.snapshot import CommitKind


@frozen
class Change:
    """What one snapshot changes.

    `entries` are the delta; `changelog` goes to the changelog manifest list; `index` are added and deleted index
    files.
    """

    kind: CommitKind
    entries: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexManifestEntry, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True where nothing changes."""
        return not (self.entries or self.changelog or self.index)

    @property
    def partitions(self) -> frozenset[bytes]:
        """The partitions touched."""
        return frozenset(e.partition for e in self.entries) | frozenset(e.partition for e in self.index)

    @property
    def added_rows(self) -> int:
        """Physical rows of the files added."""
        return sum(e.file.row_count for e in self.entries if e.kind is FileKind.ADD)

    @property
    def added_files(self) -> int:
        """Number of files added."""
        return sum(e.kind is FileKind.ADD for e in self.entries)


def written(messages: Sequence[CommitMessage]) -> Change:
    """What the messages wrote."""
    entries: list[ManifestEntry] = []
    for message in messages:
        entries += _entries(message, FileKind.DELETE, message.data.deleted_files)
        entries += _entries(message, FileKind.ADD, message.data.new_files)
    index = _index(m.data for m in messages)
    takes_away = any(e.kind is FileKind.DELETE for e in entries) or any(e.index_type == DELETION_VECTORS for e in index)
    return Change(
        CommitKind.OVERWRITE if takes_away else CommitKind.APPEND,
        tuple(entries),
        tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.data.changelog_files)),
        index,
    )


def compacted(messages: Sequence[CommitMessage]) -> Change:
    """What the messages compacted."""
    entries: list[ManifestEntry] = []
    for message in messages:
        entries += _entries(message, FileKind.DELETE, message.compact.compact_before)
        entries += _entries(message, FileKind.ADD, message.compact.compact_after)
    return Change(
        CommitKind.COMPACT,
        tuple(entries),
        tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.compact.changelog_files)),
        _index(m.compact for m in messages),
    )


def _entries(message: CommitMessage, kind: FileKind, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    return [ManifestEntry(kind, message.partition, message.bucket, message.total_buckets, f) for f in files]


def _index(increments: Iterable[DataIncrement | CompactIncrement]) -> tuple[IndexManifestEntry, ...]:
    parts = list(increments)
    deleted = [evolve(e, kind=FileKind.DELETE) for part in parts for e in part.deleted_index_files]
    return (*deleted, *(evolve(e, kind=FileKind.ADD) for part in parts for e in part.new_index_files))


def data_files(message: CommitMessage) -> tuple[DataFileMeta, ...]:
    """The data and changelog files that the message's writer made (not those that it found)."""
    found = {f.file_name for f in message.compact.compact_before}
    upgraded = [f for f in message.compact.compact_after if f.file_name not in found]
    return (*message.data.new_files, *message.data.changelog_files, *upgraded, *message.compact.changelog_files)


def file_paths(message: CommitMessage, file: DataFileMeta) -> list[str]:
    """Where a file of the message lies, its extra files beside it."""
    directory, name = message.bucket_path, file.file_name
    if file.external_path is not None:
        directory = file.external_path.rpartition("/")[0]
        return [file.external_path, *(f"{directory}/{extra}" for extra in file.extra_files)]
    return [f"{directory}/{part}" for part in (name, *file.extra_files)]


def check_places(messages: Sequence[CommitMessage], roots: Sequence[str]) -> None:
    """Refuse messages that name files outside `roots`: messages travel, and may come from anywhere.

    Raises
    ------
    InvalidRequest
        Naming the file.
    """
    for message in messages:
        files = (*data_files(message), *message.data.deleted_files, *message.compact.compact_before)
        names = [n for f in files for n in (f.file_name, *f.extra_files)]
        index = (*message.data.new_index_files, *message.compact.new_index_files)
        for name in (*names, *(e.file_name for e in index)):
            segment(name, "file name of a commit message")
        for place in (message.bucket_path, *(f.external_path for f in files), *(e.external_path for e in index)):
            _check_place(place, roots)


def _check_place(place: str | None, roots: Sequence[str]) -> None:
    if not place:
        return
    try:
        check_within(place, roots, "commit message")
    except CorruptTable as error:
        raise InvalidRequest(error.message, subject=place, hint=error.hint) from error
