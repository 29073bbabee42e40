"""Reads the difference between two states of one bucket.

Law: equals merging each state alone and comparing them by key, window by window, in bounded memory. Files that both
states hold are left out where the newest record of a key wins by age alone, so that a row that was written again
unchanged counts as changed, as in Java; other engines need them to merge. Source: `IncrementalDiffSplitRead`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.changelog.difference.columnar import difference
from paimon.domain.lsm.sorted_run import Section, SortedRun, sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.columnar.ordering.order import retracts
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, windows
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.scan.state_difference import file_vectors
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

ReadVersion = Callable[[DataFileMeta, DeletionFile | None, Sequence[DataField]], Iterator[pa.RecordBatch]]
"""How a file's columns are read, without the rows that a deletion vector names."""


@frozen
class Version:
    """A file as one state or both have it."""

    file: DataFileMeta
    vector: DeletionFile | None
    before: bool
    after: bool


@frozen(eq=False)
class DifferenceRead:
    """One difference; see `MergeRead` for `buffer_bytes` and `keep_retracts`."""

    spec: MergeSpec
    read_version: ReadVersion
    buffer_bytes: int
    keep_retracts: bool

    def rows(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """All columns and `_VALUE_KIND` of the rows that differ."""
        by_age = engine_of(self.spec).newest_wins and not self.spec.sequence_fields
        versions = [v for v in _versions(split) if not (by_age and v.before and v.after)]
        by_file = {id(v.file): v for v in versions}
        for section in sections([v.file for v in versions], [f.type for f in self.spec.key_fields]):
            found = [by_file[id(file)] for run in section for file in run.files]
            if not all(v.before and v.after for v in found):
                yield from self._section(section, sorted(found, key=lambda v: v.file.min_sequence_number))

    def _section(self, section: Section, versions: Sequence[Version]) -> Iterator[pa.RecordBatch]:
        ages = {id(v.file): age for age, v in enumerate(versions)}
        runs = [self._pieces(run, versions, ages) for run in section]
        for window in windows(runs, self.spec.key_fields, self.buffer_bytes):
            before = self._merged([p.batch for p in window if versions[p.age].before], window)
            after = self._merged([p.batch for p in window if versions[p.age].after], window)
            for batch in difference(before, after, self.spec.key_fields).to_batches():
                yield batch if self.keep_retracts else batch.filter(pa.array(~retracts(batch)))

    def _pieces(self, run: SortedRun, versions: Sequence[Version], ages: dict[int, int]) -> Iterator[Piece]:
        columns = [*self.spec.fields, SEQUENCE_NUMBER, VALUE_KIND, *([LEVEL] if self.spec.lookup else [])]
        for file in run.files:
            age = ages[id(file)]
            for batch in self.read_version(file, versions[age].vector, columns):
                yield Piece(batch, age)

    def _merged(self, batches: Sequence[pa.RecordBatch], window: Sequence[Piece]) -> pa.Table:
        table = pa.Table.from_batches(batches, schema=window[0].batch.schema)
        merged = merge(table, self.spec) if table.num_rows else table
        return merged.select([*(f.name for f in self.spec.fields), VALUE_KIND.name])


def _versions(split: DataSplit) -> list[Version]:
    """The files of both states, those that are the same in both once."""
    old = {(f.file_name, f.level, d): f for f, d in file_vectors(split.before_files, split.before_deletion_files)}
    new = {(f.file_name, f.level, d): f for f, d in file_vectors(split.files, split.deletion_files)}
    return [Version(file, key[2], key in old, key in new) for key, file in (old | new).items()]
