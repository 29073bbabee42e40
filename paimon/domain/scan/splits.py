"""Splits: frozen, picklable values that each list the files that one task reads.

Invariant: A split contains everything that its reader needs to know about the files. No manifest is read again.
Source: `DataSplit`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange, to_files
from paimon.domain.markup import format_count
from paimon.domain.secrets import remove_password


@frozen
class DeletionFile:
    """The location of the deletion vector of a data file: the path of an index file, and the range in it."""

    path: str
    range: DeletionVectorRange


def _to_vectors(values: Iterable[DeletionFile | None]) -> tuple[DeletionFile | None, ...]:
    return tuple(values)


def _to_ranges(values: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(values)


@frozen(repr=False)
class DataSplit:
    """Files of one bucket of one partition in one snapshot."""

    snapshot_id: int
    # serialized BinaryRow of the partition columns
    partition: bytes
    bucket: int
    # the number of buckets, as stored in the manifest entries
    total_buckets: int
    bucket_path: str
    # in the order in which they must be read
    files: tuple[DataFileMeta, ...] = field(converter=to_files)
    # whether no merge is needed, so that rows are read file by file
    raw_convertible: bool = False
    # parallel to `files`; empty if no file has a deletion vector
    deletion_files: tuple[DeletionFile | None, ...] = field(converter=_to_vectors, default=())
    # the branch to read from; None for the branch of the table
    branch: str | None = None
    # for a difference between two states: the files of the earlier state; `files` are the later ones
    before_files: tuple[DataFileMeta, ...] = field(converter=to_files, default=())
    # parallel to `before_files`
    before_deletion_files: tuple[DeletionFile | None, ...] = field(converter=_to_vectors, default=())
    # parallel to `files`: the positions (first, end) to read, `end` not included; empty: all rows
    row_ranges: tuple[tuple[int, int], ...] = field(converter=_to_ranges, default=())
    # the row ids (first, end) that a predicate can select by global indexes; empty: all rows
    row_id_ranges: tuple[tuple[int, int], ...] = field(converter=_to_ranges, default=())

    def __repr__(self) -> str:
        merge = "as they are" if self.raw_convertible else "merged"
        return (
            f"DataSplit({remove_password(self.bucket_path)!r}, snapshot {self.snapshot_id}: "
            f"{format_count(len(self.files), 'file')}, {format_count(self.file_size, 'byte')}, "
            f"{format_count(self.row_count, 'stored record')}, read {merge})"
        )

    @property
    def row_count(self) -> int:
        """The physical rows that are read of the files, before merging."""
        if self.row_ranges:
            return sum(end - first for first, end in self.row_ranges)
        return sum(f.row_count for f in self.files)

    @property
    def merged_row_count(self) -> int | None:
        """The rows that a read returns; None if the metadata does not determine it.

        Source: `DataSplit.mergedRowCount`.
        """
        vectors = [d.range.cardinality for d in self.deletion_files if d is not None]
        known = [count for count in vectors if count is not None]
        if not self.raw_convertible or self.before_files or len(known) < len(vectors):
            return None
        if (self.row_ranges and sum(known)) or self.row_id_ranges:
            return None  # how many of the deleted rows are in the ranges is not recorded
        return self.row_count - sum(known)

    @property
    def file_size(self) -> int:
        """The size of the files in bytes."""
        return sum(f.file_size for f in self.files)

    @property
    def file_paths(self) -> tuple[str, ...]:
        """The full paths of the files."""
        return tuple(f.path_in(self.bucket_path) for f in self.files)
