"""Reads the files of a bucket whose rows must be merged.

Law: sections merge apart from each other; a section of one run needs no merge; every section is merged in windows
that fit the memory budget. Only the key, the order of records, and what the answer needs is read. Retracts are
dropped at the end. Source: `MergeFileSplitRead`, `MergeTreeReaders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.sorted_run import Section, SortedRun, sections
from paimon.domain.lsm.write_order import oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.columnar.newest import newest
from paimon.domain.merge.columnar.order import Mask, retracts
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, windows
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

ReadFile = Callable[[DataFileMeta, Sequence[DataField], Predicate | None], Iterator[pa.RecordBatch]]
"""How a file's columns are read: file, columns wanted, predicate that may skip."""


@frozen(eq=False)
class MergeRead:
    """One merge-on-read.

    Parameters
    ----------
    spec : MergeSpec
        How records of a key become one.
    wanted : tuple of DataField
        What the answer and its predicate need of the table's columns.
    predicate : Predicate, optional
        For skipping only.
    read_file : callable
        Reads a file.
    buffer_bytes : int
        What a window may hold.
    """

    spec: MergeSpec
    wanted: tuple[DataField, ...]
    predicate: Predicate | None
    read_file: ReadFile
    buffer_bytes: int

    def rows(self, files: Sequence[DataFileMeta]) -> Iterator[pa.RecordBatch]:
        """The merged rows of a bucket's files, with at least the wanted columns, without retracts."""
        for section in sections(files, [f.type for f in self.spec.key_fields]):
            yield from self._single(section[0]) if len(section) == 1 else self._merged(section)

    def _single(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            yield from live_rows(self.read_file, file, self.wanted, self.predicate)

    def _merged(self, section: Section) -> Iterator[pa.RecordBatch]:
        files = [file for run in section for file in run.files]
        ages = self._ages(files)
        kinds = (VALUE_KIND,) if ages is None or any(f.delete_row_count != 0 for f in files) else ()
        order = () if ages is not None else (SEQUENCE_NUMBER, *((LEVEL,) if self.spec.lookup else ()))
        columns = (*self._merge_columns(ages is not None), *order, *kinds)
        runs = [self._pieces(run, columns, ages or {}) for run in section]
        for window in windows(runs, self.spec.key_fields, self.buffer_bytes):
            yield from self._newest(window) if ages is not None else self._by_engine(window)

    def _ages(self, files: Sequence[DataFileMeta]) -> dict[str, int] | None:
        """The place of each file by age, where ages alone decide which record of a key is left; else None."""
        if self.spec.sequence_fields or self.spec.ignore_delete or not engine_of(self.spec.engine).newest_wins:
            return None
        ordered = oldest_first(files)
        if ordered is None or (self.spec.lookup and not _levels_by_age(ordered)):
            return None
        return {file.file_name: age for age, file in enumerate(ordered)}

    def _merge_columns(self, by_age: bool) -> tuple[DataField, ...]:
        wanted = {f.name: f for f in self.wanted}
        needed = [*self.spec.key_fields]
        if not by_age:
            needed += [f for f in self.spec.value_fields if f.name in self.spec.columns_needed(wanted)]
        return (*self.wanted, *(f for f in needed if f.name not in wanted))

    def _pieces(self, run: SortedRun, columns: Sequence[DataField], ages: dict[str, int]) -> Iterator[Piece]:
        keys = only_columns(self.predicate, self.spec.key_names) if self.predicate is not None else None
        for file in run.files:
            for batch in self.read_file(file, columns, keys):
                yield Piece(batch, ages.get(file.file_name, 0))

    def _newest(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        keep = newest([pa.chunked_array([p.batch.column(n) for p in window]) for n in self.spec.key_names])
        start = 0
        for batch, _ in window:
            mask = keep[start : start + batch.num_rows]
            start += batch.num_rows
            yield _kept(batch, mask & ~retracts(batch) if VALUE_KIND.name in batch.schema.names else mask)

    def _by_engine(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        merged = merge(pa.Table.from_batches([piece.batch for piece in window]), self.spec)
        for batch in merged.to_batches():
            yield _kept(batch, ~retracts(batch))


def live_rows(
    read_file: ReadFile, file: DataFileMeta, wanted: Sequence[DataField], predicate: Predicate | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file whose keys nobody else holds, without retracts."""
    if file.delete_row_count == 0:
        yield from read_file(file, wanted, predicate)
        return
    for batch in read_file(file, (*wanted, VALUE_KIND), predicate):
        yield _kept(batch, ~retracts(batch))


def _levels_by_age(ordered: Sequence[DataFileMeta]) -> bool:
    """Whether younger files lie on smaller levels: then the newest record is one of those that a lookup sees."""
    levels = [f.level for f in ordered]
    return levels == sorted(levels, reverse=True)


def _kept(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(pa.array(mask))
