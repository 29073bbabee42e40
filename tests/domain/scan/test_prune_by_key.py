"""Files of keys: each key is read once, with all files that can contain it."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.lsm.keys import to_comparable_values
from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan import prune_by_key
from paimon.domain.scan.prune_by_key import KeyedFiles, Mask
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.types.data_types import CharType, DataType, IntType

Ranges = list[tuple[int, int]]
RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted).map(tuple), min_size=1, max_size=6)
KEYS = st.lists(st.integers(-2, 22), unique=True, max_size=12).map(sorted)


def make_split(ranges: Ranges, data_type: DataType | None = None, total: int = 2) -> DataSplit:
    types = [data_type or IntType()]
    files = [
        DataFileMeta(f"f{i}", 1, 1, *(serialize((str(v) if data_type else v,), types) for v in limits))
        for i, limits in enumerate(ranges)
    ]
    vectors = [
        DeletionFile(f"v{i}", DeletionVectorRange(f"f{i}", 0, 1, 1)) if i % 2 else None for i in range(len(files))
    ]
    return DataSplit(1, b"p", 0, total, "b", files, deletion_files=vectors if any(vectors) else ())


def check_groups(ranges: Ranges, keys: list[int], rejected: set[tuple[int, int]]) -> None:
    """Compare with each pair of a file and a key: which keys are read, and each with all of its files."""
    (keyed,) = KeyedFiles.of([make_split(ranges)], [IntType()]).partitions[b"p"][2][0]

    def mark(path: str, file: DataFileMeta, part: slice) -> Mask | None:
        number = int(file.file_name[1:])
        assert path == f"b/f{number}"
        marked = [(number, key) not in rejected for key in keys[part]]
        return None if all(marked) else np.array(marked)

    read: dict[int, set[int]] = {}
    for split, positions in keyed.narrow([to_comparable_values((key,)) for key in keys], mark):
        names = {int(f.file_name[1:]) for f in split.files}
        vectors = split.deletion_files or (None,) * len(split.files)
        assert [v is not None and v.range.data_file for v in vectors] == [
            f.file_name if int(f.file_name[1:]) % 2 else False for f in split.files
        ]
        for position in positions.tolist():
            assert keys[position] not in read
            read[keys[position]] = names
    wanted = {
        key: {i for i, (low, high) in enumerate(ranges) if low <= key <= high and (i, key) not in rejected}
        for key in keys
    }
    assert {key: files for key, files in wanted.items() if files} == {
        key: files & wanted[key] for key, files in read.items()
    }


@settings(max_examples=80)
@given(ranges=RANGES, keys=KEYS, rejected=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 20))))
@pytest.mark.parametrize("most_reads", [0, 512])
@pytest.mark.parametrize("most_cells", [3, 1 << 24])
def test_each_key_is_read_once_with_all_its_files(
    most_reads: int, most_cells: int, ranges: Ranges, keys: list[int], rejected: set[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prune_by_key, "_MOST_MORE_READS", most_reads)
        patch.setattr(prune_by_key, "_MOST_CELLS", most_cells)
        check_groups(ranges, keys, rejected)


def test_a_range_without_its_largest_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_by_key, "bisect_right", bisect.bisect_left)
    with pytest.raises(AssertionError):
        check_groups([(1, 3)], [1, 3], set())


def test_keys_are_read_with_their_own_files_only() -> None:
    (keyed,) = KeyedFiles.of([make_split([(2, 40), (12, 90), (60, 99)])], [IntType()]).partitions[b"p"][2][0]
    found = keyed.narrow([to_comparable_values((key,)) for key in (7, 40, 70)], lambda path, file, part: None)
    read = {tuple(positions.tolist()): [f.file_name for f in split.files] for split, positions in found}
    assert read == {(0,): ["f0"], (1,): ["f0", "f1"], (2,): ["f1", "f2"]}


def test_files_of_other_layouts_have_no_range_or_bucket() -> None:
    padded = KeyedFiles.of([make_split([(1, 1)], CharType(3))], [CharType(3)])
    assert padded.partitions[b"p"][2][0][0].ranges == (None,)
    dynamic = KeyedFiles.of([make_split([(1, 1)], total=-1)], [IntType()])
    assert list(dynamic.partitions[b"p"]) == [0]
