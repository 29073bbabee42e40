"""Measure how the live files of a table lie in its buckets: sizes, levels, sorted runs, and files to combine.

Invariant: all figures come from the columns of manifests; no object is created for a file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.maintenance.small_files import PackRules
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow_arrays import to_numpy

_FEWEST_FILES = 5
"""In a merge tree, fewer small files than this are not worth a rewrite of their bucket."""


@frozen
class LayoutRules:
    """What the options of a table say about the sizes of its files."""

    # whether files have levels, because the table has a primary key
    has_levels: bool
    target_bytes: int
    # a file is small below this size
    small_bytes: int
    # the smallest number of small files that a compaction combines
    min_files: int
    # whether only files with adjacent sequence numbers are combined
    ordered: bool = False
    # whether only files of rows whose ids follow each other are combined
    by_row_ids: bool = False

    @classmethod
    def of(cls, table: TableDefinition) -> LayoutRules:
        """Return the rules of a table."""
        options = table.options
        if table.schema.primary_keys:
            small = CompactionRules.of(options).small_file_bytes
            return cls(True, options.target_file_size_bytes(True), small, _FEWEST_FILES)
        packing = PackRules.of(options, full=False)
        return cls(
            False,
            packing.target_bytes,
            packing.small_bytes,
            packing.min_files,
            packing.ordered,
            options.data_evolution_enabled,
        )


@frozen
class LevelShape:
    """The files of one level of a bucket."""

    level: int
    files: int
    size_bytes: int


def _to_tuple(values: Sequence[LevelShape]) -> tuple[LevelShape, ...]:
    return tuple(values)


@frozen
class BucketShape:
    """The levels of one bucket, the lowest first."""

    # such as `day=2026-01-01/bucket-0`
    name: str
    levels: tuple[LevelShape, ...] = field(converter=_to_tuple, default=())


@frozen(eq=False)
class BucketColumns:
    """The buckets of a table, one element each, in the order of the partitions in the manifests."""

    # the position of each bucket's partition in `partition_rows`
    partitions: Integers
    # the partitions as serialized BinaryRows
    partition_rows: tuple[bytes, ...]
    # the number of the bucket; -2 is the postponed one
    buckets: Integers
    files: Integers
    size_bytes: Integers
    rows: Integers
    small_files: Integers
    # files that would be gone if the small ones were combined
    surplus_files: Integers
    # sorted runs: files of level 0, and levels above it
    runs: Integers
    # stored rows of level 0
    level_0_rows: Integers
    # the bucket (ascending), level, number and bytes of the files of each level of each bucket
    level_buckets: Integers
    levels: Integers
    level_files: Integers
    level_bytes: Integers

    def __len__(self) -> int:
        return len(self.buckets)

    def levels_of(self, bucket: int) -> tuple[LevelShape, ...]:
        """Return the levels of the bucket at a position."""
        start, end = np.searchsorted(self.level_buckets, [bucket, bucket + 1]).tolist()
        columns = (self.levels, self.level_files, self.level_bytes)
        return tuple(LevelShape(*row) for row in zip(*(c[start:end].tolist() for c in columns), strict=True))


def measure_buckets(live: EntryColumns, rules: LayoutRules) -> BucketColumns:
    """Measure the buckets of live files."""
    keys = live.partitions * (1 << 32) + live.buckets
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    count = len(first)
    sizes, rows, levels = live.number("_FILE_SIZE"), live.number("_ROW_COUNT"), live.number("_LEVEL")
    above = levels > 0
    is_small = (sizes < rules.small_bytes) & (above if rules.has_levels else True)
    combined = _mark_adjacent(live, places, is_small, rules.min_files) if rules.ordered else is_small
    if rules.by_row_ids:
        combined = _mark_joined(live, places, sizes * rules.min_files <= rules.target_bytes, rules.min_files)
    pairs, level_places = np.unique(places * (1 << 32) + levels, return_inverse=True)
    owners, level_numbers = pairs >> 32, pairs & 0xFFFFFFFF
    runs = _count(places, ~above, count) + _count(owners, level_numbers > 0, count)
    # a full compaction leaves the files of a single sorted run as they are
    is_combinable = (runs > 1) | (not rules.has_levels)
    return BucketColumns(
        partitions=live.partitions[first],
        partition_rows=live.partition_rows,
        buckets=live.buckets[first],
        files=_count(places, None, count),
        size_bytes=_add(places, sizes, count),
        rows=_add(places, rows, count),
        small_files=_count(places, is_small, count),
        surplus_files=np.where(is_combinable, _count_surplus(places, sizes, combined, count, rules), 0),
        runs=runs if rules.has_levels else np.ones(count, dtype=np.int64),
        level_0_rows=_add(places[~above], rows[~above], count),
        level_buckets=owners,
        levels=level_numbers,
        level_files=_count(level_places, None, len(pairs)),
        level_bytes=_add(level_places, sizes, len(pairs)),
    )


def _count_surplus(places: Integers, sizes: Integers, combined: Mask, count: int, rules: LayoutRules) -> Integers:
    """Return how many files each bucket would lose; 0 where fewer than `min_files` are small."""
    files = _count(places, combined, count)
    bytes_of_files = _add(places[combined], sizes[combined], count)
    remaining = -(-bytes_of_files // max(rules.target_bytes, 1))
    surplus: Integers = np.where(files >= rules.min_files, np.maximum(files - remaining, 0), 0)
    return surplus


def _mark_adjacent(live: EntryColumns, places: Integers, is_small: Mask, least: int) -> Mask:
    """Mark the small files of each bucket that follow each other by sequence number, at least `least` in a row."""
    order = np.lexsort((live.number("_MAX_SEQUENCE_NUMBER"), live.number("_MIN_SEQUENCE_NUMBER"), places))
    small, owners = is_small[order], places[order]
    return _mark_stretches(order, small, (small[1:] != small[:-1]) | (owners[1:] != owners[:-1]), least)


def _mark_joined(live: EntryColumns, places: Integers, is_small: Mask, least: int) -> Mask:
    """Mark the small files of the same rows and of rows whose ids follow each other; BLOB and VECTOR files stay."""
    names = live.files.field("_FILE_NAME").cast(pa.string())
    is_dedicated = to_numpy(pc.match_substring_regex(names, r"\.vector\.|\.blob$"))
    starts = live.number("_FIRST_ROW_ID", -1)
    joined = is_small & ~is_dedicated & (starts >= 0)
    order = np.lexsort((starts, ~joined, places))
    start, small, owners = starts[order], joined[order], places[order]
    end = start + live.number("_ROW_COUNT")[order]
    is_near = (start[1:] == start[:-1]) | (start[1:] == end[:-1])
    return _mark_stretches(order, small, ~is_near | (small[1:] != small[:-1]) | (owners[1:] != owners[:-1]), least)


def _mark_stretches(order: Integers, chosen: Mask, ends: Mask, least: int) -> Mask:
    """Mark the chosen files, given in this order, of stretches of at least `least`; `ends` is True after the last."""
    marked = np.zeros(len(order), dtype=bool)
    if len(order):
        stretches = np.concatenate(([0], np.cumsum(ends)))
        marked[order] = chosen & (np.bincount(stretches)[stretches] >= least)
    return marked


def _count(places: Integers, mask: Mask | None, count: int) -> Integers:
    """Return how many elements each place has, of those that the mask selects."""
    chosen = places if mask is None else places[mask]
    return np.bincount(chosen, minlength=count).astype(np.int64)


def _add(places: Integers, values: Integers, count: int) -> Integers:
    """Return the sum of the values of each place."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums
