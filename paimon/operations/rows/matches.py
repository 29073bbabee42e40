"""Finding the rows of an append table that a predicate selects: in which files, and where in them.

Law: a position counts all rows of the file, deleted ones too; what is found is live, and where the predicate is true.
Source: `PaimonRowLevelCommand.collectDeletionVectors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from attrs import field, frozen

from paimon.domain.deletion.vector import DeletionVector, Mask
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.columnar import evaluate
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.plan import ScanRequest
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system import LEVEL
from paimon.operations.read.data_file import Bucket, read_data_file
from paimon.operations.read.deletion.vectors import read_vector
from paimon.operations.read.plan import plan
from paimon.operations.read.projection import wanted_fields
from paimon.ports.engine import Engine


@frozen(eq=False)
class FileMatch:
    """The rows found in one file: `before` are those deleted already, `after` those and the ones found."""

    file: DataFileMeta
    before: DeletionVector
    after: DeletionVector

    @property
    def count(self) -> int:
        """How many rows were found."""
        return self.after.cardinality - self.before.cardinality

    @property
    def leaves_nothing(self) -> bool:
        """Whether no other row of the file is live."""
        return self.after.cardinality == self.file.row_count

    def mask(self, first_row: int, row_count: int) -> Mask:
        """Marks the rows found among some rows of the file."""
        found: Mask = self.after.mask(first_row, row_count) & ~self.before.mask(first_row, row_count)
        return found


def _matches(values: Iterable[FileMatch]) -> tuple[FileMatch, ...]:
    return tuple(values)


@frozen(eq=False)
class BucketMatches:
    """The files of one bucket in which rows were found; `split` says where they lie."""

    split: DataSplit
    files: tuple[FileMatch, ...] = field(converter=_matches)

    @property
    def count(self) -> int:
        """How many rows were found."""
        return sum(match.count for match in self.files)


def find_rows(
    engine: Engine, table: TableDefinition, snapshot: Snapshot, predicate: Predicate
) -> list[BucketMatches]:
    """Where the rows are, bucket by bucket; the splits are searched at the same time, as the executor allows."""
    splits = plan(engine, table, ScanRequest(snapshot, predicate)).splits
    task = partial(find_in_split, engine, table, predicate)
    found: dict[BucketKey, BucketMatches] = {}
    for split, files in zip(splits, engine.executor.map(task, splits), strict=True):
        if files:
            earlier = found.setdefault((split.partition, split.bucket), BucketMatches(split, ()))
            found[split.partition, split.bucket] = BucketMatches(split, (*earlier.files, *files))
    return list(found.values())


def find_in_split(
    engine: Engine, table: TableDefinition, predicate: Predicate, split: DataSplit
) -> Sequence[FileMatch]:
    """The files of a split that hold such rows."""
    bucket = Bucket.of(engine, table, split)
    found = [
        _find(engine, bucket, predicate, file, deleted)
        for file, deleted in file_vectors(split.files, split.deletion_files)
    ]
    return [match for match in found if match.count]


def _find(
    engine: Engine, bucket: Bucket, predicate: Predicate, file: DataFileMeta, deleted: DeletionFile | None
) -> FileMatch:
    before = DeletionVector() if deleted is None else read_vector(engine, deleted)
    columns = wanted_fields(bucket.table.schema.fields, columns_of(predicate)) or (LEVEL,)
    start = 0
    found = [np.empty(0, np.int64)]
    # Nothing may be skipped: a row's position is the number of rows before it.
    for batch in read_data_file(bucket, file, columns):
        mask = evaluate(predicate, batch).to_numpy(zero_copy_only=False) & ~before.mask(start, batch.num_rows)
        found.append(np.flatnonzero(mask) + start)
        start += batch.num_rows
    return FileMatch(file, before, before.with_deleted(np.concatenate(found)))
