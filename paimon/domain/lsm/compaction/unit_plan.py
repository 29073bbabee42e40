"""Plan what happens to each file of a compaction unit: rewrite, upgrade to another level, or examine for a changelog.

Files that overlap others, and small files, are rewritten. A large file that overlaps none only changes its level.
Where lookups are needed, a file leaves level 0 unchanged only if older records cannot change it.

Invariant: retracts are dropped only where no older record of their keys can be below the output. That is the case on
the highest level that holds files, or where deletion vectors remove the older records. A file with retracts is never
moved to the top level unchanged.

Source: `MergeTreeCompactTask`, `MergeTreeCompactManager`, `LookupMergeTreeCompactRewriter`,
`FullChangelogMergeTreeCompactRewriter`.
"""

# A unit is cut into sections, whose key ranges are disjoint. A section with several runs must be merged. A section with
# one run has no overlap: its large files can go to the output level by changing the metadata only (an upgrade).
#
#     keys     0 ...... 20 ...... 40 ...... 60 ...... 80
#     L0       [  a  ]            [ d ]                       a and b overlap: rewritten
#     L0          [   b   ]                [     e     ]      c and d are small: rewritten together with a and b
#     L1                    [c]                               e is large and overlaps no file: upgraded
#
# An upgrade is not always right (`_must_rewrite`):
#
# - on the top level, -D records would stay for ever, so a file with retracts is rewritten there;
# - where lookups are needed, no merge has compared the records of a level-0 file with older ones. Only a file whose
#   records win anyhow (deduplicate), or below which nothing remains (top level), may stay unmerged;
# - the file format of its level, or an expired record, can also require it.
#
# An upgraded level-0 file can change what readers see, for instance with deletion vectors. It is then read, but not
# written (`examined`), for a changelog or for the vectors of the rows that it replaces.

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.record_expiry import RecordExpiry
from paimon.domain.lsm.sorted_run import KeyedFile, Section, SortedRun, cut_into_sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


class Merging(Enum):
    """What rewriting files needs in addition to their own records.

    PLAIN: nothing. LOOKUP: the newest older record of each key, from the levels above the output where the files hold
    none; the difference from it is the changelog of producer `lookup`. TOP: the records of the top level; the
    difference from them is the changelog of producer `full-compaction`.
    """

    PLAIN = "plain"
    LOOKUP = "lookup"
    TOP = "top"


@frozen
class UnitPlan:
    """The work of a compaction unit: the files to rewrite, the files to upgrade and what to look up."""

    # the level of all results
    output_level: int
    # whether retracts are left out of rewritten files
    drop_deletes: bool
    # each group of sections, ascending by key, is written to files of its own
    rewrites: tuple[tuple[Section, ...], ...] = ()
    # files that only change their level
    upgrades: tuple[DataFileMeta, ...] = ()
    # the upgrades that are read for a changelog or for deletion vectors
    examined: tuple[DataFileMeta, ...] = ()
    # the files of the levels above the output, if lookups are needed
    above: tuple[DataFileMeta, ...] = ()
    top_level: int = 0
    # the records that are left out wherever records are read
    expiry: RecordExpiry | None = None

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are read and replaced."""
        return tuple(f for group in self.rewrites for section in group for run in section for f in run.files)


def plan_unit(tree: MergeTree, unit: CompactUnit, rules: CompactionRules, key_types: Sequence[DataType]) -> UnitPlan:
    """Plan the work of a unit: each file is rewritten, upgraded, or on the output level already."""
    level = unit.output_level
    above = tuple(f for run in tree.runs if run.level > level for f in run.files)
    drop = level != 0 and (not above or rules.options.deletion_vectors_enabled)
    above = above if rules.needs_lookup else ()
    if unit.one_by_one:
        single_files = tuple((_to_single_file_section(f),) for f in unit.files)
        return UnitPlan(level, drop, single_files, above=above, top_level=tree.top_level, expiry=rules.expiry)
    rewrites: list[tuple[Section, ...]] = []
    upgrades: list[DataFileMeta] = []
    for group in _group_sections(cut_into_sections(unit.files, key_types), rules.small_file_bytes):
        if len(group) > 1 or len(group[0]) > 1:
            rewrites.append(group)
            continue
        for file in group[0][0].files:
            if _must_rewrite(file, level, tree.top_level, rules):
                rewrites.append((_to_single_file_section(file),))
            elif file.level != level:
                upgrades.append(file)
    examined = tuple(f for f in upgrades if _is_examined(f, level, tree.top_level, rules))
    return UnitPlan(level, drop, tuple(rewrites), tuple(upgrades), examined, above, tree.top_level, rules.expiry)


def choose_merging(files: Sequence[DataFileMeta], plan: UnitPlan, rules: CompactionRules) -> Merging:
    """Return what the rewrite of one group of `UnitPlan.rewrites` needs: TOP precedes LOOKUP, which precedes PLAIN."""
    if rules.producer == "full-compaction" and plan.output_level == plan.top_level:
        return Merging.TOP
    return Merging.LOOKUP if rules.needs_lookup and any(f.level == 0 for f in files) else Merging.PLAIN


def list_looked_up_files(plan: UnitPlan, key_types: Sequence[DataType]) -> tuple[DataFileMeta, ...]:
    """Return the files above the output that can hold keys of the unit which are looked up, or whose deletes it drops.

    The result of the compaction depends on the records of these files, or on the fact that they have none.
    """
    files = (*plan.rewritten, *plan.upgrades) if plan.above else ()
    wanted = [f for f in files if f.level == 0 or (plan.drop_deletes and f.delete_row_count != 0)]
    keyed = [KeyedFile.of(f, key_types) for f in wanted]
    above = (KeyedFile.of(f, key_types) for f in plan.above) if keyed else ()
    return tuple(file.file for file in above if any(file.overlaps(k) for k in keyed))


def _must_rewrite(file: DataFileMeta, level: int, top: int, rules: CompactionRules) -> bool:
    """Return whether a large file that overlaps no other file must be rewritten all the same."""
    may_hold_deletes = file.delete_row_count != 0
    if rules.rewrite_all or file.file_name in rules.expired or (level == top and may_hold_deletes):
        return True
    if file.level != 0 or not rules.needs_lookup:
        return False
    options = rules.options
    return (
        options.file_format_at(0) != options.file_format_at(level)
        or ((options.deletion_vectors_enabled or options.ignore_delete) and may_hold_deletes)
        or (level != top and not rules.newest_wins)
    )


def _is_examined(file: DataFileMeta, level: int, top: int, rules: CompactionRules) -> bool:
    """Return whether an upgraded file changes visible rows, so that a changelog or deletion vectors depend on it."""
    if rules.producer == "full-compaction" and level == top:
        return True
    is_reported = rules.producer == "lookup" or rules.options.deletion_vectors_enabled
    return file.level == 0 and rules.needs_lookup and is_reported


def _group_sections(found: Sequence[Section], small_bytes: int) -> list[tuple[Section, ...]]:
    """Group neighboring sections that are rewritten together; a large file without overlap is a group of its own."""
    groups: list[tuple[Section, ...]] = []
    pending: list[Section] = []
    for section in found:
        if len(section) > 1:
            pending.append(section)
            continue
        for file in section[0].files:
            if file.file_size < small_bytes:
                pending.append(_to_single_file_section(file))
                continue
            if pending:
                groups.append(tuple(pending))
                pending = []
            groups.append((_to_single_file_section(file),))
    return [*groups, tuple(pending)] if pending else groups


def _to_single_file_section(file: DataFileMeta) -> Section:
    return (SortedRun((file,)),)
