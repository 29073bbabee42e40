"""Which runs are compacted, as a table: a tree's runs newest first, the rules, and the unit that the rules pick."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm.compaction.pick import pick, pick_full
from paimon.domain.lsm.compaction.rules import CompactionRules, OffPeak
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

NOON = 12
NOW = 1_000_000
"""`made=` in the rules below is the creation time of all files; they are looked at at this time."""

# Runs are level:size, newest first; "->" what is taken (so many runs, to level L), "-" nothing.
PICKS = """
few runs                     | 0:1 0:1 0:1 5:99                 |                          | -
nothing at all               |                                  |                          | -
many, top level small        | 0:9 0:9 0:9 0:9 5:10             |                          | 5 -> L5
many, no level above         | 0:1 0:1 0:1 0:1 0:1              |                          | 5 -> L5
amplification is a limit     | 0:5 0:5 0:5 0:5 5:10             | ratio=-99                | -
amplification by option      | 0:5 0:5 0:5 0:5 5:10             | amplification=199        | 5 -> L5
equal sizes are merged       | 0:1 0:1 0:1 0:1 5:99             |                          | 4 -> L4
one percent larger is not    | 0:100 0:101 0:204 4:900 5:9999   |                          | 4 -> L4
stops before the larger      | 0:1 0:1 2:9 3:20 5:99            |                          | 2 -> L1
all of level 0 comes along   | 0:1 0:1 0:9 1:90 5:999           |                          | 4 -> L1
up to the next level         | 0:1 0:1 0:9 0:90 5:9999          |                          | 5 -> L5
not where nothing is taken   | 0:1 0:9 1:90 2:900 5:9999        |                          | -
size ratio by option         | 0:1 0:9 1:90 2:900 5:9999        | ratio=800                | 4 -> L4
first beyond the ratio       | 0:1 2:9 3:90 4:900 5:9999        |                          | -
too many runs                | 0:1 0:9 1:90 2:900 3:9000 5:99999 |                         | 3 -> L1
too many by two              | 0:1 2:9 3:90 4:900 5:9999        | trigger=3                | 3 -> L3
output next to level 1       | 0:1 0:1 1:9 2:200 5:9999         |                          | 3 -> L1
a gap of levels is used      | 0:1 0:1 4:9 5:999                | trigger=4                | 2 -> L3
off-peak takes more          | 0:1 0:2 2:4 3:9 5:9999           | offpeak=11-13,200        | 4 -> L4
off-peak ends                | 0:1 0:2 2:4 3:9 5:9999           | offpeak=11-12,200        | -
off-peak over midnight       | 0:1 0:2 2:4 3:9 5:9999           | offpeak=22-13,200        | 4 -> L4
off-peak of no hours         | 0:1 0:2 2:4 3:9 5:9999           | offpeak=12-12,200        | -
off-peak without an end      | 0:1 0:2 2:4 3:9 5:9999           | offpeak=12--1,200        | -
level 0 forced               | 0:1 5:999                        | force                    | 1 -> L4
all level 0 forced           | 0:1 0:500 5:9999                 | force                    | 2 -> L4
forced takes level 1 too     | 0:1 1:500 5:9999                 | force                    | 2 -> L1
forced output is not level 0 | 0:1 0:1 1:1 2:1 5:9999           | force trigger=9          | 4 -> L4
no level 0 to force          | 1:1 5:999                        | force                    | -
forced alone                 | 0:1                              | force                    | 1 -> L5
total size small             | 0:1 5:8                          | total=10                 | 2 -> L5
total size reached           | 0:1 5:9                          | total=10                 | -
total size of one run        | 0:1                              | total=10                 | -
increment large              | 0:6 3:5 5:999                    | incremental=10           | 3 -> L5
increment at the threshold   | 0:5 3:5 5:999                    | incremental=10           | -
increment counts below top   | 0:5 5:999                        | incremental=10           | -
interval over                | 0:1 5:999                        | interval=99 made=999900  | 2 -> L5
interval not over            | 0:1 5:999                        | interval=100 made=999900 | -
never compacted in full      | 0:1 3:999                        | interval=100 made=999999 | 2 -> L5
interval with one run        | 3:999                            | interval=100 made=0      | -
levels by option             | 0:9 0:9 0:9 0:9 2:10             | levels=3                 | 5 -> L2
levels that files have       | 0:9 0:9 0:9 0:9 7:10             | levels=3                 | 5 -> L7
fewer runs by trigger        | 0:1 0:1                          | trigger=2                | 2 -> L5
"""
CASES = [tuple(part.strip() for part in line.split("|")) for line in PICKS.strip().splitlines()]


def tree_of(text: str, rules: CompactionRules, made: int = 0) -> MergeTree:
    files = []
    for position, run in enumerate(text.split()):
        level, size = map(int, run.split(":"))
        number = 1_000 - position  # newer runs have larger sequence numbers
        files.append(
            DataFileMeta(
                f"f{position}", size, 1, min_sequence_number=number, max_sequence_number=number, level=level,
                creation_time_millis=made,
            )
        )  # fmt: skip
    return MergeTree.of(reversed(files), rules.levels)


def rules_of(text: str) -> tuple[CompactionRules, int]:
    """The rules, and the creation time of the files."""
    rules, made = CompactionRules(), 0
    names = {
        "trigger": "trigger", "levels": "levels", "ratio": "size_ratio", "amplification": "max_amplification_percent",
        "total": "total_size_bytes", "incremental": "incremental_bytes", "interval": "optimization_interval_millis",
    }  # fmt: skip
    for word in text.split():
        name, _, value = word.partition("=")
        if name == "force":
            rules = evolve(rules, force_level_0=True)
        elif name == "offpeak":
            hours, ratio = value.split(",")
            start, end = hours.split("-", 1)
            rules = evolve(rules, off_peak=OffPeak(int(start), int(end), int(ratio)))
        elif name == "made":
            made = int(value)
        else:
            rules = evolve(rules, **{names[name]: int(value)})
    return rules, made


def picture(tree: MergeTree, unit: CompactUnit | None) -> str:
    if unit is None:
        return "-"
    names = {f.file_name for f in unit.files}
    taken = [run for run in tree.runs if {f.file_name for f in run.files} <= names]
    assert tuple(taken) == tree.runs[: len(taken)], "the newest runs, without a gap"
    return f"{len(taken)} -> L{unit.output_level}"


@pytest.mark.parametrize(("name", "runs", "options", "expected"), CASES, ids=[case[0] for case in CASES])
def test_what_is_picked(name: str, runs: str, options: str, expected: str) -> None:
    rules, made = rules_of(options)
    tree = tree_of(runs, rules, made)
    assert picture(tree, pick(tree, rules, NOW, NOON)) == expected


def test_level_0_is_taken_newest_first() -> None:
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


def test_a_forced_full_compaction_takes_everything_to_the_top() -> None:
    rules = CompactionRules()
    assert pick_full(MergeTree.of((), 6), rules) is None
    several = tree_of("0:1 3:9 5:999", rules)
    assert picture(several, pick_full(several, rules)) == "3 -> L5"
    single = tree_of("4:9", rules)
    assert picture(single, pick_full(single, rules)) == "1 -> L5"


def test_a_tree_on_the_top_level_alone_is_rewritten_only_on_demand() -> None:
    rules = CompactionRules()
    tree = tree_of("5:9 5:9", rules)
    assert pick_full(tree, rules) is None
    unit = pick_full(tree, evolve(rules, rewrite_all=True))
    assert unit is not None and unit.one_by_one and len(unit.files) == 2


def test_rules_come_from_options() -> None:
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


def test_gentle_lookups_wait_for_their_turn() -> None:
    rules = CompactionRules(force_level_0=True, force_interval=3)
    tree = tree_of("0:1 5:999", rules)
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
    tree = tree_of(text, rules)
    unit = pick(tree, rules, NOW, NOON)
    if unit is None:
        assert not (forced and runs[0]), "level 0 was to be taken"
        assert len(tree.runs) <= trigger, "so many runs must shrink"
        return
    left = [f.level for f in tree.files if f not in unit.files]
    assert 0 < unit.output_level <= tree.top_level
    assert all(level > unit.output_level or level == 0 for level in left)
    assert unit.files == tree.files[: len(unit.files)]
    assert not (0 in left and any(f.level > 0 for f in unit.files)), "nothing older is taken than what is left"
