"""Datasets of PyTorch over the splits of a read; made by `TableRead.to_torch`. Importing this module needs PyTorch.

Invariant: over all ranks and workers, each row of the splits is returned once in an epoch, and not more than the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from attrs import frozen
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from paimon.domain.scan.distribute import select_shard
from paimon.domain.scan.splits import DataSplit
from paimon.operations.read.projection import ReadPlan


class SplitReader(Protocol):
    """What reads splits: a `TableRead`."""

    read_plan: ReadPlan

    def to_arrow(self, splits: Sequence[DataSplit]) -> pa.Table:
        """Return all rows of splits."""

    def to_batches(self, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of splits."""


@frozen
class TorchOptions:
    """The form of the rows of a dataset, and the share of this process."""

    # Most rows of a record batch; None returns one dict for each row
    batch_size: int | None = None
    # Converts each record batch, for instance to tensors
    convert: Callable[[pa.RecordBatch], Any] | None = None
    # Number of this process, from 0
    rank: int = 0
    # Number of processes that share the splits
    world_size: int = 1


class RowDataset(Dataset):
    """The rows of splits by number, each a dict; they are held in memory as Arrow columns."""

    def __init__(self, read: SplitReader, splits: Sequence[DataSplit]) -> None:
        self._table = read.to_arrow(splits)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        row: dict[str, Any] = self._table.slice(index, 1).to_pylist()[0]
        return row


class StreamDataset(IterableDataset):
    """The rows of splits, which are read while they are iterated; the workers of a `DataLoader` share them.

    `splits` are those of all processes; each process and worker selects its share.
    """

    def __init__(self, read: SplitReader, splits: Sequence[DataSplit], options: TorchOptions) -> None:
        self._read = read
        self._splits = tuple(splits)
        self._options = options

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        shard, shards = self._options.rank * workers + number, self._options.world_size * workers
        if self._read.read_plan.limit is not None:  # counts over all shards, so the first one reads alone
            if shard:
                return
            shards = 1
        batches = self._read.to_batches(select_shard(self._splits, shard, shards))
        size = self._options.batch_size
        if size is None:
            for batch in batches:
                yield from batch.to_pylist()
            return
        convert = self._options.convert
        for batch in cut_batches(batches, size):
            yield batch if convert is None else convert(batch)


def cut_batches(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in batches of one size; the last one may have fewer."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= size:
            whole = pa.concat_batches(held)
            yield whole.slice(0, size)
            held, rows = [whole.slice(size)], rows - size
    if rows:
        yield pa.concat_batches(held)
