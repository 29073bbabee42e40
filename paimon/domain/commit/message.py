"""Commit messages: the files that one writer added and removed in one bucket.

Invariant: A message is a plain value with a typed encoding (`message_codec`), and is never pickled.
Source: `CommitMessageImpl`, `DataIncrement`, `CompactIncrement`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry, to_files
from paimon.domain.snapshot.snapshot import Snapshot


def _to_index_files(values: Iterable[IndexManifestEntry]) -> tuple[IndexManifestEntry, ...]:
    return tuple(values)


def _to_names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class DataIncrement:
    """The files that a write added, and for copy-on-write also the files that it removed."""

    new_files: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    deleted_files: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())


@frozen
class CompactIncrement:
    """The files that a compaction replaced and wrote, and what its result depends on.

    It is wrong without the files in `looked_up`, which are on higher levels and stay. With `drops_deletes`, it left
    deletes out because it knew no older rows that need them.
    """

    compact_before: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    compact_after: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    changelog_files: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    new_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    deleted_index_files: tuple[IndexManifestEntry, ...] = field(converter=_to_index_files, default=())
    looked_up: tuple[str, ...] = field(converter=_to_names, default=())
    drops_deletes: bool = False


@frozen
class HashIndexBase:
    """The hash index files by which a writer assigned rows to a dynamic bucket."""

    names: tuple[str, ...] = field(converter=_to_names)
    # All files of the partition, because the writer assigned new keys; otherwise those of the bucket
    is_whole_partition: bool


@frozen
class ReadState:
    """The snapshot of a computation, 0 for none; a rollback may reuse its id with another delta list."""

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
    """Rows of consecutive ids, whose `columns` (None: all) were used; `deleted_rows` of them are gone."""

    first_row_id: int
    columns: tuple[str, ...] | None
    deleted_rows: int


def _to_groups(values: Iterable[RowGroupBase]) -> tuple[RowGroupBase, ...]:
    return tuple(values)


@frozen
class CommitMessage:
    """The files that one writer added and removed in one bucket.

    The optional fields state what the commit depends on; it conflicts if later commits have changed that.
    """

    # Serialized BinaryRow
    partition: bytes
    bucket: int
    # Number of buckets of the partition
    total_buckets: int
    # Directory of the files
    bucket_path: str
    data: DataIncrement = DataIncrement()
    compact: CompactIncrement = CompactIncrement()
    # Dynamic buckets: conflicts if these are no longer the hash index files
    index_base: HashIndexBase | None = None
    # Cross-partition tables: conflicts if later commits may have added the same keys
    key_index: ReadState | None = None
    # Changes by row id: the id of the snapshot from which the rows were read
    row_base: int | None = None
    # The rows that were read: conflicts if later commits removed some of them, or set the same columns
    row_groups: tuple[RowGroupBase, ...] = field(converter=_to_groups, default=())
    # The oldest snapshot from which rows were computed: conflicts if other users changed rows later
    read_state: ReadState | None = None
    # Primary-key tables: sequence numbers continue after the rows of this snapshot
    numbered_after: ReadState | None = None

    @property
    def is_empty(self) -> bool:
        """True if the message contains no files."""
        return self.data == DataIncrement() and self.compact == CompactIncrement()
