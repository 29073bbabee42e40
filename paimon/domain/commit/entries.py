"""Convert commit messages to the changes of at most two snapshots.

The first change contains what was written: APPEND, or OVERWRITE if it removes files or changes deletion vectors. The
second one contains what was compacted (COMPACT).

Invariant: The changes contain each file of the messages exactly once.
Source: `FileStoreCommitImpl.collectChanges`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from paimon.domain.commit.message import (
    CommitMessage,
    CompactIncrement,
    DataIncrement,
    HashIndexBase,
    ReadState,
    RowGroupBase,
)
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.manifest.entries import DELETION_VECTORS, DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.paths import check_segment, check_within
from paimon.domain.snapshot.snapshot import CommitKind


@frozen
class StatisticsFile:
    """A statistics file that ANALYZE wrote, and the schema whose columns it summarizes."""

    name: str
    schema_id: int


@frozen
class Change:
    """The change of one snapshot."""

    kind: CommitKind
    # The delta: added and deleted data files
    entries: tuple[ManifestEntry, ...] = ()
    # Added changelog files
    changelog: tuple[ManifestEntry, ...] = ()
    # Added and deleted index files
    index: tuple[IndexManifestEntry, ...] = ()
    # Partition, bucket, and the hash index files by which their rows were assigned
    index_bases: tuple[tuple[bytes, int, HashIndexBase], ...] = ()
    # The oldest snapshot from which a writer read where keys are
    key_index: ReadState | None = None
    # Partition, bucket and name of the files in which a compaction looked keys up
    looked_up: tuple[tuple[bytes, int, str], ...] = ()
    # Partition and bucket of the compactions that left deletes out
    drops_deletes: frozenset[tuple[bytes, int]] = frozenset()
    # The oldest snapshot from which rows were read that are changed by row id
    row_base: int | None = None
    # Partition, bucket, and the rows that were read for changes by row id
    row_groups: tuple[tuple[bytes, int, RowGroupBase], ...] = ()
    # The oldest snapshot from which rows were computed
    read_state: ReadState | None = None
    # The statistics of an ANALYZE, which changes no file
    statistics: StatisticsFile | None = None

    @property
    def is_empty(self) -> bool:
        """True if the change contains no files."""
        return not (self.entries or self.changelog or self.index)

    @property
    def partitions(self) -> frozenset[bytes]:
        """The partitions of the data files, the index files, and the files in which keys were looked up, serialized."""
        looked_up = frozenset(partition for partition, _, _ in self.looked_up)
        return looked_up | frozenset(e.partition for e in self.entries) | frozenset(e.partition for e in self.index)

    @property
    def added_rows(self) -> int:
        """The physical rows of the added files."""
        return sum(e.file.row_count for e in self.entries if e.kind is FileKind.ADD)

    @property
    def added_files(self) -> int:
        """The number of added files."""
        return sum(e.kind is FileKind.ADD for e in self.entries)


def append_change(messages: Sequence[CommitMessage]) -> Change:
    """Return the change that contains what the messages wrote."""
    entries: list[ManifestEntry] = []
    for message in messages:
        entries += _to_entries(message, FileKind.DELETE, message.data.deleted_files)
        entries += _to_entries(message, FileKind.ADD, message.data.new_files)
    index = _index_entries(m.data for m in messages)
    is_overwrite = any(e.kind is FileKind.DELETE for e in entries) or any(
        e.index_type == DELETION_VECTORS for e in index
    )
    return Change(
        CommitKind.OVERWRITE if is_overwrite else CommitKind.APPEND,
        tuple(entries),
        tuple(e for m in messages for e in _to_entries(m, FileKind.ADD, m.data.changelog_files)),
        index,
        tuple((m.partition, m.bucket, m.index_base) for m in messages if m.index_base and m.data != DataIncrement()),
        find_oldest(m.key_index for m in messages),
        row_base=min((m.row_base for m in messages if m.row_base is not None), default=None),
        row_groups=tuple((m.partition, m.bucket, group) for m in messages for group in m.row_groups),
        read_state=find_oldest(m.read_state for m in messages),
    )


def find_oldest(states: Iterable[ReadState | None]) -> ReadState | None:
    """Return the state with the smallest id; None without states."""
    return min((state for state in states if state), key=lambda state: state.snapshot_id, default=None)


def compact_change(messages: Sequence[CommitMessage]) -> Change:
    """Return the change that contains what the messages compacted."""
    entries: list[ManifestEntry] = []
    for message in messages:
        entries += _to_entries(message, FileKind.DELETE, message.compact.compact_before)
        entries += _to_entries(message, FileKind.ADD, message.compact.compact_after)
    return Change(
        CommitKind.COMPACT,
        tuple(entries),
        tuple(e for m in messages for e in _to_entries(m, FileKind.ADD, m.compact.changelog_files)),
        _index_entries(m.compact for m in messages),
        looked_up=tuple((m.partition, m.bucket, name) for m in messages for name in m.compact.looked_up),
        drops_deletes=frozenset((m.partition, m.bucket) for m in messages if m.compact.drops_deletes),
    )


def _to_entries(message: CommitMessage, kind: FileKind, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    return [ManifestEntry(kind, message.partition, message.bucket, message.total_buckets, f) for f in files]


def _index_entries(increments: Iterable[DataIncrement | CompactIncrement]) -> tuple[IndexManifestEntry, ...]:
    parts = list(increments)
    deleted = [evolve(e, kind=FileKind.DELETE) for part in parts for e in part.deleted_index_files]
    return (*deleted, *(evolve(e, kind=FileKind.ADD) for part in parts for e in part.new_index_files))


def data_files(message: CommitMessage) -> tuple[DataFileMeta, ...]:
    """Return the data and changelog files that the writer of the message created, without files that existed before."""
    found = {f.file_name for f in message.compact.compact_before}
    upgraded = [f for f in message.compact.compact_after if f.file_name not in found]
    return (*message.data.new_files, *message.data.changelog_files, *upgraded, *message.compact.changelog_files)


def file_paths(message: CommitMessage, file: DataFileMeta) -> list[str]:
    """Return the paths of a file of the message and of its extra files."""
    return file.paths_in(message.bucket_path)


def new_extra_paths(message: CommitMessage) -> list[str]:
    """Return the paths of the extra files that the writer of the message added to files that existed before."""
    before = {f.file_name: f.extra_files for f in message.compact.compact_before}
    return [
        path
        for file in message.compact.compact_after
        for path in file_paths(message, file)[1:]
        if file.file_name in before and path.rpartition("/")[2] not in before[file.file_name]
    ]


def check_paths(messages: Sequence[CommitMessage], roots: Sequence[str]) -> None:
    """Refuse messages that name files outside `roots`, because messages can come from any process."""
    for message in messages:
        files = (*data_files(message), *message.data.deleted_files, *message.compact.compact_before)
        names = [n for f in files for n in f.stored_names]
        index = (*message.data.new_index_files, *message.compact.new_index_files)
        for name in (*names, *(e.file_name for e in index)):
            check_segment(name, "file name of a commit message")
        for place in (message.bucket_path, *(f.external_path for f in files), *(e.external_path for e in index)):
            _check_place(place, roots)


def _check_place(place: str | None, roots: Sequence[str]) -> None:
    if not place:
        return
    try:
        check_within(place, roots, "commit message")
    except CorruptTable as error:
        raise InvalidRequest(error.message, subject=place, hint=error.hint) from error
