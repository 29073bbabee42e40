"""Check the metadata of live files against each other, and the bounds of a manifest against its entries.

Files are checked as columns, which find the buckets at fault; only the files of these become objects, whose faults are
described one by one.

Invariant: Above level 0, the files of one level have disjoint keys. Keys and sequence numbers are in order. All files
of a partition have the same number of buckets. Scan planning prunes manifests by their bounds, so a bound that
excludes an entry loses rows; one that is too wide or unknown is not a fault.
Source: `Levels`, `ManifestEntry`, `FileStoreCommitImpl.checkNoConflicts`, `ManifestFileMeta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.bounds import decode_field
from paimon.domain.manifest.entries import DataFileMeta, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize, read_arity
from paimon.domain.types.arrow_arrays import make_array, to_numpy
from paimon.domain.types.data_types import DataType

_LOWEST_TOTAL = -(2**31)


def find_file_faults(
    files: Iterable[DataFileMeta], key_types: Sequence[DataType]
) -> Iterator[tuple[DataFileMeta, str]]:
    """Yield the contradictions in the metadata of each file; `key_types` is empty for files without keys."""
    for file in files:
        low, high = file.min_sequence_number, file.max_sequence_number
        if low > high:
            yield file, f"the smallest sequence number {low} is above the largest {high}"
        if file.delete_row_count is not None and file.delete_row_count > file.row_count:
            yield file, f"the metadata records {file.delete_row_count} deletes in {file.row_count} rows"
        if key_types and to_comparable_key(file.min_key, key_types) > to_comparable_key(file.max_key, key_types):
            yield file, "the smallest key is above the largest"


def find_overlaps(
    files: Iterable[DataFileMeta], key_types: Sequence[DataType]
) -> Iterator[tuple[DataFileMeta, DataFileMeta]]:
    """Yield each pair of adjacent files on one level of a bucket whose key ranges overlap."""
    above = sorted((f for f in files if f.level > 0), key=lambda f: f.level)
    for _, level in groupby(above, key=lambda f: f.level):
        keyed = sorted((KeyedFile.of(f, key_types) for f in level), key=lambda file: (file.low, file.high))
        for first, second in pairwise(keyed):
            if second.low <= first.high:
                yield first.file, second.file


def mark_buckets_at_fault(live: EntryColumns, key_types: Sequence[DataType]) -> Mask:
    """Mark the files of all buckets for which `find_file_faults` or `find_overlaps` yields a fault.

    Buckets with a key that columns cannot order are marked, too.
    """
    wrong = live.number("_MIN_SEQUENCE_NUMBER") > live.number("_MAX_SEQUENCE_NUMBER")
    wrong |= live.number("_DELETE_ROW_COUNT") > live.number("_ROW_COUNT")
    rows = np.flatnonzero(live.buckets >= 0) if key_types else np.zeros(0, np.int64)
    files, addresses, levels = live.files.take(rows), live.addresses[rows], live.number("_LEVEL")[rows]
    low, high, known = _rank_keys(files.field("_MIN_KEY"), files.field("_MAX_KEY"), key_types)
    wrong[rows] |= ~known | (low > high)
    order = np.lexsort((high, low, levels, addresses))
    order = order[levels[order] > 0]
    first, second = order[:-1], order[1:]
    overlaps = (
        (addresses[first] == addresses[second]) & (levels[first] == levels[second]) & (low[second] <= high[first])
    )
    wrong[rows[second[overlaps]]] = True
    marked: Mask = np.isin(live.addresses, live.addresses[wrong])
    return marked


def _rank_keys(low: pa.Array, high: pa.Array, types: Sequence[DataType]) -> tuple[Integers, Integers, Mask]:
    """Return numbers in the order of the smallest and the largest keys, and for which files both are known."""
    keys = pa.concat_arrays([low, high])
    ranks, known = np.zeros(len(keys), np.int64), np.ones(len(keys), dtype=bool)
    for position, data_type in enumerate(types):
        values, has_value, is_null = decode_field(keys, position, len(types), data_type)
        known &= has_value | is_null
        column = np.where(has_value, _rank_values(values) + 1, 0)
        ranks = _rank_values(ranks * (int(column.max(initial=0)) + 1) + column)
    return ranks[: len(low)], ranks[len(low) :], known[: len(low)] & known[len(low) :]


def _rank_values(values: Any) -> Integers:
    """Return numbers from 0 on in the order of the values, which `decode_field` returns."""
    if isinstance(values, pa.Array):
        values = to_numpy(pc.rank(values, tiebreaker="dense"))
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def find_bucket_counts(live: EntryColumns) -> dict[bytes, list[int]]:
    """Return the numbers of buckets, in order, for each serialized partition whose files record several."""
    fixed = live.buckets >= 0
    pairs = np.unique((live.partitions[fixed] << 32) + (live.total_buckets[fixed] - _LOWEST_TOTAL))
    partitions, counts = np.unique(pairs >> 32, return_counts=True)
    found = {live.partition_rows[p]: pairs[pairs >> 32 == p] for p in partitions[counts > 1].tolist()}
    return {row: ((totals & 0xFFFFFFFF) + _LOWEST_TOTAL).tolist() for row, totals in found.items()}


def find_bounds_faults(
    recorded: ManifestFileMeta, entries: EntryColumns, partition_types: Sequence[DataType]
) -> Iterator[str]:
    """Yield a text for each wrong bound that the manifest list records for a manifest (`recorded`)."""
    if not len(entries):
        return
    yield from _find_number_faults("buckets", entries.buckets, recorded.min_bucket, recorded.max_bucket)
    yield from _find_number_faults("levels", entries.number("_LEVEL"), recorded.min_level, recorded.max_level)
    outside = _count_outside(recorded, entries.partition_rows, partition_types)
    if outside:
        yield f"contains {outside} partitions outside the bounds in the manifest list"


def _count_outside(recorded: ManifestFileMeta, partitions: Sequence[bytes], types: Sequence[DataType]) -> int:
    """Count the partitions for which `may_hold_partition` is false; those that columns cannot compare go through it."""
    stats = recorded.partition_stats
    if not types or not read_arity(stats.min_values):
        return 0
    rows = make_array([*partitions, stats.min_values, stats.max_values], pa.binary())
    outside, unclear = np.zeros(len(partitions), dtype=bool), np.zeros(len(partitions), dtype=bool)
    for position, data_type in enumerate(types):
        values, known, is_null = decode_field(rows, position, len(types), data_type)
        unclear |= ~(known | is_null)[:-2] | ~(known | is_null)[-2:].all()
        ranks = _rank_values(values)
        if bool(known[-2:].all()):
            outside |= known[:-2] & ((ranks[:-2] < ranks[-2]) | (ranks[:-2] > ranks[-1]))
        if any(count is not None and count <= 0 for count in stats.null_counts[position : position + 1]):
            outside |= is_null[:-2]
    rest = [deserialize(partitions[row], types) for row in np.flatnonzero(unclear).tolist()]
    return int(np.count_nonzero(outside & ~unclear)) + sum(not may_hold_partition(recorded, r, types) for r in rest)


def _find_number_faults(name: str, values: Integers, low: int | None, high: int | None) -> Iterator[str]:
    first, last = int(values.min()), int(values.max())
    if (low is not None and first < low) or (high is not None and last > high):
        yield f"contains {name} {first} to {last}, but the manifest list records {low} to {high}"
