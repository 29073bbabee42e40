"""Datasets of Ray over the splits of a read; made by `TableRead.to_ray`. Importing this module needs Ray.

Invariant: each split is read by one task, with the function that reads it without Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from paimon.domain.scan.splits import DataSplit
from paimon.operations.read.projection import ReadPlan


class SplitReader(Protocol):
    """What reads splits: a `TableRead`."""

    read_plan: ReadPlan

    def to_arrow(self, splits: Sequence[DataSplit]) -> pa.Table:
        """Return all rows of splits."""


class PaimonDatasource(Datasource):
    """The splits of a read as tasks of Ray. The reader is pickled for the tasks, without secrets of the storage."""

    def __init__(self, read: SplitReader, splits: Sequence[DataSplit]) -> None:
        super().__init__()
        self._read = read
        self._splits = tuple(splits)

    def estimate_inmemory_data_size(self) -> int:
        """Return the size of the files."""
        return sum(split.file_size for split in self._splits)

    def get_read_tasks(self, parallelism: int, *arguments: Any, **named: Any) -> list[ReadTask]:
        """Return one task for each split; a read without splits has one task without rows."""
        groups: list[tuple[DataSplit, ...]] = [(split,) for split in self._splits] or [()]
        plan = self._read.read_plan
        is_whole = plan.predicate is None and plan.limit is None
        return [ReadTask(_read_task(self._read, group), _describe(group, is_whole)) for group in groups]


def _read_task(read: SplitReader, splits: tuple[DataSplit, ...]) -> Callable[[], Iterator[pa.Table]]:
    def run() -> Iterator[pa.Table]:
        yield read.to_arrow(splits)

    return run


def _describe(splits: tuple[DataSplit, ...], is_whole: bool) -> BlockMetadata:
    """Return what Ray shows without reading; the number of rows only if all rows of the splits are read."""
    rows = [split.merged_row_count if is_whole else None for split in splits]
    return BlockMetadata(
        num_rows=None if None in rows else sum(count or 0 for count in rows),
        size_bytes=sum(split.file_size for split in splits),
        input_files=[path for split in splits for path in split.file_paths],
        exec_stats=None,
    )
