"""The parts of a sorted compaction that several tasks share: sample keys, send rows to ranges, and sort a range.

Invariant: each live row of the files is in one range. The message that removes the files and their deletion vectors is
made once, after all ranges are written.

Source: `SortCompactAction`, `TableSorter`, `RangeShuffle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.maintenance.sort_order import SortOrder, choose_bounds, find_ranges, sample_keys
from paimon.domain.scan.split_packing import pack
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.undo import undo_on_failure
from paimon.operations.compact.compact_bucket import OutputFiles, open_bucket
from paimon.operations.compact.plan_bucket import BucketWork
from paimon.operations.compact.section_read import read_in_order
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.table_context import TableContext


@frozen
class FileShare:
    """Some files of a bucket that is sorted; a picklable task."""

    # the position of the bucket among all
    number: int
    # the bucket; its files are those of the share
    work: BucketWork

    @property
    def rows(self) -> int:
        """The rows of the files, with deleted ones."""
        return sum(f.row_count for f in self.work.rewritten)

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(f.file_size for f in self.work.rewritten)


def divide_into_shares(works: Sequence[BucketWork], tasks: int) -> list[FileShare]:
    """Divide the files of all buckets into about as many shares as tasks read them; no share has files of two."""
    most_bytes = -(-sum(f.file_size for work in works for f in work.rewritten) // tasks)
    return [
        FileShare(number, evolve(work, packs=(tuple(files),)))
        for number, work in enumerate(works)
        for files in pack(work.rewritten, [f.file_size for f in work.rewritten], most_bytes)
    ]


def choose_step(context: TableContext, works: Sequence[BucketWork], tasks: int) -> int:
    """Return the distance of sampled rows, so that there are `sort-compaction.local-sample.magnification` a task."""
    rows = sum(f.row_count for work in works for f in work.rewritten)
    return max(1, rows // (tasks * context.options.sort_sample_magnification))


def sample_share(context: TableContext, step: int, share: FileShare) -> pa.Table:
    """Return the sort keys of each `step`-th row of the files, with their weights."""
    order = _get_order(share.work)
    row_weight = 1.0 if context.options.sort_range_strategy == "quantity" else share.bytes / max(1, share.rows)
    bucket, vectors = open_bucket(context, share.work)
    skipped = 0
    # gives the schema if all rows of the share are deleted
    found = [sample_keys(arrow_schema(order.fields).empty_table(), order, skipped, step, row_weight)]
    for rows in read_in_order(bucket, share.work.rewritten, vectors, order.fields):
        found.append(sample_keys(rows, order, skipped, step, row_weight))
        skipped += rows.num_rows
    return pa.concat_tables(found)


def plan_ranges(
    context: TableContext,
    works: Sequence[BucketWork],
    shares: Sequence[FileShare],
    samples: Sequence[pa.Table],
    tasks: int,
) -> list[pa.Table]:
    """Return the bounds of the ranges of each bucket; all together there are about as many ranges as tasks.

    `samples` has the samples of each share. A range has about the size of a file or more, so that tasks do not write
    small files.
    """
    target_bytes = context.options.target_file_size_bytes(False)
    sizes = [sum(f.file_size for f in work.rewritten) for work in works]
    bounds: list[pa.Table] = []
    for number, size in enumerate(sizes):
        found = [keys for share, keys in zip(shares, samples, strict=True) if share.number == number]
        count = min(-(-size // target_bytes), -(-tasks * size // max(1, sum(sizes))))
        bounds.append(choose_bounds(pa.concat_tables(found), max(1, count)))
    return bounds


def send_to_ranges(
    context: TableContext, share: FileShare, bounds: pa.Table
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the live rows of the files, with the number of the range of each row."""
    bucket, vectors = open_bucket(context, share.work)
    for rows in read_in_order(bucket, share.work.rewritten, vectors):
        yield rows, find_ranges(rows, _get_order(share.work), bounds)


def write_range(context: TableContext, work: BucketWork, rows: Iterable[pa.Table]) -> CommitMessage:
    """Sort the rows of one range, and write them to new files."""
    output = OutputFiles(context, work.directory, work.level)
    with undo_on_failure(output.remove), output.data_files() as data:
        for part in sort_rows(context.engine, rows, _get_order(work)):
            data.write(part)
    return _make_message(work, CompactIncrement(compact_after=output.data))


def build_removal(context: TableContext, work: BucketWork) -> CommitMessage:
    """Return the message that removes the files of a bucket and their deletion vectors."""
    _, vectors = open_bucket(context, work)
    index = vectors.write({f.file_name for f in work.rewritten})
    return _make_message(work, CompactIncrement(work.rewritten, (), (), index.new, index.deleted))


def _make_message(work: BucketWork, increment: CompactIncrement) -> CommitMessage:
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _get_order(work: BucketWork) -> SortOrder:
    assert work.order is not None
    return work.order
