"""Files in splits: none is lost, none is duplicated, and files that must be merged are in one split."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.predicate.expression import Compare, In, Literal, Operator, Or
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan.assemble import BucketFiles, pack_bucket, prune_sections
from paimon.domain.scan.prune_by_partition import find_bucket_keys
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.split_packing import SplitLimits, pack
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


def rules(*, merges: bool, target: int, engine: str = "deduplicate") -> ReadRules:
    return ReadRules(merges, engine, False, False, True, merges, False, SplitLimits(target, 4), TYPES)


@given(st.lists(st.integers(0, 30)), st.integers(1, 60))
def test_packing_preserves_order_and_all_files(sizes: list[int], target: int) -> None:
    packs = pack(sizes, lambda size: size, target)
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
