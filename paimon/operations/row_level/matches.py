"""Find the rows of an append table that a predicate selects: their files, and their positions in them.

Invariant: a position counts all rows of the file, also deleted ones. Found rows are live, and the predicate is true for
them. Source: `PaimonRowLevelCommand.collectDeletionVectors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from attrs import field, frozen

from paimon.domain.assignment.expression import Assignment
from paimon.domain.commit.message import CommitMessage
from paimon.domain.deletion.vector import DeletionVector, Mask
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system_columns import LEVEL
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.read.evaluate import evaluate_condition
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.projection import select_fields
from paimon.operations.table_context import TableContext


@frozen(eq=False)
class FileMatch:
    """The rows found in one file."""

    file: DataFileMeta
    before: DeletionVector
    after: DeletionVector

    @property
    def count(self) -> int:
        """The number of rows found."""
        return self.after.cardinality - self.before.cardinality

    @property
    def removes_all_rows(self) -> bool:
        """Whether no other row of the file is live."""
        return self.after.cardinality == self.file.row_count

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Return a mask of the rows found among `row_count` rows from position `first_row` on."""
        found: Mask = self.after.mask(first_row, row_count) & ~self.before.mask(first_row, row_count)
        return found


class BucketPlace(Protocol):
    """Where the files of a bucket are; splits and commit messages have these attributes."""

    @property
    def partition(self) -> bytes:
        """The partition as serialized row."""

    @property
    def bucket(self) -> int:
        """The number of the bucket."""

    @property
    def total_buckets(self) -> int:
        """The number of buckets of the partition."""

    @property
    def bucket_path(self) -> str:
        """The directory of the files."""


def _to_assignments(values: Iterable[Assignment]) -> tuple[Assignment, ...]:
    return tuple(values)


@frozen(eq=False)
class SelectedChange:
    """A delete or an update of the rows that a predicate selects."""

    snapshot: Snapshot
    # Over stored columns
    predicate: Predicate
    # The new values; if empty, the rows are deleted
    assignments: tuple[Assignment, ...] = field(converter=_to_assignments)
    commit_user: str


@frozen(eq=False)
class WrittenChanges:
    """What to commit for a delete or an update, and the number of changed rows."""

    messages: Sequence[CommitMessage]
    rows: int


def _to_tuple(values: Iterable[FileMatch]) -> tuple[FileMatch, ...]:
    return tuple(values)


@frozen(eq=False)
class BucketMatches:
    """The files of one bucket in which rows were found; `split` has their location."""

    split: DataSplit
    files: tuple[FileMatch, ...] = field(converter=_to_tuple)

    @property
    def count(self) -> int:
        """The number of rows found."""
        return sum(match.count for match in self.files)


def find_rows(context: TableContext, snapshot: Snapshot, predicate: Predicate) -> list[BucketMatches]:
    """Find the rows for which a predicate over stored columns is true; the executor searches splits concurrently.

    Only buckets with matching rows are returned.
    """
    splits = plan_scan(context, ScanRequest(snapshot, predicate)).splits
    task = partial(find_in_split, context.for_tasks(len(splits)), predicate)
    found: dict[BucketKey, BucketMatches] = {}
    for split, files in zip(splits, context.engine.executor.map(task, splits), strict=True):
        if files:
            earlier = found.setdefault((split.partition, split.bucket), BucketMatches(split, ()))
            found[split.partition, split.bucket] = BucketMatches(split, (*earlier.files, *files))
    return list(found.values())


def find_in_split(context: TableContext, predicate: Predicate, split: DataSplit) -> Sequence[FileMatch]:
    """Find the rows of one split for which a predicate over stored columns is true; skip files without any."""
    bucket = Bucket.of(context, split)
    found = [
        _find_in_file(bucket, predicate, file, deleted)
        for file, deleted in file_vectors(split.files, split.deletion_files)
    ]
    return [match for match in found if match.count]


def _find_in_file(bucket: Bucket, predicate: Predicate, file: DataFileMeta, deleted: DeletionFile | None) -> FileMatch:
    before = DeletionVector() if deleted is None else read_vector(bucket.context.engine, deleted)
    columns = select_fields(bucket.context.schema.fields, columns_of(predicate)) or (LEVEL,)
    start = 0
    found = [np.empty(0, np.int64)]
    # No row group may be skipped, because the position of a row is the number of rows before it.
    for batch in read_data_file(bucket, file, columns):
        live = ~before.mask(start, batch.num_rows)
        mask = evaluate_condition(bucket.context.engine, predicate, batch).to_numpy(zero_copy_only=False) & live
        found.append(np.flatnonzero(mask) + start)
        start += batch.num_rows
    return FileMatch(file, before, before.with_deleted(np.concatenate(found)))
