"""Splits that are read at the same time give the same rows, in the order of the splits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from paimon.compat.read import read_batches

ROWS = 3


class Reads:
    """Read numbers as splits, and wait until as many reads as expected run at the same time."""

    def __init__(self, together: int = 1) -> None:
        self.barrier = threading.Barrier(together)
        self.read: list[int] = []

    def __call__(self, splits: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for split in splits:
            self.barrier.wait(timeout=60)
            self.read.append(split)
            yield pa.record_batch({"n": [split * ROWS + i for i in range(ROWS)]})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch["n"].to_pylist()]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 6])
def test_rows_come_in_the_order_of_the_splits(parallelism: int) -> None:
    reads = Reads(together=parallelism)
    assert numbers(read_batches(reads, range(6), parallelism, None)) == [*range(6 * ROWS)]
    assert sorted(reads.read) == [*range(6)]


@pytest.mark.parametrize("limit", [1, 3, 4, 100])
def test_the_limit_counts_over_all_splits(limit: int) -> None:
    assert numbers(read_batches(Reads(), range(6), 2, limit)) == [*range(6 * ROWS)][:limit]


def test_no_more_splits_are_held_than_are_read_at_the_same_time() -> None:
    reads = Reads()
    batches = read_batches(reads, range(100), 4, None)
    next(batches)
    assert len(reads.read) <= 5
    batches.close()
    assert len(reads.read) <= 9
