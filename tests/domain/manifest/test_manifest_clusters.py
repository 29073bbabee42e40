"""Manifests merged in partition order: the same entries, few partitions in each part, and no earlier merges."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifest_columns import to_entry_columns

from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.manifest.manifest_stats import manifest_meta, partition_stats
from paimon.domain.manifest.merge_plan import (
    SMALLEST_PART_BYTES,
    MergeLimits,
    count_parts,
    is_clustered,
    order_by_partition,
    split_rows,
)
from paimon.domain.manifest.record_columns import ArrayColumns, SlicedColumns, join_records
from paimon.domain.row.binary_row import serialize
from paimon.domain.stats.simple_stats import from_simple_stats
from paimon.domain.types.data_types import DataType, DoubleType, IntType, VarCharType

TYPES: list[DataType] = [IntType(), VarCharType(9), DoubleType()]
ROWS = st.tuples(
    st.none() | st.integers(-300, 300), st.none() | st.text(max_size=9), st.none() | st.floats(allow_infinity=False)
)


def split(entries: list[ManifestEntry], types: list[DataType], parts: int) -> list[list[ManifestEntry]]:
    columns = to_entry_columns(entries)
    order = order_by_partition(columns, types)
    return [[entries[row] for row in order[part]] for part in split_rows(columns.partitions[order], parts)]


def entry(number: int, row: tuple[object, ...]) -> ManifestEntry:
    return ManifestEntry(FileKind.ADD, serialize(row, TYPES), 0, -1, DataFileMeta(f"data-{number}.orc", 1, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=30), st.integers(1, 9))
def test_parts_hold_the_same_entries_and_share_no_partition(rows: list[tuple[object, ...]], parts: int) -> None:
    entries = [entry(i, row) for i, row in enumerate(rows)]
    found = split(entries, TYPES, parts)
    assert len(found) <= parts
    for partition in {e.partition for e in entries}:
        (cluster,) = (part for part in found if any(e.partition == partition for e in part))
        assert [e for e in cluster if e.partition == partition] == [e for e in entries if e.partition == partition]
    assert sum(map(len, found)) == len(entries)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, unique=True, max_size=30), st.integers(1, 9))
def test_bounds_of_parts_do_not_overlap(values: list[int], parts: int) -> None:
    types: list[DataType] = [IntType()]
    entries = [
        ManifestEntry(FileKind.ADD, serialize((v,), types), 0, -1, DataFileMeta(f"data-{v}.orc", 1, 1)) for v in values
    ]
    bounds = [
        from_simple_stats(partition_stats([e.partition for e in part], types), types)[0]
        for part in split(entries, types, parts)
    ]
    assert all(low.maximum < high.minimum for low, high in pairwise(bounds))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, max_size=30), st.integers(1, 9))
def test_sorted_manifests_are_clustered_and_others_with_all_partitions_are_not(
    rows: list[tuple[object, ...]], size: int
) -> None:
    entries = [entry(i, row) for i, row in enumerate(rows)]
    order = order_by_partition(to_entry_columns(entries), TYPES)
    cuts = [[entries[row] for row in order[i : i + size]] for i in range(0, len(order), size)]
    limits = MergeLimits(1, 1, 30)
    assert is_clustered([manifest_meta(f"m{i}", 1, cut, TYPES) for i, cut in enumerate(cuts)], TYPES, limits)
    if len({e.partition for e in entries}) > 1 and all(None not in row for row in rows):
        whole = [manifest_meta(f"m{i}", 1, entries, TYPES) for i in range(7)]
        assert not is_clustered(whole, TYPES, limits)
        assert is_clustered(whole[:6], TYPES, limits)
        assert is_clustered(whole, TYPES, MergeLimits(2, 1, 30))  # they are merged in any case


@given(st.integers(0, 2**24), st.integers(1, 100))
def test_parts_are_large_and_leave_room_before_the_next_merge(size_bytes: int, min_count: int) -> None:
    limits = MergeLimits(8 * 2**20, 16 * 2**20, min_count)
    parts = count_parts(size_bytes, limits)
    assert parts == 1 or (parts <= min_count // 3 and size_bytes // parts >= SMALLEST_PART_BYTES)
    assert parts == 1 or size_bytes < limits.target_size_bytes  # a full manifest stays one


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=4), st.data())
def test_joined_and_sliced_columns_are_those_of_all_records(parts: list[list[int]], data: st.DataObject) -> None:
    kind = pa.struct([("a", pa.int64())])
    parts = [[value % 100 for value in part] for part in parts]
    whole = [value for part in parts for value in part]
    found = join_records([ArrayColumns(pa.array([{"a": v} for v in part], kind)) for part in parts], kind)
    assert (len(found), found.column("a").to_pylist()) == (len(whole), whole)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    sliced = SlicedColumns(found, start, stop)
    assert sliced.column("a").to_pylist() == whole[start:stop]
    rows = sorted(data.draw(st.sets(st.integers(0, max(stop - start - 1, 0))))) if stop > start else []
    picked = sliced.take(pa.array(rows, pa.int64()).to_numpy())
    assert picked.field("a").to_pylist() == [whole[start:stop][row] for row in rows]
