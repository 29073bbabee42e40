"""Commit messages: what one writer of one bucket did, on its way to the committer.

Law: a message is plain data with a typed encoding (`codec`), never a pickle. Source: `CommitMessageImpl`,
`DataIncrement`, `CompactIncrement`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry


def _files(values: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(values)


def _index_files(values: Iterable[IndexManifestEntry]) -> tuple[IndexManifestEntry, ...]:
    return tuple(values)


@frozen
class DataIncrement:
    """What writing added (and, for copy-on-write, removed)."""

    new_files: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    deleted_files: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_index_files, default=())


@frozen
class CompactIncrement:
    """What compaction replaced."""

    compact_before: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    compact_after: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_index_files, default=())


@frozen
class CommitMessage:
    """One bucket's part of a commit; `partition` is a serialised BinaryRow, `bucket_path` where the files lie."""

    partition: bytes
    bucket: int
    total_buckets: int
    bucket_path: str
    data: DataIncrement = DataIncrement()
    compact: CompactIncrement = CompactIncrement()

    @property
    def is_empty(self) -> bool:
        """True where nothing was done."""
        return self.data == DataIncrement() and self.compact == CompactIncrement()
