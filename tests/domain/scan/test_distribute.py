"""Shards and slices of a plan are disjoint, complete, and keep the order of the rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange
from paimon.domain.scan.distribute import select_shard, select_slice
from paimon.domain.scan.splits import DataSplit, DeletionFile

Row = tuple[str, int]


def make_split(number: int, row_counts: list[int], raw: bool = True) -> DataSplit:
    files = [DataFileMeta(f"{number}-{i}.parquet", 100, rows) for i, rows in enumerate(row_counts)]
    return DataSplit(1, b"", number, 4, f"bucket-{number}", files, raw)


def list_rows(splits: tuple[DataSplit, ...]) -> list[Row]:
    """Return the file and the position of each row that is read."""
    rows = []
    for split in splits:
        for place, file in enumerate(split.files):
            first, end = split.row_ranges[place] if split.row_ranges else (0, file.row_count)
            rows += [(file.file_name, position) for position in range(first, end)]
    return rows


PLANS = st.lists(st.tuples(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans()), max_size=5).map(
    lambda given: tuple(make_split(i, rows, raw) for i, (rows, raw) in enumerate(given))
)


@given(PLANS, st.integers(1, 7))
def test_shards_contain_each_row_once_and_in_order(splits: tuple[DataSplit, ...], shards: int) -> None:
    parts = [list_rows(select_shard(splits, shard, shards)) for shard in range(shards)]
    assert [row for part in parts for row in part] == list_rows(splits)


@given(PLANS, st.integers(1, 7))
def test_shards_of_plain_files_have_equally_many_rows(splits: tuple[DataSplit, ...], shards: int) -> None:
    plain = tuple(split for split in splits if split.raw_convertible)
    sizes = [sum(split.row_count for split in select_shard(plain, shard, shards)) for shard in range(shards)]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(PLANS, st.integers(1, 7))
def test_files_that_are_merged_stay_together(splits: tuple[DataSplit, ...], shards: int) -> None:
    merged = [split for split in splits if not split.raw_convertible]
    found = [split for shard in range(shards) for split in select_shard(splits, shard, shards)]
    assert [split for split in found if not split.raw_convertible] == merged


@given(PLANS, st.integers(0, 60), st.integers(1, 60))
def test_a_slice_has_the_rows_at_its_positions(splits: tuple[DataSplit, ...], first: int, length: int) -> None:
    plain = tuple(split for split in splits if split.raw_convertible)
    assert list_rows(select_slice(plain, first, first + length)) == list_rows(plain)[first : first + length]


@given(PLANS, st.integers(1, 5), st.integers(1, 5))
def test_a_shard_of_a_shard_is_a_part_of_it(splits: tuple[DataSplit, ...], outer: int, inner: int) -> None:
    for shard in range(outer):
        whole = select_shard(splits, shard, outer)
        parts = [list_rows(select_shard(whole, part, inner)) for part in range(inner)]
        assert [row for part in parts for row in part] == list_rows(whole)


def test_deletion_vectors_stay_with_their_files() -> None:
    vector = DeletionFile("index", DeletionVectorRange("0-1.parquet", 0, 10, 1))
    whole = make_split(0, [4, 4, 4])
    split = DataSplit(1, b"", 0, 4, "bucket-0", whole.files, True, (None, vector, None))
    (part,) = select_slice((split,), 5, 7)
    assert [file.file_name for file in part.files] == ["0-1.parquet"]
    assert part.deletion_files == (vector,)
    assert part.row_count == 2
    assert part.merged_row_count is None


@pytest.mark.parametrize(("shard", "shards"), [(-1, 3), (3, 3), (0, 0), ("0", 3), (0, 2.5)])
def test_an_impossible_shard_is_refused(shard: object, shards: object) -> None:
    with pytest.raises(InvalidRequest, match="There is no shard"):
        select_shard((), shard, shards)  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "end"), [(-1, 3), (3, 3), (4, 2), ("0", 3)])
def test_an_impossible_slice_is_refused(first: object, end: object) -> None:
    with pytest.raises(InvalidRequest, match="are not a range"):
        select_slice((), first, end)  # type: ignore[arg-type]


def test_a_slice_of_merged_files_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="rows of bucket 3 have no positions"):
        select_slice((make_split(0, [1]), make_split(3, [2], raw=False)), 0, 1)
