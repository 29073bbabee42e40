"""Which runs of a merge tree are compacted next, and to which level.

Law: a pick is the newest runs without a gap, so that what it writes lies below all that it leaves; a level above 0 is
taken whole or not at all; the output never stays on level 0. Source: `UniversalCompaction`, `EarlyFullCompaction`,
`ForceUpLevel0Compaction`, `CompactStrategy`, `MergeTreeCompactManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, LevelRun, MergeTree


def pick(
    tree: MergeTree, rules: CompactionRules, now_millis: int, hour: int, idle_triggers: int = 0
) -> CompactUnit | None:
    """What to compact now; None where nothing asks for it.

    Parameters
    ----------
    now_millis : int
        The clock that stamps files: local wall-clock time encoded as if UTC.
    hour : int
        Local hour of the day, 0 to 23.
    idle_triggers : int
        How often nothing but its age asked for level 0 since it was last forced up.
    """
    runs = tree.runs
    count = _early_full(tree, rules, now_millis) or _universal(runs, rules, hour)
    if not count and rules.force_level_0 and idle_triggers + 1 >= rules.force_interval:
        count = _grown(runs, rules, hour, sum(run.level == 0 for run in runs), forced=True)
    return _worthwhile(_unit(tree, count)) if count else None


def pick_full(tree: MergeTree, rules: CompactionRules, marked: Collection[str] = ()) -> CompactUnit | None:
    """What a full compaction asked for takes: all runs, to the top level.

    Of a tree that is there already, the files are taken that must be rewritten: `marked` names those with deletion
    vectors.
    """
    if not tree.runs:
        return None
    if [run.level for run in tree.runs] == [tree.top_level]:
        files = tuple(f for f in tree.files if rules.rewrite_all or f.file_name in marked)
        return CompactUnit(tree.top_level, files, one_by_one=True) if files else None
    return _unit(tree, len(tree.runs))


def _early_full(tree: MergeTree, rules: CompactionRules, now_millis: int) -> int:
    """All runs, where there are several and age or size asks for a full compaction; else 0."""
    runs = tree.runs
    if len(runs) < 2:
        return 0
    below_top = sum(run.size_bytes for run in runs if run.level != tree.top_level)
    total = sum(run.size_bytes for run in runs)
    due = (
        _interval_over(tree, rules, now_millis)
        or (rules.total_size_bytes is not None and total < rules.total_size_bytes)
        or (rules.incremental_bytes is not None and below_top > rules.incremental_bytes)
    )
    return len(runs) if due else 0


def _interval_over(tree: MergeTree, rules: CompactionRules, now_millis: int) -> bool:
    if rules.optimization_interval_millis is None:
        return False
    made = [f.creation_time_millis or 0 for run in tree.runs if run.level == tree.top_level for f in run.files]
    return not made or now_millis - max(made) > rules.optimization_interval_millis


def _universal(runs: Sequence[LevelRun], rules: CompactionRules, hour: int) -> int:
    """How many runs size amplification, size ratio or their number ask for."""
    if len(runs) < rules.trigger:
        return 0
    newer = sum(run.size_bytes for run in runs[:-1])
    if runs and newer * 100 > rules.max_amplification_percent * runs[-1].size_bytes:
        return len(runs)
    by_ratio = _grown(runs, rules, hour, 1)
    if by_ratio or len(runs) == rules.trigger:
        return by_ratio
    return _grown(runs, rules, hour, len(runs) - rules.trigger + 1)


def _grown(runs: Sequence[LevelRun], rules: CompactionRules, hour: int, count: int, forced: bool = False) -> int:
    """The first `count` runs and those after them that are not much larger; 0 for a single run nobody forces."""
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


def _unit(tree: MergeTree, count: int) -> CompactUnit:
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


def _worthwhile(unit: CompactUnit) -> CompactUnit | None:
    done = len(unit.files) == 1 and unit.files[0].level == unit.output_level
    return unit if unit.files and not done else None
