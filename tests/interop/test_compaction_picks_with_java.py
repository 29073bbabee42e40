"""Our picker and Java's strategies select the same unit, for the documented cases and for thousands of drawn trees."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from draw_picks import DOCUMENT, NOON, parse_cases
from support.java_paimon import JavaPaimon

from paimon.domain.lsm.compaction.pick import pick
from paimon.domain.lsm.compaction.rules import CompactionRules, OffPeak
from paimon.domain.lsm.compaction.tree import MergeTree
from paimon.domain.manifest.entries import DataFileMeta

pytestmark = pytest.mark.interop

LEVELS = 6


def draw_runs(chance: random.Random) -> tuple[str, CompactionRules, list[tuple[int, int]]]:
    """A case in the form of Java's side and of ours."""
    scale = chance.choice([3, 30, 3_000])
    newest = [(0, chance.randint(1, scale)) for _ in range(chance.randint(0, 7))]
    above = [(level, chance.randint(1, scale * 4**level)) for level in range(1, LEVELS) if chance.random() < 0.5]
    rules = CompactionRules(
        trigger=chance.randint(1, 6),
        levels=LEVELS,
        max_amplification_percent=chance.choice([0, 50, 200, 10_000]),
        size_ratio=chance.choice([0, 1, 50, 400]),
        off_peak=OffPeak(0, 24, chance.choice([0, 0, 100])),
        total_size_bytes=chance.choice([None, None, None, 20]),
        incremental_bytes=chance.choice([None, None, None, 500]),
        force_level_0=chance.random() < 0.4,
    )
    runs = [*newest, *above]
    return line(rules, LEVELS, runs), rules, runs


def line(rules: CompactionRules, levels: int, runs: Iterable[tuple[int, int]]) -> str:
    """A case in the form of Java's side. The time is noon, for off-peak hours."""
    hours = rules.off_peak
    numbers = [
        levels, rules.max_amplification_percent, rules.size_ratio, rules.trigger, int(rules.force_level_0),
        -1 if rules.total_size_bytes is None else rules.total_size_bytes,
        -1 if rules.incremental_bytes is None else rules.incremental_bytes,
        hours.start_hour, hours.end_hour, hours.ratio, NOON,
    ]  # fmt: skip
    return " ".join([*map(str, numbers), *(f"{level}:{size}" for level, size in runs)])


def test_the_table_of_the_documents_holds_for_java(java: JavaPaimon) -> None:
    table = [
        case for case in parse_cases(DOCUMENT.read_text("utf8")) if case.rules.optimization_interval_millis is None
    ]
    picks_of_java = java.picks(line(case.rules, case.tree.top_level + 1, case.runs) for case in table)
    assert len(table) >= 38
    for case, pick_of_java in zip(table, picks_of_java, strict=True):
        assert pick_of_java == (f"{case.taken} {case.level}" if case.taken else "-"), case.name


def test_our_picks_equal_javas(java: JavaPaimon) -> None:
    chance = random.Random(4)
    cases = [draw_runs(chance) for _ in range(5_000)]
    picks_of_java = java.picks(case for case, _, _ in cases)
    picked = 0
    for (case, rules, runs), pick_of_java in zip(cases, picks_of_java, strict=True):
        files = [
            DataFileMeta(f"f{i}", size, 1, min_sequence_number=-i, max_sequence_number=-i, level=level)
            for i, (level, size) in enumerate(runs)
        ]
        unit = pick(MergeTree.of(files, rules.levels), rules, 0, 12)
        if unit is not None:
            picked += 1
            assert f"{len(unit.files)} {unit.output_level}" == pick_of_java, case
        elif pick_of_java != "-":  # Java drops this one a step later
            count, level = map(int, pick_of_java.split())
            assert count == 0 or (count == 1 and runs[0][0] == level), case
    assert picked > 1_000
