"""Read the files of a compaction, section by section.

Invariant: records come in windows, in ascending order of keys, with sequence number and row kind; all records of a key
are in one window. A window and the batches read ahead stay within the memory budget.

Source: `MergeTreeReaders`, `SortMergeReader`.
"""

# A section is a set of runs whose keys overlap. It is merged in windows, each of which has all records of its keys:
#
#     run A   1 3 5 | 7 9            batches that are read so far, the bar is where the next batch begins
#     run B   2 3 | 4 8
#     window  1 2 3                  up to 3, the smallest last key: what follows in run B is not read yet
#     kept    5                      waits for the next window
#
# About half of the budget holds one batch of each run, so the rows of a batch follow from the number of runs and the
# average size of a row. Then batches are read until the budget is used up, and the next window is cut. Rows use about
# four times as many bytes in memory as in files. Where keys are looked up in runs of higher levels, these runs hold
# batches at the same time and count, too; and because changes and found records need as much memory again, such a read
# gets half the budget.
#
# Records of equal keys are ordered by sequence number. Where these are equal (files of other writers), the order of the
# files decides: a piece has the age of its file, and the pieces of a window come oldest first.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.record_expiry import RecordExpiry
from paimon.domain.lsm.record_expiry_columnar import mask_unexpired
from paimon.domain.lsm.sorted_run import Section, SortedRun, sort_oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.windows import Piece, add_run_positions, cut_into_windows
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, TRACKING_FIELDS, VALUE_KIND
from paimon.operations.data_files.deletion_vectors import WorkingVectors
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket, measure_rows, read_data_file
from paimon.operations.read.split import WINDOW_BYTES


def read_in_order(
    bucket: Bucket, files: Sequence[DataFileMeta], vectors: WorkingVectors, fields: Sequence[DataField] | None = None
) -> Iterator[pa.Table]:
    """Yield the live rows of the files of an append table, one file after another.

    By default with all columns, and the ids and sequence numbers of tracked rows.
    """
    tracked = TRACKING_FIELDS if bucket.context.options.row_tracking_enabled else ()
    columns = (*bucket.context.schema.fields, *tracked) if fields is None else fields
    for file in files:
        for batch in read_data_file(bucket, file, columns, deleted=vectors.find_vector(file)):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


@frozen(eq=False)
class SectionRead:
    """Read sections of a bucket, and merge the records of each key."""

    bucket: Bucket
    spec: MergeSpec
    # rows that these deletion vectors mark are not read
    vectors: WorkingVectors
    # memory for a window and for the batches read ahead
    budget_bytes: int
    # add the level of its file to each record, as a column
    levels: bool
    # runs read at the same time; each holds about as many rows in memory as a window
    concurrent_runs: tuple[SortedRun, ...] = ()
    # the expired records to leave out
    expiry: RecordExpiry | None = None

    @classmethod
    def for_merge(cls, bucket: Bucket, spec: MergeSpec, vectors: WorkingVectors) -> SectionRead:
        """Make a reader for merging without a changelog; its budget covers window, read-ahead and result."""
        return cls(bucket, spec, vectors, min(bucket.context.engine.memory.bytes // 10, WINDOW_BYTES), spec.lookup)

    @classmethod
    def for_changelog(
        cls, bucket: Bucket, spec: MergeSpec, vectors: WorkingVectors, concurrent_runs: Sequence[SortedRun]
    ) -> SectionRead:
        """Make a reader for merging with a changelog, with half the budget, and lookups in `concurrent_runs`."""
        return cls(
            bucket,
            spec,
            vectors,
            min(bucket.context.engine.memory.bytes // 20, WINDOW_BYTES),
            True,
            tuple(concurrent_runs),
        )

    def read_merged(self, section: Section) -> Iterator[pa.Table]:
        """Yield the merged rows of a section."""
        # A NaN in a user sequence equals every value, so the order of the runs decides.
        for window in self.windows(section, self.spec.may_meet_nans):
            yield merge(window, self.spec) if len(section) > 1 else window

    def windows(self, section: Section, by_run: bool = False) -> Iterator[pa.Table]:
        """Yield the records of a section in windows, in key order, or grouped by run if `by_run` is true."""
        limit = self.limit_batches(section)
        files = [file for run in section for file in run.files]
        ages = {file.file_name: age for age, file in enumerate(sort_oldest_first(files) or files)}
        runs = [self._read_pieces(run, ages, limit) for run in section]
        if len(runs) == 1:
            yield from (pa.Table.from_batches([piece.batch]) for piece in runs[0])
            return
        runs = add_run_positions(runs) if by_run else runs
        for window in cut_into_windows(runs, self.spec.key_fields, self._find_window_bytes(section)):
            yield pa.Table.from_batches([piece.batch for piece in window])

    def limit_batches(self, section: Section) -> BatchLimit:
        """Return the limit of a batch. Each run holds one batch; together they take about half of the budget."""
        runs = (*section, *self.concurrent_runs)
        return BatchLimit.of(self.budget_bytes // (2 * len(runs)), self._columns, self._columns, runs)

    def _find_window_bytes(self, section: Section) -> int:
        own = measure_rows(section)
        return self.budget_bytes * own // (own + (measure_rows(self.concurrent_runs) if self.concurrent_runs else 0))

    @property
    def _columns(self) -> tuple[DataField, ...]:
        level = (LEVEL,) if self.levels else ()
        return (*self.bucket.context.schema.fields, SEQUENCE_NUMBER, VALUE_KIND, *level)

    def _read_pieces(self, run: SortedRun, ages: Mapping[str, int], limit: BatchLimit) -> Iterator[Piece]:
        for file in run.files:
            deleted = self.vectors.find_vector(file)
            for batch in read_data_file(self.bucket, file, self._columns, deleted=deleted, limit=limit):
                unexpired = mask_unexpired(batch, self.expiry)
                yield Piece(batch if unexpired is None else batch.filter(from_numpy(unexpired)), ages[file.file_name])
