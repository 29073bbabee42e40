"""Files in splits: none is lost, none is duplicated, and files that must be merged are in one split."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifest_columns import to_entry_columns

from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange, FileKind, ManifestEntry
from paimon.domain.predicate.expression import And, Compare, In, Literal, Operator, Or
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan.assemble import BucketFiles, assemble_splits, group_by_bucket, pack_bucket, prune_sections
from paimon.domain.scan.prune_by_partition import find_bucket_keys
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.split_packing import SplitLimits, pack
from paimon.domain.scan.splits import DataSplit, DeletionFile
from paimon.domain.types.data_types import CharType, DataField, IntType

TYPES = (IntType(),)


def key(value: int) -> bytes:
    return serialize((value,), TYPES)


@st.composite
def trees(draw: st.DrawFn) -> list[DataFileMeta]:
    files = []
    for number in range(draw(st.integers(1, 8))):
        low = draw(st.integers(0, 20))
        high = draw(st.integers(low, 22))
        files.append(
            DataFileMeta(
                f"f{number}.orc", draw(st.integers(0, 50)), 1, key(low), key(high),
                delete_row_count=draw(st.sampled_from([None, 0, 0, 0, 2])), min_sequence_number=number,
            )
        )  # fmt: skip
    return files


def test_files_are_grouped_by_partition_and_bucket() -> None:
    places = [(7, 1, 4), (7, 0, 2), (8, 1, 2), (7, 1, 5), (8, 1, 2)]
    files = [DataFileMeta(f"f{number}.orc", 1, 1) for number in range(len(places))]
    entries = to_entry_columns(
        [
            ManifestEntry(FileKind.ADD, key(part), *place, file)
            for (part, *place), file in zip(places, files, strict=True)
        ]
    )
    groups = [(7, 1, 4, [0, 3]), (7, 0, 2, [1]), (8, 1, 2, [2, 4])]
    for matching in (None, [True, False, True, False, True]):
        expected = [
            BucketFiles(
                key(part), bucket, total, tuple(files[n] for n in numbers),
                None if matching is None else frozenset(files[n].file_name for n in numbers if matching[n]),
            )
            for part, bucket, total, numbers in groups
        ]  # fmt: skip
        assert group_by_bucket(entries, None if matching is None else np.array(matching)) == expected


def rules(*, merges: bool, target: int, engine: str = "deduplicate") -> ReadRules:
    return ReadRules(merges, engine, False, False, True, merges, False, SplitLimits(target, 4), TYPES)


@given(st.lists(st.integers(0, 30)), st.integers(1, 60))
def test_packing_preserves_order_and_all_files(sizes: list[int], target: int) -> None:
    packs = pack(sizes, sizes, target)
    assert [s for p in packs for s in p] == sizes
    assert all(len(p) == 1 or sum(p) <= target for p in packs)
    assert all(sum(a) + b[0] > target for a, b in pairwise(packs))


@settings(max_examples=50, deadline=None)
@given(trees(), st.integers(1, 200), st.booleans())
def test_every_file_is_in_one_split_and_overlaps_are_together(
    files: list[DataFileMeta], target: int, merges: bool
) -> None:
    groups = pack_bucket(BucketFiles(b"", 0, 1, tuple(files)), rules(merges=merges, target=target))
    assert sorted(f.file_name for g in groups for f in g.files) == sorted(f.file_name for f in files)
    if not merges:
        assert all(g.raw_convertible for g in groups)
        return
    spans = [(min(f.min_key for f in g.files), max(f.max_key for f in g.files)) for g in groups]
    for group, others in ((g, [s for o, s in zip(groups, spans, strict=True) if o is not g]) for g in groups):
        for file in group.files:
            assert all(file.max_key < low or file.min_key > high for low, high in others)
        if group.raw_convertible:
            assert all(f.delete_row_count == 0 for f in group.files)
            ordered = sorted(group.files, key=lambda f: f.min_key)
            assert all(a.max_key < b.min_key for a, b in pairwise(ordered))


@settings(max_examples=50, deadline=None)
@given(trees(), st.data(), st.sampled_from(["deduplicate", "aggregation"]))
def test_column_values_prune_only_when_conclusive(files: list[DataFileMeta], data: st.DataObject, engine: str) -> None:
    matching = data.draw(st.sets(st.sampled_from([f.file_name for f in files])))
    found = cut_into_sections(files, TYPES)
    selected = {f.file_name for s in prune_sections(found, matching, engine) for run in s for f in run.files}
    assert matching <= selected
    for section in found:
        names = {f.file_name for run in section for f in run.files}
        if len(section) == 1:
            assert selected & names == matching & names
        elif engine == "deduplicate":
            assert selected & names == (names if matching & names else set())
        else:
            assert names <= selected


def vector(cardinality: int | None) -> DeletionFile:
    return DeletionFile("index", DeletionVectorRange("a", 0, 1, cardinality))


SPLIT = DataSplit(
    1, b"", 0, 1, "t/bucket-0", (DataFileMeta("a", 10, 5), DataFileMeta("b", 20, 7)), raw_convertible=True
)
COUNTS = {
    "all rows": (SPLIT, 12),
    "rows that must be merged": (evolve(SPLIT, raw_convertible=False), None),
    "vectors": (evolve(SPLIT, deletion_files=(vector(2), vector(3))), 7),
    "a file without a vector": (evolve(SPLIT, deletion_files=(None, vector(3))), 9),
    "a vector of unknown size": (evolve(SPLIT, deletion_files=(vector(2), vector(None))), None),
    "a difference": (evolve(SPLIT, before_files=SPLIT.files), None),
    "ranges": (evolve(SPLIT, row_ranges=((0, 5), (3, 4))), 6),
    "ranges and vectors": (evolve(SPLIT, row_ranges=((0, 5), (3, 4)), deletion_files=(None, vector(1))), None),
    "ranges and empty vectors": (evolve(SPLIT, row_ranges=((0, 5), (3, 4)), deletion_files=(None, vector(0))), 6),
}


@pytest.mark.parametrize(("split", "count"), COUNTS.values(), ids=COUNTS)
def test_the_rows_of_a_split_are_counted_where_metadata_determines_them(split: DataSplit, count: int | None) -> None:
    assert split.merged_row_count == count


def test_the_files_of_a_split_have_paths_and_sizes() -> None:
    split = evolve(SPLIT, files=(SPLIT.files[0], evolve(SPLIT.files[1], external_path="s3://b/b")))
    assert split.file_paths == ("t/bucket-0/a", "s3://b/b")
    assert split.file_size == 30


def test_a_file_without_a_match_is_pruned_unless_it_can_hide_rows() -> None:
    files = tuple(DataFileMeta(name, 1, 1, key(0), key(9), level=2, delete_row_count=0) for name in "ab")
    bucket = BucketFiles(b"", 0, 1, files, frozenset("a"))
    merged = rules(merges=True, target=99)
    separate = evolve(merged, unmerged_above_0=True)
    assert [sorted(f.file_name for f in group.files) for group in pack_bucket(bucket, merged)] == [["a", "b"]]
    assert [sorted(f.file_name for f in group.files) for group in pack_bucket(bucket, separate)] == [["a"]]
    fresh = evolve(bucket, files=(files[0], evolve(files[1], level=0)))
    assert [sorted(f.file_name for f in group.files) for group in pack_bucket(fresh, separate)] == [["a", "b"]]


def test_a_split_has_the_vectors_of_its_files() -> None:
    bucket = BucketFiles(b"p", 3, 8, SPLIT.files)
    one, none = ({"b": vector(1)}, {"c": vector(1)})
    (split,) = assemble_splits(7, bucket, rules(merges=False, target=99), "dir", one)
    assert split == DataSplit(7, b"p", 3, 8, "dir", SPLIT.files, True, (None, vector(1)))
    (split,) = assemble_splits(7, bucket, rules(merges=False, target=99), "dir", none)
    assert split.deletion_files == ()


FIELDS = (DataField(0, "a", IntType()), DataField(1, "b", IntType()))


def test_bucket_keys_follow_from_equality_on_all_columns() -> None:
    a, b = Compare("a", Operator.EQ, 1), In("b", (2, 3, None))
    assert find_bucket_keys(a & b & Compare("c", Operator.GT, 0), FIELDS) == ((1, 2), (1, 3))
    assert find_bucket_keys(a, FIELDS) is None
    assert find_bucket_keys(Or((a & b, Literal(False))), FIELDS) == ((1, 2), (1, 3))
    assert find_bucket_keys(Or((a & b, a)), FIELDS) is None
    assert find_bucket_keys(a & ~b, FIELDS) is None
    assert find_bucket_keys(Compare("a", Operator.EQ, "x"), (DataField(0, "a", CharType(3)),)) is None
    assert 0 <= compute_bucket((1, 2), [IntType(), IntType()], 7) < 7


def test_too_many_bucket_keys_restrict_nothing() -> None:
    # 65,536 ** 4 is 0 in 64 bits.
    values, fields = tuple(range(1 << 16)), [DataField(n, f"c{n}", IntType()) for n in range(4)]
    predicate = And(tuple(In(f.name, values) for f in fields))
    assert find_bucket_keys(predicate, fields) is None
