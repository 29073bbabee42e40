"""What a plan hands out: splits, each a frozen, picklable piece of work that one task can read by itself.

Law: a split says all that its reader must know of the files: no manifest is read again. Source: `DataSplit`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange
from paimon.domain.secrets import without_password


@frozen
class DeletionFile:
    """Where the deletion vector of a data file lies: `path` of the index file, and the range in it."""

    path: str
    range: DeletionVectorRange


def _files(values: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(values)


def _vectors(values: Iterable[DeletionFile | None]) -> tuple[DeletionFile | None, ...]:
    return tuple(values)


@frozen(repr=False)
class DataSplit:
    """Files of one bucket of one partition of one snapshot.

    Parameters
    ----------
    snapshot_id : int
        The snapshot that was planned.
    partition : bytes
        Serialised BinaryRow of the partition columns.
    bucket, total_buckets : int
        As stored in the manifest entries.
    bucket_path : str
        Directory of the files.
    files : tuple of DataFileMeta
        In the order in which they must be read.
    raw_convertible : bool
        True where no merge is needed: rows are read file by file.
    deletion_files : tuple of DeletionFile or None
        Parallel to `files`; empty where there are none.
    branch : str, optional
        Read it as this branch's, not as the table's own.
    before_files, before_deletion_files
        Of a difference between two states: the files of the earlier state. `files` are those of the later one.
    """

    snapshot_id: int
    partition: bytes
    bucket: int
    total_buckets: int
    bucket_path: str
    files: tuple[DataFileMeta, ...] = field(converter=_files)
    raw_convertible: bool = False
    deletion_files: tuple[DeletionFile | None, ...] = field(converter=_vectors, default=())
    branch: str | None = None
    before_files: tuple[DataFileMeta, ...] = field(converter=_files, default=())
    before_deletion_files: tuple[DeletionFile | None, ...] = field(converter=_vectors, default=())

    def __repr__(self) -> str:
        merge = "as they are" if self.raw_convertible else "merged"
        return (
            f"DataSplit({without_password(self.bucket_path)!r}, snapshot {self.snapshot_id}: "
            f"{len(self.files)} files, {self.file_size:,} bytes, {self.row_count:,} stored rows, read {merge})"
        )

    @property
    def row_count(self) -> int:
        """Physical rows of the files, before merging."""
        return sum(f.row_count for f in self.files)

    @property
    def merged_row_count(self) -> int | None:
        """Rows that a read returns, where the metadata tell; None where files must be merged to know.

        Source: `DataSplit.mergedRowCount`.
        """
        vectors = [d.range.cardinality for d in self.deletion_files if d is not None]
        known = [count for count in vectors if count is not None]
        if not self.raw_convertible or self.before_files or len(known) < len(vectors):
            return None
        return self.row_count - sum(known)

    @property
    def file_size(self) -> int:
        """Bytes of the files."""
        return sum(f.file_size for f in self.files)

    @property
    def file_paths(self) -> tuple[str, ...]:
        """Full paths of the files."""
        return tuple(f.external_path or f"{self.bucket_path}/{f.file_name}" for f in self.files)
