"""Read the files of a bucket whose rows must be merged.

Invariant: each section is merged on its own, in windows that fit the memory budget; a section of one run needs no
merge. Only the key, the columns that order records, and the requested columns are read. Retracts are dropped at the
end, unless they are requested. Source: `MergeFileSplitRead`, `MergeTreeReaders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.java_float_order import RUN
from paimon.domain.lsm.sorted_run import Section, SortedRun, cut_into_sections, sort_oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_columnar import mask_surviving_rows, merge
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import Mask, mask_retracts
from paimon.domain.merge.windows import Piece, add_run_positions, cut_into_windows
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.data_files.read_data_file import BATCH_ROWS, BatchLimit

ReadFile = Callable[[DataFileMeta, Sequence[DataField], Predicate | None, BatchLimit | None], Iterator[pa.RecordBatch]]
"""Reads columns of a file: file, columns, predicate that skips row groups, limit of a batch."""


@frozen(eq=False)
class MergeRead:
    """Read the files of a bucket and merge their records by key (merge on read)."""

    spec: MergeSpec
    # the table's columns that the result and its predicate need
    wanted: tuple[DataField, ...]
    # skips files and row groups only; the caller filters rows
    predicate: Predicate | None
    read_file: ReadFile
    # the size limit of a merge window
    buffer_bytes: int
    keep_retracts: bool = False
    # the most rows of a batch; fewer than usual if the read ends after few rows
    batch_rows: int = BATCH_ROWS

    def rows(self, files: Sequence[DataFileMeta]) -> Iterator[pa.RecordBatch]:
        """Read and merge a bucket's files, by key within a section; retracts only with `keep_retracts`."""
        for section in cut_into_sections(files, self.spec.sorted_key_types):
            yield from self._read_single_run(section[0]) if len(section) == 1 else self._read_merged(section)

    def _read_single_run(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            yield from read_live_rows(self.read_file, file, self.wanted, self.predicate, self.keep_retracts)

    def _read_merged(self, section: Section) -> Iterator[pa.RecordBatch]:
        files = [file for run in section for file in run.files]
        ordered = sort_oldest_first(files)
        columns = self._merge_columns(files, ordered)
        ages = {file.file_name: age for age, file in enumerate(ordered or ())}
        batch_rows = BATCH_ROWS if self._hides_many(files) else self.batch_rows
        limit_bytes = 2 * self.buffer_bytes // len(section)
        limit = BatchLimit.of(limit_bytes, columns, self.spec.fields, section, batch_rows)
        runs = [self._read_run(run, columns, ages, limit) for run in section]
        if self.spec.may_meet_nans:
            runs = add_run_positions(runs)
        combine = self._filter_window if get_merge_engine(self.spec).newest_wins else self._merge_window
        # A read that ends after few rows merges one batch of each run at a time.
        window_bytes = self.buffer_bytes if batch_rows == BATCH_ROWS else 1
        for window in cut_into_windows(runs, self.spec.key_fields, window_bytes):
            yield from combine(window)

    def _hides_many(self, files: Sequence[DataFileMeta]) -> bool:
        """Return whether retracts may hide half of the rows, so that even a read of few rows must decode many."""
        retracts = 0 if self.keep_retracts else sum(f.delete_row_count or 0 for f in files)
        return 4 * retracts >= sum(f.row_count for f in files)

    def _merge_columns(
        self, files: Sequence[DataFileMeta], ordered: Sequence[DataFileMeta] | None
    ) -> tuple[DataField, ...]:
        """Return the wanted columns, those that the merge needs, and system columns that metadata cannot replace."""
        wanted = {f.name: f for f in self.wanted}
        needed = self.spec.columns_needed(wanted)
        columns = [*self.wanted, *(f for f in self.spec.fields if f.name in needed and f.name not in wanted)]
        if ordered is None and SEQUENCE_NUMBER not in columns:
            columns.append(SEQUENCE_NUMBER)
        if VALUE_KIND not in columns and any(f.delete_row_count != 0 for f in files):
            columns.append(VALUE_KIND)
        if self.spec.lookup and not self._lookup_sees_newest(ordered):
            columns.append(LEVEL)
        return tuple(columns)

    def _lookup_sees_newest(self, ordered: Sequence[DataFileMeta] | None) -> bool:
        """Return whether a lookup finds the newest record of each key, and no other record matters."""
        if ordered is None or self.spec.sequence_fields or not get_merge_engine(self.spec).newest_wins:
            return False
        levels = [f.level for f in ordered]
        return levels == sorted(levels, reverse=True)

    def _read_run(
        self, run: SortedRun, columns: Sequence[DataField], ages: Mapping[str, int], limit: BatchLimit
    ) -> Iterator[Piece]:
        keys = restrict_to_columns(self.predicate, self.spec.key_names) if self.predicate is not None else None
        for file in run.files:
            for batch in self.read_file(file, columns, keys, limit):
                yield Piece(batch, ages.get(file.file_name, 0))

    def _filter_window(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        """Return the remaining rows of each file: the columns that order records decide; others are filtered."""
        system = (SEQUENCE_NUMBER.name, VALUE_KIND.name, LEVEL.name, RUN)
        ordering = [*self.spec.key_names, *self.spec.sequence_fields, *system]
        names = [name for name in ordering if name in window[0].batch.schema.names]
        keep = mask_surviving_rows(pa.Table.from_batches([piece.batch.select(names) for piece in window]), self.spec)
        start = 0
        for batch, _ in window:
            yield _filter_batch(batch, keep[start : start + batch.num_rows] & self._mask_visible(batch))
            start += batch.num_rows

    def _merge_window(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        merged = merge(pa.Table.from_batches([piece.batch for piece in window]), self.spec)
        for batch in merged.to_batches():
            yield _filter_batch(batch, self._mask_visible(batch))

    def _mask_visible(self, batch: pa.RecordBatch) -> Mask:
        return np.ones(batch.num_rows, dtype=np.bool_) if self.keep_retracts else ~mask_retracts(batch)


def read_live_rows(
    read_file: ReadFile,
    file: DataFileMeta,
    wanted: Sequence[DataField],
    predicate: Predicate | None,
    keep_retracts: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read a file's rows whose keys are in no other, in order; the predicate only skips row groups."""
    if keep_retracts or file.delete_row_count == 0:
        yield from read_file(file, wanted, predicate, None)
        return
    for batch in read_file(file, (*wanted, VALUE_KIND), predicate, None):
        yield _filter_batch(batch, ~mask_retracts(batch))


def _filter_batch(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(from_numpy(mask))
