"""Reads the files of a bucket whose rows must be merged.

Law: sections merge apart from each other; a section of one run needs no merge; every section is merged in windows
that fit the memory budget. Only the key, the order of records, and what the answer needs is read. Retracts are
dropped at the end, unless they are asked for. Source: `MergeFileSplitRead`, `MergeTreeReaders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.sorted_run import Section, SortedRun, sections
from paimon.domain.lsm.write_order import oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.merge import merge, surviving
from paimon.domain.merge.columnar.ordering.nan_order import RUN
from paimon.domain.merge.columnar.ordering.order import Mask, retracts
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, in_tree, windows
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.read.data_file import BATCH_ROWS

ReadFile = Callable[[DataFileMeta, Sequence[DataField], Predicate | None, int], Iterator[pa.RecordBatch]]
"""How a file's columns are read: file, columns wanted, predicate that may skip, rows at a time."""
_LEAST_ROWS = 256
_UNPACKED = 4
"""Text takes about so many times the bytes in memory that it takes in files."""


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
    keep_retracts : bool
        Answer retracts too.
    """

    spec: MergeSpec
    wanted: tuple[DataField, ...]
    predicate: Predicate | None
    read_file: ReadFile
    buffer_bytes: int
    keep_retracts: bool = False

    def rows(self, files: Sequence[DataFileMeta]) -> Iterator[pa.RecordBatch]:
        """The merged rows of a bucket's files, with at least the wanted columns, without retracts."""
        for section in sections(files, [f.type for f in self.spec.key_fields]):
            yield from self._single(section[0]) if len(section) == 1 else self._merged(section)

    def _single(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            yield from live_rows(self.read_file, file, self.wanted, self.predicate, self.keep_retracts)

    def _merged(self, section: Section) -> Iterator[pa.RecordBatch]:
        files = [file for run in section for file in run.files]
        ordered = oldest_first(files)
        columns = self._merge_columns(files, ordered)
        ages = {file.file_name: age for age, file in enumerate(ordered or ())}
        rows = _batch_rows(section, columns, self.spec, self.buffer_bytes)
        runs = [self._pieces(run, columns, ages, rows) for run in section]
        if self.spec.may_meet_nans:
            runs = in_tree(runs)
        combine = self._survivors if engine_of(self.spec).newest_wins else self._by_engine
        for window in windows(runs, self.spec.key_fields, self.buffer_bytes):
            yield from combine(window)

    def _merge_columns(
        self, files: Sequence[DataFileMeta], ordered: Sequence[DataFileMeta] | None
    ) -> tuple[DataField, ...]:
        """What is wanted, what the merge needs, and of the system columns only what the files leave open."""
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
        """Whether the newest record of each key is surely among those that a lookup sees, and nothing else counts."""
        if ordered is None or self.spec.sequence_fields or not engine_of(self.spec).newest_wins:
            return False
        levels = [f.level for f in ordered]
        return levels == sorted(levels, reverse=True)

    def _pieces(
        self, run: SortedRun, columns: Sequence[DataField], ages: Mapping[str, int], rows: int
    ) -> Iterator[Piece]:
        keys = only_columns(self.predicate, self.spec.key_names) if self.predicate is not None else None
        for file in run.files:
            for batch in self.read_file(file, columns, keys, rows):
                yield Piece(batch, ages.get(file.file_name, 0))

    def _survivors(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        """The rows that are left of each file: found by the columns that order records, and filtered where they are."""
        system = (SEQUENCE_NUMBER.name, VALUE_KIND.name, LEVEL.name, RUN)
        ordering = [*self.spec.key_names, *self.spec.sequence_fields, *system]
        names = [name for name in ordering if name in window[0].batch.schema.names]
        keep = surviving(pa.Table.from_batches([piece.batch.select(names) for piece in window]), self.spec)
        start = 0
        for batch, _ in window:
            yield _kept(batch, keep[start : start + batch.num_rows] & self._shown(batch))
            start += batch.num_rows

    def _by_engine(self, window: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        merged = merge(pa.Table.from_batches([piece.batch for piece in window]), self.spec)
        for batch in merged.to_batches():
            yield _kept(batch, self._shown(batch))

    def _shown(self, batch: pa.RecordBatch) -> Mask:
        return np.ones(batch.num_rows, dtype=np.bool_) if self.keep_retracts else ~retracts(batch)


def live_rows(
    read_file: ReadFile,
    file: DataFileMeta,
    wanted: Sequence[DataField],
    predicate: Predicate | None,
    keep_retracts: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file whose keys nobody else holds, without retracts."""
    if keep_retracts or file.delete_row_count == 0:
        yield from read_file(file, wanted, predicate, BATCH_ROWS)
        return
    for batch in read_file(file, (*wanted, VALUE_KIND), predicate, BATCH_ROWS):
        yield _kept(batch, ~retracts(batch))


def _batch_rows(section: Section, columns: Sequence[DataField], spec: MergeSpec, buffer_bytes: int) -> int:
    """Rows of a batch, of which every run holds one: together they take about as much as a window may hold."""
    types = {f.name: arrow_type(f.type) for f in (*spec.fields, *columns)}
    texts = sum(not pa.types.is_primitive(kind) for kind in types.values()) or 1
    stored = max(run.file_size // max(1, run.row_count) for run in section)
    row_bytes = sum(
        types[f.name].bit_width // 8 + 1 if pa.types.is_primitive(types[f.name]) else _UNPACKED * stored // texts
        for f in columns
    )
    return max(_LEAST_ROWS, min(BATCH_ROWS, 2 * buffer_bytes // (len(section) * max(1, row_bytes))))


def _kept(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(from_numpy(mask))
