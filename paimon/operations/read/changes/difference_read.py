"""Read the difference between two states of one bucket.

Invariant: the result equals a merge of each state and a comparison by key. It is computed window by window in bounded
memory. If the newest record of a key always wins, files that both states contain are skipped. Then a row that was
written again without a change counts as changed, as in Java. Source: `IncrementalDiffSplitRead`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.changelog.difference_columnar import compute_difference
from paimon.domain.lsm.sorted_run import Section, SortedRun, cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

ReadVersion = Callable[[DataFileMeta, DeletionFile | None, Sequence[DataField]], Iterator[pa.RecordBatch]]
"""Reads columns of a file without the rows that a deletion vector marks."""


@frozen
class Version:
    """A file, its deletion vector, and which of the two states contain it."""

    file: DataFileMeta
    vector: DeletionFile | None
    before: bool
    after: bool


@frozen(eq=False)
class DifferenceRead:
    """Read the rows that differ between two states of a bucket."""

    spec: MergeSpec
    read_version: ReadVersion
    # the size limit of a merge window
    buffer_bytes: int
    # also return rows of kind `-U` and `-D`
    keep_retracts: bool

    def rows(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Read all columns and `_VALUE_KIND` of the rows that differ."""
        by_age = get_merge_engine(self.spec).newest_wins and not self.spec.sequence_fields
        versions = [v for v in _collect_versions(split) if not (by_age and v.before and v.after)]
        by_file = {id(v.file): v for v in versions}
        for section in cut_into_sections([v.file for v in versions], self.spec.sorted_key_types):
            found = [by_file[id(file)] for run in section for file in run.files]
            if not all(v.before and v.after for v in found):
                yield from self._read_section(section, sorted(found, key=lambda v: v.file.min_sequence_number))

    def _read_section(self, section: Section, versions: Sequence[Version]) -> Iterator[pa.RecordBatch]:
        ages = {id(v.file): age for age, v in enumerate(versions)}
        runs = [self._read_run(run, versions, ages) for run in section]
        for window in cut_into_windows(runs, self.spec.key_fields, self.buffer_bytes):
            before = self._merge_window([p.batch for p in window if versions[p.age].before], window)
            after = self._merge_window([p.batch for p in window if versions[p.age].after], window)
            for batch in compute_difference(before, after, self.spec.key_fields).to_batches():
                yield batch if self.keep_retracts else batch.filter(from_numpy(~mask_retracts(batch)))

    def _read_run(self, run: SortedRun, versions: Sequence[Version], ages: dict[int, int]) -> Iterator[Piece]:
        columns = [*self.spec.fields, SEQUENCE_NUMBER, VALUE_KIND, *([LEVEL] if self.spec.lookup else [])]
        for file in run.files:
            age = ages[id(file)]
            for batch in self.read_version(file, versions[age].vector, columns):
                yield Piece(batch, age)

    def _merge_window(self, batches: Sequence[pa.RecordBatch], window: Sequence[Piece]) -> pa.Table:
        table = pa.Table.from_batches(batches, schema=window[0].batch.schema)
        merged = merge(table, self.spec) if table.num_rows else table
        return merged.select([*(f.name for f in self.spec.fields), VALUE_KIND.name])


def _collect_versions(split: DataSplit) -> list[Version]:
    """Return the files of both states; a file that is equal in both occurs once."""
    old = {(f.file_name, f.level, d): f for f, d in file_vectors(split.before_files, split.before_deletion_files)}
    new = {(f.file_name, f.level, d): f for f, d in file_vectors(split.files, split.deletion_files)}
    return [Version(file, key[2], key in old, key in new) for key, file in (old | new).items()]
