"""Commit messages: the files that one writer added and removed in one bucket.

Invariant: A message is a plain value with a typed encoding (`message_codec`), and is never pickled.
Source: `CommitMessageImpl`, `DataIncrement`, `CompactIncrement`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry
from paimon.domain.snapshot.snapshot import Snapshot


def _to_files(values: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(values)


def _to_index_files(values: Iterable[IndexManifestEntry]) -> tuple[IndexManifestEntry, ...]:
    return tuple(values)


def _to_names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class DataIncrement:
    """The files that a write added, and for copy-on-write also the files that it removed."""

    new_files: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    deleted_files: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())


@frozen
class CompactIncrement:
    """The files that a compaction replaced and wrote, and what its result depends on.

    It is wrong without the files in `looked_up`, which are on higher levels and stay. With `drops_deletes`, it left
    deletes out because it knew no older rows that need them.
    """

    compact_before: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    compact_after: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=_to_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    looked_up: tuple[str, ...] = field(converter=_to_names, default=())
    drops_deletes: bool = False


@frozen
class HashIndexBase:
    """The hash index files by which a writer assigned rows to a dynamic bucket.

    Parameters
    ----------
    names : tuple of str
        The names of the files.
    is_whole_partition : bool
        True if these are all hash index files of the partition, because the writer assigned new keys there. False if
        the writer only met known keys, and this is the file of the bucket.
    """

    names: tuple[str, ...] = field(converter=_to_names)
    is_whole_partition: bool


@frozen
class ReadState:
    """The snapshot from which a change was computed; id 0 is a table without snapshots.

    A rollback makes an id free for another snapshot, which has another delta manifest list.
    """

    snapshot_id: int
    delta_manifest_list: str

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> ReadState:
        """Return the state that a snapshot shows."""
        return cls(0, "") if snapshot is None else cls(snapshot.id, snapshot.delta_manifest_list)

    def is_state_of(self, snapshot: Snapshot | None) -> bool:
        """Return whether a snapshot is the one that was read."""
        return self == ReadState.of(snapshot)


@frozen
class RowGroupBase:
    """A group of rows with consecutive ids, from which a change by row id was computed.

    `columns` were read or set; None are all. `deleted_rows` of the group were deleted before.
    """

    first_row_id: int
    columns: tuple[str, ...] | None
    deleted_rows: int


def _to_groups(values: Iterable[RowGroupBase]) -> tuple[RowGroupBase, ...]:
    return tuple(values)


@frozen
class CommitMessage:
    """The files that one writer added and removed in one bucket.

    Parameters
    ----------
    partition : bytes
        Serialized BinaryRow of the partition columns.
    bucket, total_buckets : int
        The bucket, and the number of buckets of the partition.
    bucket_path : str
        The directory of the files.
    data : DataIncrement
        The written files.
    compact : CompactIncrement
        The compacted files.
    index_base : HashIndexBase, optional
        For dynamic buckets: the commit conflicts if these are no longer the hash index files.
    key_index : ReadState, optional
        For cross-partition tables: the commit conflicts if later commits may have added the same keys.
    row_base : int, optional
        For changes by row id: the snapshot from which the rows were read.
    row_groups : tuple of RowGroupBase
        The rows that were read. The commit conflicts if later commits removed rows of them, or set the same columns.
    read_state : ReadState, optional
        For rows that were computed from the table: the oldest snapshot that was read. The commit conflicts if later
        commits of other users changed rows.
    numbered_after : ReadState, optional
        For primary-key tables: the snapshot after whose rows the written rows are numbered.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    bucket_path: str
    data: DataIncrement = DataIncrement()
    compact: CompactIncrement = CompactIncrement()
    index_base: HashIndexBase | None = None
    key_index: ReadState | None = None
    row_base: int | None = None
    row_groups: tuple[RowGroupBase, ...] = field(converter=_to_groups, default=())
    read_state: ReadState | None = None
    numbered_after: ReadState | None = None

    @property
    def is_empty(self) -> bool:
        """True if the message contains no files."""
        return self.data == DataIncrement() and self.compact == CompactIncrement()
