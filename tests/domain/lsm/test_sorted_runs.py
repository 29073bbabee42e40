"""Sections and sorted runs equal those of the interval partition; file ages are known only if they are certain."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm.keys import to_comparable_key, to_comparable_values
from paimon.domain.lsm.sorted_run import KeyedFile, cut_into_sections, sort_oldest_first
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.row import binary_row
from paimon.domain.types.data_types import DoubleType, IntType, VarCharType

INT = (IntType(),)


def a_file(name: str, low: int, high: int, level: int = 0, sequences: tuple[int, int] = (0, 0)) -> DataFileMeta:
    return DataFileMeta(
        name,
        1,
        1,
        binary_row.serialize((low,), INT),
        binary_row.serialize((high,), INT),
        level=level,
        min_sequence_number=sequences[0],
        max_sequence_number=sequences[1],
    )


def interval(file: DataFileMeta) -> tuple[int, int]:
    return binary_row.deserialize(file.min_key, INT)[0], binary_row.deserialize(file.max_key, INT)[0]


def files_of(intervals: list[tuple[int, int]]) -> list[DataFileMeta]:
    return [a_file(str(i), min(pair), max(pair)) for i, pair in enumerate(intervals)]


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=20).map(files_of))
def test_sections_are_disjoint_and_use_the_fewest_runs(files: list[DataFileMeta]) -> None:
    cut = cut_into_sections(files, INT)
    assert sorted(f.file_name for s in cut for r in s for f in r.files) == sorted(f.file_name for f in files)
    spans = [[interval(f) for r in s for f in r.files] for s in cut]
    assert all(max(high for _, high in a) < min(low for low, _ in b) for a, b in itertools.pairwise(spans))
    for section in cut:
        for run in section:
            bounds = [interval(f) for f in run.files]
            assert all(before[1] < after[0] for before, after in itertools.pairwise(bounds))
        members = [interval(f) for r in section for f in r.files]
        deepest = max(sum(low <= point <= high for low, high in members) for point, _ in members)
        assert len(section) == deepest
        reach = itertools.accumulate((high for _, high in sorted(members)), max)
        assert all(low <= end for end, (low, _) in zip(reach, sorted(members)[1:], strict=False))


# The order of a `java.util.PriorityQueue` of Java 17 that takes the files as `IntervalPartition` does.
JAVA_RUNS = [
    ("0..40 0..4 9..14 15..20 11..14 19..21 17..22 13..17 15..17 4..7 1..3 3..3 4..9 12..16",
     "f7 | f11 f9 f4 f3 | f0 | f10 f12 f13 f6 | f1 f2 f8 f5"),
    ("0..40 5..9 7..10 14..18 14..18 18..22 9..10 17..20 2..6 12..12 16..21 16..18 10..15 14..19",
     "f1 f12 f11 | f8 f2 f9 f4 | f6 f3 | f13 | f10 | f7 | f5 | f0"),
    ("0..40 8..8 0..1 9..9 6..9 7..7 14..16 14..14 14..16 7..10 10..15 18..21 19..23 16..16",
     "f9 f6 | f8 | f0 | f2 f4 f10 f11 | f5 f1 f3 f7 f13 f12"),
    ("0..40 14..16 10..11 8..8 9..13 19..20 5..9 17..21 1..5 16..19 6..7 11..11 5..10 18..19",
     "f6 f2 f1 f13 | f12 f11 f9 | f0 | f8 f10 f3 f4 f7 | f5"),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "runs"), JAVA_RUNS)
def test_runs_are_in_the_order_of_javas_queue(spans: str, runs: str) -> None:
    bounds = [span.split("..") for span in spans.split()]
    (section,) = cut_into_sections([a_file(f"f{i}", int(a), int(b)) for i, (a, b) in enumerate(bounds)], INT)
    assert " | ".join(" ".join(f.file_name for f in run.files) for run in section) == runs


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [((1, 3), (3, 5), True), ((1, 3), (4, 5), False), ((1, 9), (3, 4), True), ((2, 2), (2, 2), True)],
)
def test_files_overlap_if_they_can_hold_one_key(one: tuple[int, int], other: tuple[int, int], overlap: bool) -> None:
    a, b = (KeyedFile.of(a_file("f", *span), INT) for span in (one, other))
    assert (a.overlaps(b), b.overlaps(a)) == (overlap, overlap)


def test_a_closed_bound_that_touches_belongs_to_the_same_section() -> None:
    assert [len(s) for s in cut_into_sections([a_file("a", 1, 5), a_file("b", 5, 9), a_file("c", 10, 11)], INT)] == [
        2,
        1,
    ]


def test_keys_sort_as_java_sorts_them() -> None:
    nan = float("nan")
    doubles = [None, float("-inf"), -1.0, -0.0, 0.0, 1.0, float("inf"), nan]
    keys = [to_comparable_values((v,)) for v in doubles]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    types = (VarCharType(), DoubleType())
    rows = [(None, 1.0), ("", None), ("", 2.0), ("a", -1.0), ("\uffff", 0.0), ("\U0001d11e", 0.0)]
    stored = [to_comparable_key(binary_row.serialize(row, types), types) for row in rows]
    assert stored == sorted(stored)


def test_ages_are_known_for_disjoint_sequence_ranges() -> None:
    base = [a_file("b1", 0, 4, 5, (0, 90)), a_file("b2", 5, 9, 5, (3, 99))]
    newer = a_file("n", 0, 9, 0, (100, 120))
    newest = a_file("m", 0, 9, 0, (121, 130))
    ordered = sort_oldest_first([newest, *base, newer])
    assert ordered is not None and [f.file_name for f in ordered] == ["b1", "b2", "n", "m"]


def test_no_ages_where_sequence_ranges_overlap() -> None:
    assert sort_oldest_first([a_file("a", 0, 9, 0, (0, 10)), a_file("b", 0, 9, 0, (10, 20))]) is None
    assert sort_oldest_first([a_file("a", 0, 9, 5, (0, 10)), a_file("b", 0, 9, 4, (5, 20))]) is None
