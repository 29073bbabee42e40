"""Pick the sorted runs of a bucket that are compacted next, and the level of the result.

Invariant: a pick is the newest runs without a gap, so that its output is older than all runs that remain. A level
above 0 is taken completely or not at all. The output is never on level 0.

Source: `UniversalCompaction`, `EarlyFullCompaction`, `ForceUpLevel0Compaction`, `CompactStrategy`,
`MergeTreeCompactManager`.
"""

# The runs of a bucket, the newest first: each level-0 file is a run, each level above is one. The oldest run is the
# last.
#
#     run       L0  L0  L0  L0  L3   L5          num-sorted-run.compaction-trigger 5
#     size       1   1   1   2  10  100          size ratio 1 %, max size amplification 200 %
#
# Universal compaction takes the newest runs without a gap, because a merged run is, in the order, between what is
# newer and what is older. It takes (`count_universal_runs`, if there are at least 5 runs):
#
# 1. all, if the newer runs are large against the oldest one: 15 of 100 is 15 %, not more than 200 %;
# 2. the first run, and each following one that is at most 1 % larger than all before together: 1, 1 (2 before), 1 (3),
#    2 (5); the 10 is more than 5.05, so four runs are taken;
# 3. if that gives nothing, and there are more runs than the trigger, as many as exceed it, extended by the size ratio.
#
# `_count_early_full_runs` comes first: it takes all by age, or by total or incremental size. With `force_level_0`
# (tables whose reads need level 0 compacted), all level-0 runs are taken if no other rule asks for anything.
#
# The output goes to the level below the next remaining run (`build_unit`): L2 in the example. If that would be level 0,
# more runs are taken, since the output of a compaction is never on level 0. If all are taken, it goes to the top level.

from __future__ import annotations

from collections.abc import Collection, Sequence

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, LevelRun, MergeTree


def pick(
    tree: MergeTree, rules: CompactionRules, now_millis: int, hour: int, idle_triggers: int = 0
) -> CompactUnit | None:
    """Pick what to compact now; None if no rule asks for a compaction.

    `now_millis` is local wall-clock time encoded as UTC, like the times of files, and `hour` is local. `idle_triggers`
    is how many times in a row level 0 was left because only `force_level_0` asked for a compaction.
    """
    runs = tree.runs
    count = _count_early_full_runs(tree, rules, now_millis) or count_universal_runs(runs, rules, hour)
    if not count and rules.force_level_0 and idle_triggers + 1 >= rules.force_interval:
        count = _extend_by_size_ratio(runs, rules, hour, sum(run.level == 0 for run in runs), forced=True)
    return _drop_if_pointless(build_unit(tree, count)) if count else None


def pick_full(tree: MergeTree, rules: CompactionRules, marked: Collection[str] = ()) -> CompactUnit | None:
    """Pick all runs, for a full compaction to the top level; None if there is nothing to do.

    If all files are on the top level already, only files that must be rewritten are picked. `marked` has the names of
    files with deletion vectors.
    """
    if not tree.runs:
        return None
    if [run.level for run in tree.runs] == [tree.top_level]:
        files = tuple(f for f in tree.files if rules.rewrite_all or f.file_name in marked)
        return CompactUnit(tree.top_level, files, one_by_one=True) if files else None
    return build_unit(tree, len(tree.runs))


def build_unit(tree: MergeTree, count: int) -> CompactUnit:
    """Build a unit of the `count` newest runs, plus more of level 0 if its output would be there."""
    runs = tree.runs
    level = 0
    if count < len(runs):
        level = max(0, runs[count].level - 1)
        while level == 0 and count < len(runs):
            level = runs[count].level
            count += 1
    if count == len(runs):
        level = tree.top_level
    return CompactUnit(level, [f for run in runs[:count] for f in run.files])


def _count_early_full_runs(tree: MergeTree, rules: CompactionRules, now_millis: int) -> int:
    """Return the number of all runs where age or size asks for a full compaction of several runs; otherwise 0."""
    runs = tree.runs
    if len(runs) < 2:
        return 0
    below_top = sum(run.size_bytes for run in runs if run.level != tree.top_level)
    total = sum(run.size_bytes for run in runs)
    due = (
        _is_interval_over(tree, rules, now_millis)
        or (rules.total_size_bytes is not None and total < rules.total_size_bytes)
        or (rules.incremental_bytes is not None and below_top > rules.incremental_bytes)
    )
    return len(runs) if due else 0


def _is_interval_over(tree: MergeTree, rules: CompactionRules, now_millis: int) -> bool:
    """Return whether the last full compaction is older than `compaction.optimization-interval`, or there was none."""
    if rules.optimization_interval_millis is None:
        return False
    made = [f.creation_time_millis or 0 for run in tree.runs if run.level == tree.top_level for f in run.files]
    return not made or now_millis - max(made) > rules.optimization_interval_millis


def count_universal_runs(runs: Sequence[LevelRun], rules: CompactionRules, hour: int) -> int:
    """Return how many runs the size amplification, the size ratio or the number of runs asks for."""
    if len(runs) < rules.trigger:
        return 0
    newer = sum(run.size_bytes for run in runs[:-1])
    if runs and newer * 100 > rules.max_amplification_percent * runs[-1].size_bytes:
        return len(runs)
    by_ratio = _extend_by_size_ratio(runs, rules, hour, 1)
    if by_ratio or len(runs) == rules.trigger:
        return by_ratio
    return _extend_by_size_ratio(runs, rules, hour, len(runs) - rules.trigger + 1)


def _extend_by_size_ratio(
    runs: Sequence[LevelRun], rules: CompactionRules, hour: int, count: int, forced: bool = False
) -> int:
    """Return how many runs to take: `count`, and those not much larger; a single one only where `forced`."""
    if count == 0:
        return 0
    percent = 100 + rules.size_ratio + rules.off_peak.ratio_at(hour)
    size = sum(run.size_bytes for run in runs[:count])
    for run in runs[count:]:
        if size * percent < run.size_bytes * 100:
            break
        size += run.size_bytes
        count += 1
    return count if forced or count > 1 else 0


def _drop_if_pointless(unit: CompactUnit) -> CompactUnit | None:
    """Return None where the unit is a single file that is on its output level already."""
    done = len(unit.files) == 1 and unit.files[0].level == unit.output_level
    return unit if unit.files and not done else None
