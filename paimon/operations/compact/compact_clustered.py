"""Compact one bucket whose files are clustered by other columns than the primary key (`pk-clustering-override`).

Invariant: afterwards no key has two live rows above level 0, and no retract is left in the written files. Memory use
stays within the budget.

Source: `ClusteringCompactManager`, `ClusteringKeyIndex`, `ClusteringFileRewriter`.
"""

# The rows of level 0 are merged by key, window by window. Each window is looked up in all files above level 0, which
# are in no key order: their key columns are read, and found by hashes. A writer that compacts the same bucket again
# and again keeps them as lookup files (`lookup_cache.py`). What a found key means depends on the merge engine:
#
#     deduplicate    the row above is marked as deleted        first-row    the row of level 0 is left out
#
# With several writers, a file of level 0 can be older than one above: it was written before, and committed late. Where
# the sequence numbers of the files allow this, those of the rows are compared, and the older row is left out.
#
# Then the rows are sorted by the clustering columns (`external_sort.py`), and written to level 1. The rows of files to
# merge are read afterwards, without those that were marked just now.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.compaction.clustered_plan import ClusteredPlan
from paimon.domain.lsm.lookup_hashes import Rows, add_lookup_hashes, find_equal_keys
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.compact.lookup_cache import BucketLookupFiles
from paimon.operations.compact.section_read import SectionRead
from paimon.operations.data_files.deletion_vectors import WorkingVectors
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.data_files.read_data_file import Bucket, read_data_file

Mask = npt.NDArray[np.bool_]


@frozen(eq=False)
class ClusteredWork:
    """The rewrite of the files of one bucket."""

    bucket: Bucket
    plan: ClusteredPlan
    # updated by `read_outputs`, which marks replaced rows
    vectors: WorkingVectors
    # the lookup files of the bucket; None if there is no lookup cache
    copies: BucketLookupFiles | None = None

    def read_outputs(self) -> Iterator[Iterator[pa.Table]]:
        """Yield the rows of each series of new files, in their order; each is to be read before the next."""
        if self.plan.is_full:
            yield self._sort(chain(self._read_new(), self._read_merged()))
            return
        yield self._sort(self._read_new())
        yield self._sort(self._read_merged())

    @property
    def _columns(self) -> tuple[DataField, ...]:
        return (*self.bucket.context.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)

    def _sort(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        context = self.bucket.context
        return sort_rows(context.engine, pieces, SortOrder("order", context.table.get_bound_fields(level=1)))

    def _read_merged(self) -> Iterator[pa.Table]:
        for file in self.plan.merged:
            for batch in read_data_file(self.bucket, file, self._columns, deleted=self.vectors.find_marked(file)):
                yield _drop_retracts(pa.Table.from_batches([batch]))

    def _read_new(self) -> Iterator[pa.Table]:
        """Yield the merged rows of level 0 that are to be live, and mark the rows that they replace."""
        context = self.bucket.context
        spec = MergeSpec.of(context.schema, context.options)
        reader = SectionRead.for_merge(self.bucket, spec, self.vectors)
        for section in cut_into_sections(self.plan.new, [f.type for f in spec.key_fields]):
            for rows in reader.read_merged(section):
                found = _drop_retracts(self._resolve(rows, is_oldest_winning(spec.engine)))
                yield found.select([column.name for column in self._columns])

    def _resolve(self, rows: pa.Table, oldest_wins: bool) -> pa.Table:
        """Look the keys up: leave out the rows that lose, or mark those that they replace."""
        names = [*(f.name for f in self.bucket.context.schema.key_fields), SEQUENCE_NUMBER.name]
        asked = pa.RecordBatch.from_arrays([rows[name].combine_chunks() for name in names], names)
        loses = np.zeros(rows.num_rows, dtype=np.bool_)
        for file in self.plan.clustered if rows.num_rows else ():
            for found, positions, is_newer in self._find_keys(file, asked):
                loses[found] |= is_newer | oldest_wins
                if not oldest_wins:
                    self.vectors.mark(file, positions[~is_newer])
        return rows.filter(from_numpy(~loses)) if loses.any() else rows

    def _find_keys(self, file: DataFileMeta, asked: pa.RecordBatch) -> Iterator[tuple[Rows, Rows, Mask]]:
        """Yield which of the keys a file has in live rows, the positions of these rows, and which of them are newer."""
        keys = self.bucket.context.schema.key_fields
        may_be_newer = file.max_sequence_number > min(f.min_sequence_number for f in self.plan.new)
        columns = (*keys, SEQUENCE_NUMBER) if may_be_newer else keys
        vector, start = self.vectors.find_vector(file), 0
        for block in self._read_blocks(file, columns):
            found, places = find_equal_keys(asked, block, keys)
            if vector is not None and len(places):
                is_live = ~vector.mask(start, block.num_rows)[places]
                found, places = found[is_live], places[is_live]
            if len(places):
                is_newer = np.zeros(len(places), dtype=np.bool_)
                if may_be_newer:
                    is_newer = _get_numbers(block)[places] > _get_numbers(asked)[found]
                yield found, places + start, is_newer
            start += block.num_rows

    def _read_blocks(self, file: DataFileMeta, columns: Sequence[DataField]) -> Iterable[pa.RecordBatch]:
        """Return columns of a file, the key among them, in blocks with their lookup hashes."""
        keys = self.bucket.context.schema.key_fields
        copied = self.copies.find_blocks(self.bucket, file, columns) if self.copies is not None else None
        if copied is not None:
            return copied
        return (add_lookup_hashes(batch, keys) for batch in read_data_file(self.bucket, file, columns))


def _get_numbers(rows: pa.RecordBatch) -> Rows:
    numbers: Rows = rows.column(SEQUENCE_NUMBER.name).to_numpy()
    return numbers


def _drop_retracts(rows: pa.Table) -> pa.Table:
    retracts = mask_retracts(rows)
    return rows.filter(from_numpy(~retracts)) if retracts.any() else rows
