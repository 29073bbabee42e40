"""Find the rows that a merge drops, by their numbers in the files, from keys and sequence numbers alone.

A query engine with its own Parquet reader then reads the other columns, of the remaining rows.

Invariant: the files without these rows have the rows of the merged split. Only for engines whose newest record wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket, read_data_file
from paimon.operations.metadata.snapshots import report_expired
from paimon.operations.read.merge_read import MergeRead
from paimon.operations.read.split import get_window_bytes
from paimon.operations.table_context import TableContext

_VIEW = "lost rows"
"""The view of the first file of a split in the cache."""
_PLACE = f"{KEY_PREFIX}_PLACE"
"""A name that no column of a table has."""
_ROW_BYTES = 16
"""What a query engine needs for a lost row, about."""
_MEMORY_SHARE = 8
"""The part of the memory budget (1/n) for the marks of all rows, and for lost rows."""
_MOST_LOST = 0.2
"""The part of the rows that may be lost. To leave out more takes an engine longer than to read merged rows."""


@frozen(eq=False)
class _LostRows:
    """The lost rows of a split in the cache; None where they are too many."""

    files: tuple[DataFileMeta, ...]
    spec: MergeSpec
    rows: tuple[pa.Array, ...] | None


def find_lost_rows(context: TableContext, split: DataSplit, predicate: Predicate | None) -> tuple[pa.Array, ...] | None:
    """Return the numbers of the lost rows for each file of a split that needs a merge.

    None if they are too many, or if a predicate on the key lets a merge read a part of the keys only.
    """
    spec = MergeSpec.of(context.schema, context.options)
    known = evolve(spec, options=TableOptions())
    found = context.engine.cache.get(split.file_paths[0], _VIEW)
    if isinstance(found, _LostRows) and (found.files, found.spec) == (split.files, known):
        return found.rows
    if predicate is not None and restrict_to_columns(predicate, spec.key_names) is not None:
        return None
    rows = _find_rows(context, split, spec)
    size = 1_000 * len(split.files) + sum(numbers.nbytes for numbers in rows or ())
    context.engine.cache.put(split.file_paths[0], _LostRows(split.files, known, rows), size, _VIEW)
    return rows


def _find_rows(context: TableContext, split: DataSplit, spec: MergeSpec) -> tuple[pa.Array, ...] | None:
    starts = np.cumsum([0, *(file.row_count for file in split.files)])
    if starts[-1] * _MEMORY_SHARE > context.engine.memory.bytes:
        return None
    first = {file.file_name: start for file, start in zip(split.files, starts, strict=False)}
    is_lost = np.zeros(starts[-1], dtype=np.bool_)
    bucket = Bucket.of(context, split)

    def read_numbered(
        file: DataFileMeta, columns: Sequence[DataField], predicate: Predicate | None, limit: BatchLimit | None
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of all rows of a file with the place of each row among all rows of the split."""
        place = first[file.file_name]
        for batch in read_data_file(bucket, file, columns, limit=limit):
            places = np.arange(place, place + batch.num_rows)
            place += batch.num_rows
            yield batch.append_column(_PLACE, pa.array(places))

    files = _list_merged_files(split.files, spec)
    for file in files:
        is_lost[first[file.file_name] : first[file.file_name] + file.row_count] = True
    merge = MergeRead(spec, spec.key_fields[:1], None, read_numbered, get_window_bytes(context.engine))
    with report_expired(context, split.snapshot_id):
        for batch in merge.rows(files):
            is_lost[batch[_PLACE].to_numpy()] = False
    count = int(np.count_nonzero(is_lost))
    if count > _MOST_LOST * len(is_lost) or count * _ROW_BYTES * _MEMORY_SHARE > context.engine.memory.bytes:
        return None
    return tuple(pa.array(np.flatnonzero(is_lost[low:high])) for low, high in pairwise(starts))


def _list_merged_files(files: Sequence[DataFileMeta], spec: MergeSpec) -> list[DataFileMeta]:
    """Return the files that share key ranges, and those with retracts: all rows of the others remain."""
    read = {
        file.file_name
        for section in cut_into_sections(files, spec.sorted_key_types)
        for run in section
        for file in run.files
        if len(section) > 1 or file.delete_row_count != 0
    }
    return [file for file in files if file.file_name in read]  # in their order, which decides where NaN orders records
