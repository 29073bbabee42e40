"""Reading the files of a compaction, section by section.

Law: records come in windows that hold each of their keys whole, ascending by key, with sequence number and kind;
a window and what is read ahead take no more than the budget. Source: `MergeTreeReaders`, `SortMergeReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.expiry.columnar import unexpired
from paimon.domain.lsm.expiry.rule import RecordExpiry
from paimon.domain.lsm.sorted_run import Section, SortedRun
from paimon.domain.lsm.write_order import oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, in_tree, windows
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.deletion.working import WorkingVectors
from paimon.operations.read.data_file import BATCH_ROWS, Bucket, read_data_file
from paimon.operations.read.split import WINDOW_BYTES

_LEAST_ROWS = 256
_UNPACKED = 4
"""Rows take about so many times the bytes in memory that they take in files."""


def rows_in_order(bucket: Bucket, files: Sequence[DataFileMeta], vectors: WorkingVectors) -> Iterator[pa.Table]:
    """The live rows of an append table's files, one file after another."""
    for file in files:
        for batch in read_data_file(bucket, file, bucket.table.schema.fields, deleted=vectors.of(file)):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


@frozen(eq=False)
class SectionRead:
    """Reads sections of a bucket.

    Parameters
    ----------
    vectors : WorkingVectors
        Rows that they name are not read.
    budget_bytes : int
        What a window and the batches read ahead may take.
    levels : bool
        Records come with the level of their file.
    beside : tuple of SortedRun
        Runs of which rows are held beside those of a window, about as many.
    expiry : RecordExpiry, optional
        Records that are left out as they are read.
    """

    bucket: Bucket
    spec: MergeSpec
    vectors: WorkingVectors
    budget_bytes: int
    levels: bool
    beside: tuple[SortedRun, ...] = ()
    expiry: RecordExpiry | None = None

    @classmethod
    def plain(cls, bucket: Bucket, spec: MergeSpec, vectors: WorkingVectors) -> SectionRead:
        """For merging alone: a window, what is read ahead, and merged rows."""
        return cls(bucket, spec, vectors, min(bucket.engine.memory.bytes // 3, WINDOW_BYTES), spec.lookup)

    @classmethod
    def telling(
        cls, bucket: Bucket, spec: MergeSpec, vectors: WorkingVectors, beside: Sequence[SortedRun]
    ) -> SectionRead:
        """For telling changes too: those, and what was found above, take as much again."""
        return cls(bucket, spec, vectors, min(bucket.engine.memory.bytes // 6, WINDOW_BYTES), True, tuple(beside))

    def merged(self, section: Section) -> Iterator[pa.Table]:
        """The section's rows, merged."""
        for window in self.windows(section, self.spec.may_meet_nans):
            yield merge(window, self.spec) if len(section) > 1 else window

    def windows(self, section: Section, by_run: bool = False) -> Iterator[pa.Table]:
        """The section's records as they are, or told by run; those of one run need not wait for each other."""
        rows = self.batch_rows(section)
        files = [file for run in section for file in run.files]
        ages = {file.file_name: age for age, file in enumerate(oldest_first(files) or files)}
        runs = [self._pieces(run, ages, rows) for run in section]
        if len(runs) == 1:
            yield from (pa.Table.from_batches([piece.batch]) for piece in runs[0])
            return
        runs = in_tree(runs) if by_run else runs
        for window in windows(runs, self.spec.key_fields, self._window_bytes(section)):
            yield pa.Table.from_batches([piece.batch for piece in window])

    def batch_rows(self, section: Section) -> int:
        """Rows of a batch, of which every run holds one: together they take about half of the budget."""
        runs = (*section, *self.beside)
        return max(_LEAST_ROWS, min(BATCH_ROWS, self.budget_bytes // (2 * len(runs) * _row_bytes(runs))))

    def _window_bytes(self, section: Section) -> int:
        own = _row_bytes(section)
        return self.budget_bytes * own // (own + (_row_bytes(self.beside) if self.beside else 0))

    def _pieces(self, run: SortedRun, ages: Mapping[str, int], rows: int) -> Iterator[Piece]:
        columns = (*self.bucket.table.schema.fields, SEQUENCE_NUMBER, VALUE_KIND, *([LEVEL] if self.levels else []))
        for file in run.files:
            deleted = self.vectors.of(file)
            for batch in read_data_file(self.bucket, file, columns, deleted=deleted, batch_rows=rows):
                kept = unexpired(batch, self.expiry)
                yield Piece(batch if kept is None else batch.filter(pa.array(kept)), ages[file.file_name])


def _row_bytes(runs: Sequence[SortedRun]) -> int:
    return max(1, *(_UNPACKED * run.file_size // max(1, run.row_count) for run in runs))
