"""Which runs are compacted: the lines of the table in `docs/compaction.md`, its picture, invariants of all picks."""

from __future__ import annotations

import pytest
from attrs import evolve
from draw_picks import DOCUMENT, NOON, NOW, PICTURE, Case, count_picked_runs, draw_cases, make_tree, parse_cases
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm.compaction.pick import pick, pick_full
from paimon.domain.lsm.compaction.rules import CompactionRules, OffPeak
from paimon.domain.lsm.compaction.tree import MergeTree
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

CASES = list(parse_cases(DOCUMENT.read_text("utf8")))
STORED = PICTURE.read_text("utf8")


def tree_from(text: str, rules: CompactionRules, made: int = 0) -> MergeTree:
    """A tree of runs written as level:size, newest first."""
    words = [word.split(":") for word in text.split()]
    return make_tree(tuple((int(level), int(size)) for level, size in words), rules, made)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_picked_runs(case: Case) -> None:
    assert case.pick_runs() == (case.taken, case.level)


def test_the_table_has_all_its_lines_and_its_picture() -> None:
    assert len(CASES) >= 40 and sum(case.taken > 0 for case in CASES) >= 25
    assert draw_cases(CASES) == STORED, "draw it again: python examples/draw_picks.py"


def test_level_0_is_picked_newest_first() -> None:
    def file(name: str, low: int, high: int, made: int | None = 0) -> DataFileMeta:
        return DataFileMeta(
            name, 1, 1, min_sequence_number=low, max_sequence_number=high, creation_time_millis=made, level=0
        )

    files = [
        file("f", 1, 5, 7),
        file("e", 1, 5, 3),
        file("d", 1, 5, 3),
        file("b", 6, 9),
        file("c", 0, 5),
        file("a", 4, 9),
    ]
    tree = MergeTree.of(files, 6)
    assert [run.files[0].file_name for run in tree.runs] == ["a", "b", "c", "d", "e", "f"]
    undated = MergeTree.of([file("a", 1, 5, 1), file("b", 1, 5, None), file("c", 1, 5, -1)], 6)
    assert [run.files[0].file_name for run in undated.runs] == ["c", "b", "a"]


def test_the_youngest_file_of_the_top_level_dates_the_last_full_compaction() -> None:
    rules = evolve(CompactionRules(), optimization_interval_millis=100)
    new, *top = tree_from("0:1 5:9 5:9", rules).files
    tree = MergeTree.of(
        [new, *(evolve(f, creation_time_millis=made) for f, made in zip(top, (100, 300), strict=True))], 6
    )
    assert pick(tree, rules, now_millis=400, hour=NOON) is None
    assert pick(tree, rules, now_millis=401, hour=NOON) is not None


def test_a_forced_full_compaction_takes_everything_to_the_top() -> None:
    rules = CompactionRules()
    assert pick_full(MergeTree.of((), 6), rules) is None
    several = tree_from("0:1 3:9 5:999", rules)
    assert count_picked_runs(several, pick_full(several, rules)) == (3, 5)
    single = tree_from("4:9", rules)
    assert count_picked_runs(single, pick_full(single, rules)) == (1, 5)


def test_a_tree_with_only_a_top_level_is_rewritten_only_on_demand() -> None:
    rules = CompactionRules()
    top = tree_from("5:9 5:9", rules)
    assert pick_full(top, rules) is None
    unit = pick_full(top, evolve(rules, rewrite_all=True))
    assert unit is not None and unit.one_by_one and len(unit.files) == 2


def test_rules_are_read_from_options() -> None:
    options = TableOptions.of({
        "num-sorted-run.compaction-trigger": "3", "compaction.size-ratio": "7", "compaction.force-up-level-0": "true",
        "compaction.optimization-interval": "1 min", "compaction.total-size-threshold": "1 kb",
        "compaction.offpeak.start.hour": "0", "compaction.offpeak.end.hour": "6", "compaction.offpeak-ratio": "9",
        "target-file-size": "1000 b", "compaction.small-file-ratio": "0.5",
    })  # fmt: skip
    assert CompactionRules.of(options) == CompactionRules(
        trigger=3, levels=4, size_ratio=7, off_peak=OffPeak(0, 6, 9), optimization_interval_millis=60_000,
        total_size_bytes=1024, force_level_0=True, small_file_bytes=500,
        options=options,
    )  # fmt: skip
    assert CompactionRules.of(TableOptions.of({"num-levels": "1"})).levels == 2


@pytest.mark.parametrize(
    ("options", "forced", "interval"),
    [
        ({}, False, 1),
        ({"force-lookup": "true"}, True, 1),
        ({"merge-engine": "first-row"}, True, 1),
        ({"deletion-vectors.enabled": "true"}, True, 1),
        ({"changelog-producer": "lookup"}, True, 1),
        ({"changelog-producer": "full-compaction"}, False, 1),
        ({"changelog-producer": "lookup", "lookup-compact": "gentle"}, True, 10),
        ({"changelog-producer": "lookup", "lookup-compact": "gentle", "lookup-compact.max-interval": "3"}, True, 5),
        ({"changelog-producer": "lookup", "lookup-compact": "gentle", "lookup-compact.max-interval": "7"}, True, 7),
        ({"compaction.force-up-level-0": "true", "lookup-compact": "gentle"}, True, 1),
    ],
)
def test_tables_that_need_lookups_take_level_0(options: dict[str, str], forced: bool, interval: int) -> None:
    rules = CompactionRules.of(TableOptions.of(options))
    assert (rules.force_level_0, rules.force_interval) == (forced, interval)


def test_gentle_lookups_compact_at_their_interval() -> None:
    rules = CompactionRules(force_level_0=True, force_interval=3)
    tree = tree_from("0:1 5:999", rules)
    picked = [pick(tree, rules, NOW, NOON, idle_triggers=idle) is not None for idle in range(4)]
    assert picked == [False, False, True, True]


RUNS = st.tuples(
    st.lists(st.integers(1, 50), max_size=7),
    st.dictionaries(st.integers(1, 5), st.integers(1, 5_000), max_size=5),
)


@given(RUNS, st.integers(1, 8), st.integers(0, 300), st.booleans())
def test_a_unit_never_stays_on_level_0_nor_overlaps_what_it_leaves(
    runs: tuple[list[int], dict[int, int]], trigger: int, ratio: int, forced: bool
) -> None:
    text = " ".join([*(f"0:{size}" for size in runs[0]), *(f"{k}:{runs[1][k]}" for k in sorted(runs[1]))])
    rules = CompactionRules(trigger=trigger, size_ratio=ratio, force_level_0=forced)
    tree = tree_from(text, rules)
    unit = pick(tree, rules, NOW, NOON)
    if unit is None:
        assert not (forced and runs[0]), "level 0 must be selected"
        assert len(tree.runs) <= trigger, "so many runs must shrink"
        return
    left = [f.level for f in tree.files if f not in unit.files]
    assert 0 < unit.output_level <= tree.top_level
    assert all(level > unit.output_level or level == 0 for level in left)
    assert unit.files == tree.files[: len(unit.files)]
    assert not (0 in left and any(f.level > 0 for f in unit.files)), "no selected file is older than a remaining one"
