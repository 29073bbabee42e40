"""Compaction of each file: rewrite, move or no change; which deletes are dropped; how append files are packed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm.compaction.level_order import include_newer_runs
from paimon.domain.lsm.compaction.pick import pick_full
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.compaction.unit_plan import Merging, UnitPlan, choose_merging, list_looked_up_files, plan_unit
from paimon.domain.maintenance.small_files import MarkedFile, PackRules, pack_small_files
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.binary_row import serialize
from paimon.domain.types.data_types import IntType

KEY = (IntType(nullable=False),)
RULES = CompactionRules(small_file_bytes=100)


def file(text: str) -> DataFileMeta:
    """`name L level low..high bytes [deletes]`, such as ``a L0 1..5 20b 3d``; deletes ``?d``: unknown."""
    name, level, keys, size, *deletes = text.split()
    low, high = (serialize((int(k),), KEY) for k in keys.split(".."))
    count = deletes[0][:-1] if deletes else "0"
    return DataFileMeta(
        name, int(size[:-1]), 5, low, high, level=int(level[1:]), delete_row_count=None if count == "?" else int(count)
    )


def drawn(plan: UnitPlan) -> str:
    """Rewritten groups in brackets (sections by ``;``, runs by ``|``), then what is moved (``!``: and read)."""
    groups = [
        "[" + "; ".join(" | ".join(" ".join(f.file_name for f in run.files) for run in s) for s in group) + "]"
        for group in plan.rewrites
    ]
    return " ".join([*groups, *(f"{f.file_name}^" + "!" * (f in plan.examined) for f in plan.upgrades)])


PLANS = {
    "overlapping files are rewritten": (["a L0 1..5 200b", "b L0 3..9 200b"], 5, "[a | b]"),
    "a single large file moves": (["a L0 1..5 200b"], 5, "a^"),
    "a single small file moves": (["a L0 1..5 20b"], 5, "a^"),
    "small neighbours are put together": (["a L0 1..2 20b", "b L0 3..4 20b", "c L0 5..6 20b"], 5, "[a; b; c]"),
    "large neighbours all move": (["a L0 1..2 200b", "b L0 3..4 200b"], 5, "a^ b^"),
    "a small file next to an overlap joins": (["a L0 1..5 200b", "b L0 3..6 200b", "c L0 8..9 20b"], 5, "[a | b; c]"),
    "a large file parts groups": (["a L0 1..2 20b", "b L0 3..4 200b", "c L0 5..6 20b"], 5, "a^ b^ c^"),
    "files of the output level stay": (["a L5 1..2 200b", "b L0 3..4 200b"], 5, "b^"),
    "deletes never move to the top": (["a L0 1..2 200b 1d", "b L0 3..4 200b"], 5, "[a] b^"),
    "unknown deletes neither": (["a L0 1..2 200b ?d", "b L0 3..4 200b"], 5, "[a] b^"),
    "deletes on the top level go": (["a L5 1..2 200b 1d", "b L0 3..4 200b"], 5, "[a] b^"),
    "deletes may move below the top": (["a L0 1..2 200b 1d", "b L0 3..4 200b"], 3, "a^ b^"),
    "the limit is not small": (["a L0 1..2 100b", "b L0 3..4 99b", "c L0 5..6 99b"], 5, "[b; c] a^"),
    "bounds that touch overlap": (["a L0 1..3 200b", "b L0 3..4 200b"], 5, "[a | b]"),
}


@pytest.mark.parametrize(("texts", "level", "expected"), PLANS.values(), ids=PLANS)
def test_rewritten_and_moved_files(texts: list[str], level: int, expected: str) -> None:
    files = [file(text) for text in texts]
    tree = MergeTree.of(files, 6)
    assert drawn(plan_unit(tree, CompactUnit(level, files), RULES, KEY)) == expected


LARGE = "a L0 1..2 200b"
LOOKUP = {"changelog-producer": "lookup"}
MOVES = {
    "a lookup reports files that move to the top": (LOOKUP, LARGE, 5, "a^!"),
    "and below": (LOOKUP, LARGE, 3, "a^!"),
    "unless it comes from above level 0": (LOOKUP, "a L2 1..2 200b", 3, "a^"),
    "other engines merge with what lies above": (LOOKUP | {"merge-engine": "aggregation"}, LARGE, 3, "[a]"),
    "but not at the top": (LOOKUP | {"merge-engine": "aggregation"}, LARGE, 5, "a^!"),
    "nor from above level 0": (LOOKUP | {"merge-engine": "aggregation"}, "a L2 1..2 200b", 3, "a^"),
    "a sequence field may order an older one last": (LOOKUP | {"sequence.field": "s"}, LARGE, 3, "[a]"),
    "another format is written anew": (LOOKUP | {"file.format.per.level": "0:avro"}, LARGE, 5, "[a]"),
    "the same format is not": (LOOKUP | {"file.format.per.level": "0:avro,5:avro"}, LARGE, 5, "a^!"),
    "without lookups the format does not change": ({"file.format.per.level": "0:avro"}, LARGE, 5, "a^"),
    "forced lookups write no changelog": ({"force-lookup": "true"}, LARGE, 3, "a^"),
    "forced lookups merge": ({"force-lookup": "true", "merge-engine": "partial-update"}, LARGE, 3, "[a]"),
    "first-row looks up the upper levels": ({"merge-engine": "first-row"}, LARGE, 3, "[a]"),
    "full compaction reports files that move to the top": ({"changelog-producer": "full-compaction"}, LARGE, 5, "a^!"),
    "from any level": ({"changelog-producer": "full-compaction"}, "a L2 1..2 200b", 5, "a^!"),
    "but nothing below": ({"changelog-producer": "full-compaction"}, LARGE, 3, "a^"),
    "vectors are marked by what moves": ({"deletion-vectors.enabled": "true"}, LARGE, 3, "a^!"),
    "vectors want no deletes": ({"deletion-vectors.enabled": "true"}, "a L0 1..2 200b 1d", 3, "[a]"),
}


@pytest.mark.parametrize(("options", "text", "level", "expected"), MOVES.values(), ids=MOVES)
def test_moved_and_rewritten_files_with_a_changelog(
    options: dict[str, str], text: str, level: int, expected: str
) -> None:
    rules = evolve(CompactionRules.of(TableOptions.of(options)), small_file_bytes=100)
    moved, top = file(text), file("t L5 7..9 200b")
    tree = MergeTree.of([moved, top], 6)
    plan = plan_unit(tree, CompactUnit(level, [moved]), rules, KEY)
    assert drawn(plan) == expected
    assert plan.above == ((top,) if level < 5 and rules.needs_lookup else ())


def test_everything_is_rewritten_on_demand() -> None:
    files = [file("a L5 1..2 200b"), file("b L0 3..4 200b")]
    tree = MergeTree.of(files, 6)
    assert drawn(plan_unit(tree, CompactUnit(5, files), evolve(RULES, rewrite_all=True), KEY)) == "[a] [b]"
    top = MergeTree.of(files[:1], 6)
    unit = pick_full(top, evolve(RULES, rewrite_all=True))
    assert unit is not None
    plan = plan_unit(top, unit, RULES, KEY)
    assert (drawn(plan), plan.output_level, plan.drop_deletes) == ("[a]", 5, True)


@pytest.mark.parametrize(
    ("levels_left", "output", "dropped"),
    [
        ([], 5, True), ([], 2, True), ([3], 2, False), ([5], 4, False), ([], 1, True), ([2], 2, True), ([1], 2, True),
        ([], 0, False),
    ],
)  # fmt: skip
def test_deletes_are_dropped_only_without_older_rows_below(levels_left: list[int], output: int, dropped: bool) -> None:
    selected = [file("a L0 1..5 20b 1d"), file("b L0 3..9 20b")]
    tree = MergeTree.of([*selected, *(file(f"x L{level} 1..9 20b") for level in levels_left)], 6)
    assert plan_unit(tree, CompactUnit(output, selected), RULES, KEY).drop_deletes is dropped
    vectors = CompactionRules.of(TableOptions.of({"deletion-vectors.enabled": "true"}))
    assert plan_unit(tree, CompactUnit(output, selected), vectors, KEY).drop_deletes is (output > 0)


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.integers(50, 150), st.booleans()), max_size=8)


@given(SPANS, st.integers(1, 5))
def test_after_a_unit_its_level_holds_disjoint_files_and_no_file_is_lost(
    spans: list[tuple[int, int, int, bool]], level: int
) -> None:
    texts = [f"f{i} L0 {a}..{a + n} {size}b {int(d)}d" for i, (a, n, size, d) in enumerate(spans)]
    files = [file(text) for text in texts]
    tree = MergeTree.of(files, 6)
    plan = plan_unit(tree, CompactUnit(level, files), RULES, KEY)
    assert sorted(f.file_name for f in (*plan.rewritten, *plan.upgrades)) == sorted(f.file_name for f in files)
    outputs = [[f for s in group for run in s for f in run.files] for group in plan.rewrites]
    spans_out = sorted(
        (min(f.min_key for f in group), max(f.max_key for f in group))
        for group in (*outputs, *([f] for f in plan.upgrades))
    )
    keys = [tuple(int.from_bytes(k[-8:-4], "little") for k in span) for span in spans_out]
    keys.sort()
    assert all(before[1] < after[0] for before, after in pairwise(keys))
    if level == 5:
        assert all(f.delete_row_count == 0 for f in plan.upgrades)


NEWER = {
    "the files of one writer stay": (["a L0 1..5 200b @9", "t L5 1..9 200b @0-8"], "a"),
    "newer records of the same keys join": (["a L0 1..5 200b @3", "t L5 5..9 200b @0-8"], "a t"),
    "an equal number is not older": (["a L0 1..5 200b @8", "t L5 5..9 200b @0-8"], "a t"),
    "other keys do not": (["a L0 1..4 200b @3", "t L5 5..9 200b @0-8"], "a"),
    "and what lies between joins": (["a L0 1..5 200b @3", "b L3 7..9 200b @1", "t L5 5..9 200b @0-8"], "a b t"),
    "what joined can be older": (
        ["a L0 1..5 200b @3", "b L3 4..9 200b @1-4", "t L5 8..9 200b @2"],
        "a b t",
    ),
    "older ones above stay": (["a L0 1..5 200b @3", "b L3 4..9 200b @3-4", "t L5 1..9 200b @2"], "a b"),
}


@pytest.mark.parametrize(("texts", "expected"), NEWER.values(), ids=NEWER)
def test_a_unit_includes_the_runs_with_newer_records_of_its_keys(texts: list[str], expected: str) -> None:
    tree = MergeTree.of([numbered(text) for text in texts], 6)
    unit = include_newer_runs(tree, CompactUnit(2, tree.runs[0].files), KEY)
    assert " ".join(f.file_name for f in unit.files) == expected
    assert unit.output_level == (5 if "t" in expected else 4 if "b" in expected else 2)


def numbered(text: str) -> DataFileMeta:
    """A file with the sequence numbers that follow the @."""
    described, _, numbers = text.partition(" @")
    first, _, last = numbers.partition("-")
    return evolve(file(described), min_sequence_number=int(first), max_sequence_number=int(last or first))


def test_a_unit_without_files_above_0_includes_nothing() -> None:
    unit = CompactUnit(5, [file("t L5 1..2 200b")], one_by_one=True)
    assert include_newer_runs(MergeTree.of(unit.files, 6), unit, KEY) is unit


def test_lookups_depend_on_the_files_that_can_hold_keys_of_level_0() -> None:
    files = [
        file("a L0 3..5 200b"),
        file("b L2 1..9 200b"),
        file("low L5 1..2 9b"),
        file("mid L5 5..6 9b"),
        file("up L5 7..9 9b"),
    ]
    rules = evolve(CompactionRules.of(TableOptions.of(LOOKUP)), small_file_bytes=100)
    plan = plan_unit(MergeTree.of(files, 6), CompactUnit(3, files[:2]), rules, KEY)
    assert [f.file_name for f in list_looked_up_files(plan, KEY)] == ["mid"]
    above_0 = plan_unit(MergeTree.of(files[1:], 6), CompactUnit(3, files[1:2]), rules, KEY)
    assert list_looked_up_files(above_0, KEY) == ()

    low = file("l L0 2..3 200b")
    both = plan_unit(MergeTree.of([*files, low], 6), CompactUnit(3, [*files[:2], low]), rules, KEY)
    assert [f.file_name for f in list_looked_up_files(both, KEY)] == ["low", "mid"]


@pytest.mark.parametrize(("deletes", "looked_up"), [("2d", ["low"]), ("?d", ["low"]), ("0d", [])])
def test_dropped_deletes_depend_on_the_files_that_can_hold_their_keys(deletes: str, looked_up: list[str]) -> None:
    files = [file(f"b L2 1..3 200b {deletes}"), file("low L5 1..2 9b"), file("up L5 7..9 9b")]
    rules = CompactionRules.of(TableOptions.of({"deletion-vectors.enabled": "true"}))
    plan = plan_unit(MergeTree.of(files, 6), CompactUnit(3, files[:1]), rules, KEY)
    assert plan.drop_deletes and [f.file_name for f in list_looked_up_files(plan, KEY)] == looked_up


@pytest.mark.parametrize(
    ("options", "texts", "level", "merging"),
    [
        ({}, ["a L0 1..2 9b"], 5, Merging.PLAIN),
        (LOOKUP, ["a L0 1..2 9b", "b L2 1..2 9b"], 5, Merging.LOOKUP),
        (LOOKUP, ["b L2 1..2 9b"], 5, Merging.PLAIN),
        ({"changelog-producer": "full-compaction"}, ["b L2 1..2 9b"], 5, Merging.TOP),
        ({"changelog-producer": "full-compaction"}, ["a L0 1..2 9b"], 3, Merging.PLAIN),
    ],
)
def test_what_a_rewrite_needs(options: dict[str, str], texts: list[str], level: int, merging: Merging) -> None:
    files, rules = [file(text) for text in texts], CompactionRules.of(TableOptions.of(options))
    plan = plan_unit(MergeTree.of(files, 6), CompactUnit(level, files), rules, KEY)
    assert choose_merging(files, plan, rules) is merging


# Append tables.


def rows(*sizes: int) -> list[DataFileMeta]:
    return [
        DataFileMeta(f"f{i}", size, 10, min_sequence_number=10 * i, max_sequence_number=10 * i + 9)
        for i, size in enumerate(sizes)
    ]


def names(found: tuple[tuple[DataFileMeta, ...], ...]) -> list[str]:
    return [" ".join(f.file_name for f in pack) for pack in found]


ANY = PackRules(target_bytes=100, small_bytes=70, open_cost_bytes=4, min_files=5, ordered=False)
PACKS = {
    "too few": (ANY, rows(1, 2, 3, 4), []),
    "enough": (ANY, rows(5, 4, 3, 2, 1), ["f4 f3 f2 f1 f0"]),
    "large ones stay": (ANY, rows(70, 1, 1, 1, 1, 99), []),
    "full packs need no number": (ANY, rows(69, 68, 67), ["f2 f1 f0"]),
    "opening weighs": (ANY, rows(63, 63, 63), ["f0 f1 f2"]),
    "not quite full": (ANY, rows(62, 62, 62), []),
    "all that can be": (evolve(ANY, min_files=2), rows(1, 2), ["f0 f1"]),
    "a single file stays": (evolve(ANY, min_files=2), rows(1), []),
    "neighbours": (evolve(ANY, min_files=2, ordered=True), rows(1, 1, 90, 1, 90, 1, 1), ["f0 f1", "f5 f6"]),
    "neighbours fill up": (evolve(ANY, ordered=True), rows(60, 60, 1), ["f0 f1"]),
    "few neighbours wait": (evolve(ANY, ordered=True), rows(1, 1, 1, 1, 90, 1, 1, 1, 1, 1), ["f5 f6 f7 f8 f9"]),
}


@pytest.mark.parametrize(("rules", "files", "expected"), PACKS.values(), ids=PACKS)
def test_how_small_files_are_packed(rules: PackRules, files: list[DataFileMeta], expected: list[str]) -> None:
    assert names(pack_small_files(files, rules)) == expected


WORN = evolve(ANY, delete_ratio=0.2)
MARKED_PACKS = {
    "few rows of a large file": (WORN, rows(90), {"f0": ("i", 2)}, []),
    "many rows of a large file": (WORN, rows(90), {"f0": ("i", 3)}, ["f0"]),
    "who knows how many": (WORN, rows(90), {"f0": ("i", None)}, ["f0"]),
    "any row, in full": (evolve(WORN, delete_ratio=0.0), rows(90, 90), {"f1": ("i", 1)}, ["f1"]),
    "small ones at once": (WORN, rows(5, 1), {"f0": ("i", 1)}, ["f0"]),
    "one index file": (WORN, rows(5, 1, 9), {"f0": ("i", 1), "f2": ("i", 1)}, ["f0 f2"]),
    "smallest group first": (WORN, rows(60, 1, 9), {"f0": ("i", 1), "f1": ("j", 1), "f2": ("j", 1)}, ["f1 f2 f0"]),
    "full groups": (WORN, rows(69, 69, 69, 60), {f"f{i}": ("ij"[i > 1], 1) for i in range(4)}, ["f2 f3 f0 f1"]),
    "together with the other columns": (WORN, rows(9, 1, 1, 1, 1, 1), {"f0": ("i", 1)}, ["f0", "f1 f2 f3 f4 f5"]),
    "single between large files": (evolve(WORN, ordered=True), rows(90, 90, 90), {"f1": ("i", 9)}, ["f1"]),
    "small neighbours come along": (evolve(WORN, ordered=True), rows(1, 90, 1), {"f1": ("i", 9)}, ["f0 f1 f2"]),
    "small and hardly worn": (evolve(WORN, ordered=True), rows(1, 1), {"f1": ("i", 1)}, []),
}


@pytest.mark.parametrize(("rules", "files", "marks", "expected"), MARKED_PACKS.values(), ids=MARKED_PACKS)
def test_how_files_with_deletion_vectors_are_packed(
    rules: PackRules, files: list[DataFileMeta], marks: dict[str, tuple[str, int | None]], expected: list[str]
) -> None:
    assert names(pack_small_files(files, rules, {name: MarkedFile(*mark) for name, mark in marks.items()})) == expected


@given(st.lists(st.integers(1, 120), max_size=12), st.booleans())
def test_a_file_is_packed_once_and_in_order(sizes: list[int], ordered: bool) -> None:
    files = rows(*sizes)
    found = pack_small_files(list(reversed(files)), evolve(ANY, min_files=2, ordered=ordered))
    packed = [f.file_name for pack in found for f in pack]
    assert len(packed) == len(set(packed))
    assert all(len(pack) > 1 for pack in found)
    for pack in found if ordered else ():
        start = files.index(pack[0])
        assert tuple(files[start : start + len(pack)]) == pack


def test_pack_rules_are_read_from_options() -> None:
    fixed = TableOptions.of({"bucket": "3", "bucket-key": "k", "target-file-size": "1000 b"})
    assert PackRules.of(fixed, full=False) == PackRules(1000, 700, 4 << 20, 5, ordered=True, delete_ratio=0.2)
    assert PackRules.of(fixed.with_values({"bucket-append-ordered": "false"}), full=True).ordered is False
    assert PackRules.of(TableOptions.of({}), full=True).min_files == 2
