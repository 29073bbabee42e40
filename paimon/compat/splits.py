"""Splits and plans as pypaimon returns them.

Source: `pypaimon.read.split`, `pypaimon.read.plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define

from paimon.compat.refused import PeerClass
from paimon.compat.rows import GenericRow
from paimon.compat.schema import from_paimon_fields
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array
from paimon.domain.scan.splits import DataSplit as PaimonSplit
from paimon.domain.schema.table_schema import TableSchema


class DataFile:
    """The metadata of a data file: the members of the manifest entry, and its path.

    Parameters
    ----------
    inner : object
        The metadata of this library.
    file_path : str
        The full path.
    """

    def __init__(self, inner: Any, file_path: str) -> None:
        self.inner = inner
        self.file_path = file_path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        return getattr(self.inner, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataFile) and self.file_path == other.file_path

    def __hash__(self) -> int:
        return hash(self.file_path)

    def __reduce__(self) -> tuple[Any, ...]:
        return DataFile, (self.inner, self.file_path)

    def __repr__(self) -> str:
        return f"DataFile({self.file_path!r})"


class Split(PeerClass):
    """The base of all splits."""

    def merged_row_count(self) -> int | None:
        """Return the number of rows that a read returns; None if it is not known before."""
        return None


class DataSplit(Split):
    """Files of one bucket, which one task reads; it pickles.

    Parameters
    ----------
    inner : PaimonSplit
        The split of this library.
    partition : GenericRow
        The values of the partition columns.
    is_state : bool
        For stream reads: True for rows of the first state, False for changes.
    """

    def __init__(self, inner: PaimonSplit, partition: GenericRow, is_state: bool = True) -> None:
        self.inner = inner
        self._partition = partition
        self.is_state = is_state

    @property
    def files(self) -> list[Any]:
        """The metadata of the data files."""
        return [DataFile(file, path) for file, path in zip(self.inner.files, self.inner.file_paths, strict=True)]

    @property
    def partition(self) -> GenericRow:
        """The values of the partition columns."""
        return self._partition

    @property
    def bucket(self) -> int:
        """The number of the bucket."""
        return self.inner.bucket

    @property
    def total_buckets(self) -> int:
        """The number of buckets of the partition."""
        return self.inner.total_buckets

    @property
    def snapshot_id(self) -> int:
        """The snapshot that was planned."""
        return self.inner.snapshot_id

    @property
    def raw_convertible(self) -> bool:
        """Whether the files are read without merging."""
        return self.inner.raw_convertible

    @property
    def row_count(self) -> int:
        """The rows that the files store."""
        return self.inner.row_count

    @property
    def file_size(self) -> int:
        """The size of the files in bytes."""
        return self.inner.file_size

    @property
    def file_paths(self) -> list[str]:
        """The paths of the files."""
        return list(self.inner.file_paths)

    def merged_row_count(self) -> int | None:
        """Return the number of rows that a read returns; None if it is not known before."""
        return self.inner.merged_row_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataSplit) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash(self.inner)

    def __repr__(self) -> str:
        return repr(self.inner)


@define
class Plan:
    """The splits of a scan.

    Parameters
    ----------
    planned : list of Split
        The splits.
    snapshot_id : int, optional
        The snapshot that was planned; None for an empty table.
    """

    planned: list[Any]
    snapshot_id: int | None = None

    def splits(self) -> list[Any]:
        """Return the splits."""
        return self.planned


def from_paimon_splits(splits: Sequence[PaimonSplit], schema: TableSchema, is_state: bool = True) -> list[DataSplit]:
    """Return the splits of pypaimon for those of this library.

    Parameters
    ----------
    splits : sequence of PaimonSplit
        The splits.
    schema : TableSchema
        The schema of the table, for the values of the partition columns.
    is_state : bool
        As in `DataSplit`.

    Returns
    -------
    list of DataSplit
        In the same order.
    """
    fields = schema.partition_fields
    shown = from_paimon_fields(fields)
    types = [column.type for column in fields]
    rows: dict[bytes, GenericRow] = {}
    for split in splits:
        if split.partition not in rows:
            stored = deserialize(split.partition, types) if fields else ()
            values = [to_array([value], kind)[0].as_py() for value, kind in zip(stored, types, strict=True)]
            rows[split.partition] = GenericRow(values, shown)
    return [DataSplit(split, rows[split.partition], is_state) for split in splits]
