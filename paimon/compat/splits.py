"""Splits and plans as pypaimon returns them.

Source: `pypaimon.read.split`, `pypaimon.read.plan`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from attrs import define, evolve

from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import GenericRow
from paimon.compat.schema import from_paimon_fields
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array
from paimon.domain.scan.splits import DataSplit as PaimonSplit
from paimon.domain.schema.table_schema import TableSchema

T = TypeVar("T")


class DataFile:
    """The metadata of a data file: the members of the manifest entry, and its path."""

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


class Split(PeerClass, ABC):
    """The base of all splits."""

    @property
    @abstractmethod
    def files(self) -> list[Any]:
        """The metadata of the data files."""

    @property
    @abstractmethod
    def partition(self) -> GenericRow:
        """The values of the partition columns."""

    @property
    @abstractmethod
    def bucket(self) -> int:
        """The number of the bucket."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The rows that the files store."""

    def merged_row_count(self) -> int | None:
        """Return the number of rows that a read returns; None if it is not known before."""
        return None


class DataSplit(Split):
    """Files of one bucket, which one task reads; it pickles."""

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

    def filter_file(self, func: Callable[[Any], bool]) -> DataSplit | None:
        """Return the split of the files for which a function is true; None if there are none."""
        chosen = [place for place, file in enumerate(self.files) if func(file)]
        if not chosen:
            return None
        if len(chosen) < len(self.inner.files) and not self.raw_convertible:
            refuse("filter_file of files that are merged", "plan with a filter on the rows")
        inner = evolve(
            self.inner,
            files=select(self.inner.files, chosen),
            deletion_files=select(self.inner.deletion_files, chosen),
            row_ranges=select(self.inner.row_ranges, chosen),
        )
        return DataSplit(inner, self._partition, self.is_state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataSplit) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash(self.inner)

    def __repr__(self) -> str:
        return repr(self.inner)


@define
class Plan:
    """The splits of a scan."""

    planned: list[Any]
    snapshot_id: int | None = None

    def splits(self) -> list[Any]:
        """Return the splits."""
        return self.planned


def select(values: Sequence[T], places: Sequence[int]) -> tuple[T, ...]:
    """Return the values at some places; nothing of an empty sequence."""
    return tuple(values[place] for place in places) if values else ()


def from_paimon_splits(splits: Sequence[PaimonSplit], schema: TableSchema, is_state: bool = True) -> list[DataSplit]:
    """Return the splits of pypaimon for those of this library."""
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
