"""What happens to each file of a compaction unit.

Law: files that overlap others, and small ones, are rewritten; a large file that overlaps none only changes its level.
Deletes are dropped only where no older record of their keys can lie below the output: it is the highest level that
holds files, or deletion vectors take those records away. A file with deletes never reaches the top level as it is.
Where lookups are needed, what leaves level 0 is merged with older records, so that its file moves only where that
cannot change it. Source: `MergeTreeCompactTask`, `MergeTreeCompactManager`, `LookupMergeTreeCompactRewriter`,
`FullChangelogMergeTreeCompactRewriter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.expiry.rule import RecordExpiry
from paimon.domain.lsm.sorted_run import Section, SortedRun, sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


class Merging(Enum):
    """What rewriting asks for besides merging the records of the files.

    LOOKUP: the newest older record of each key, from the levels above the output where the files hold none; the
    difference from it is the changelog of producer lookup. TOP: the difference from the records of the top level.
    """

    PLAIN = "plain"
    LOOKUP = "lookup"
    TOP = "top"


@frozen
class UnitPlan:
    """The work of a unit.

    Parameters
    ----------
    output_level : int
        Where everything goes.
    drop_deletes : bool
        Leave retracts out of what is rewritten.
    rewrites : tuple of tuple of Section
        Each group of sections, ascending by key, becomes files of its own.
    upgrades : tuple of DataFileMeta
        Files that only change their level.
    examined : tuple of DataFileMeta
        Those of the upgrades that are read all the same, for what they change.
    above : tuple of DataFileMeta
        The files of the levels above the output, where lookups are needed.
    top_level : int
        The top level of the tree.
    expiry : RecordExpiry, optional
        Which records are left out wherever they are read.
    """

    output_level: int
    drop_deletes: bool
    rewrites: tuple[tuple[Section, ...], ...] = ()
    upgrades: tuple[DataFileMeta, ...] = ()
    examined: tuple[DataFileMeta, ...] = ()
    above: tuple[DataFileMeta, ...] = ()
    top_level: int = 0
    expiry: RecordExpiry | None = None

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are read and replaced."""
        return tuple(f for group in self.rewrites for section in group for run in section for f in run.files)


def unit_plan(tree: MergeTree, unit: CompactUnit, rules: CompactionRules, key_types: Sequence[DataType]) -> UnitPlan:
    """The work of a unit of a tree; `key_types` are those of the trimmed primary key."""
    level = unit.output_level
    drop = level != 0 and (level >= tree.highest_level or rules.options.deletion_vectors_enabled)
    above = tuple(f for run in tree.runs if run.level > level for f in run.files) if rules.looks_up else ()
    if unit.one_by_one:
        alone = tuple((_alone(f),) for f in unit.files)
        return UnitPlan(level, drop, alone, above=above, top_level=tree.top_level, expiry=rules.expiry)
    rewrites: list[tuple[Section, ...]] = []
    upgrades: list[DataFileMeta] = []
    for group in _groups(sections(unit.files, key_types), rules.small_file_bytes):
        if len(group) > 1 or len(group[0]) > 1:
            rewrites.append(group)
            continue
        for file in group[0][0].files:
            if _must_be_rewritten(file, level, tree.top_level, rules):
                rewrites.append((_alone(file),))
            elif file.level != level:
                upgrades.append(file)
    examined = tuple(f for f in upgrades if _is_examined(f, level, tree.top_level, rules))
    return UnitPlan(level, drop, tuple(rewrites), tuple(upgrades), examined, above, tree.top_level, rules.expiry)


def merging_of(files: Sequence[DataFileMeta], plan: UnitPlan, rules: CompactionRules) -> Merging:
    """What rewriting these files together asks for."""
    if rules.producer == "full-compaction" and plan.output_level == plan.top_level:
        return Merging.TOP
    return Merging.LOOKUP if rules.looks_up and any(f.level == 0 for f in files) else Merging.PLAIN


def _must_be_rewritten(file: DataFileMeta, level: int, top: int, rules: CompactionRules) -> bool:
    may_hold_deletes = file.delete_row_count != 0
    if rules.rewrite_all or file.file_name in rules.expired or (level == top and may_hold_deletes):
        return True
    if file.level != 0 or not rules.looks_up:
        return False
    options = rules.options
    return (
        options.file_format_at(0) != options.file_format_at(level)
        or ((options.deletion_vectors_enabled or options.ignore_delete) and may_hold_deletes)
        or (level != top and not rules.newest_wins)
    )


def _is_examined(file: DataFileMeta, level: int, top: int, rules: CompactionRules) -> bool:
    """Whether a file that only moves changes what the table holds, in a way that must be told or marked."""
    if rules.producer == "full-compaction" and level == top:
        return True
    told = rules.producer == "lookup" or rules.options.deletion_vectors_enabled
    return file.level == 0 and rules.looks_up and told


def _groups(found: Sequence[Section], small_bytes: int) -> list[tuple[Section, ...]]:
    """Neighbours that are rewritten together; large files that overlap none stand alone between them."""
    groups: list[tuple[Section, ...]] = []
    pending: list[Section] = []
    for section in found:
        if len(section) > 1:
            pending.append(section)
            continue
        for file in section[0].files:
            if file.file_size < small_bytes:
                pending.append(_alone(file))
                continue
            if pending:
                groups.append(tuple(pending))
                pending = []
            groups.append((_alone(file),))
    return [*groups, tuple(pending)] if pending else groups


def _alone(file: DataFileMeta) -> Section:
    return (SortedRun((file,)),)
