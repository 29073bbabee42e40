"""Files with the same row ids are read together, the newest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.row_id_groups import group_by_row_range
from paimon.domain.scan.split_packing import SplitLimits, pack_ranges

FILES = st.lists(
    st.builds(
        DataFileMeta,
        file_name=st.uuids().map(str),
        file_size=st.integers(1, 50),
        row_count=st.integers(1, 5),
        max_sequence_number=st.integers(0, 9),
        first_row_id=st.one_of(st.none(), st.integers(0, 30)),
    ),
    max_size=12,
)


def rows_of(files: tuple[DataFileMeta, ...]) -> set[int]:
    return {f.first_row_id + n for f in files if f.first_row_id is not None for n in range(f.row_count)}


@given(FILES)
def test_each_file_is_in_one_group_and_groups_share_no_row(files: list[DataFileMeta]) -> None:
    groups = group_by_row_range(files)
    assert sorted(f.file_name for g in groups for f in g) == sorted(f.file_name for f in files)
    row_ids = [rows_of(g) for g in groups]
    assert sum(map(len, row_ids)) == len(set().union(*row_ids))
    for group in groups:
        assert [f.max_sequence_number for f in group] == sorted((f.max_sequence_number for f in group), reverse=True)
        reached = rows_of(group)
        assert reached == set(range(min(reached), max(reached) + 1)) if reached else len(group) == 1


@given(FILES, st.integers(1, 100))
def test_groups_are_never_parted(files: list[DataFileMeta], target: int) -> None:
    groups = group_by_row_range(files)
    packs = pack_ranges(groups, SplitLimits(target, 4))
    assert [f for p in packs for f in p.files] == [f for g in groups for f in g]
    for group in groups:
        (home,) = [p for p in packs if group[0] in p.files]
        assert set(group) <= set(home.files)
        assert not home.raw_convertible or len(group) == 1
