"""What happens to each file of a compaction unit.

Law: files that overlap others, and small ones, are rewritten; a large file that overlaps none only changes its level.
Deletes are dropped only where no older record of their keys can lie below the output: it is the highest level that
holds files. A file with deletes never reaches the top level as it is. Source: `MergeTreeCompactTask`,
`MergeTreeCompactManager`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.sorted_run import Section, SortedRun, sections
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


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
    """

    output_level: int
    drop_deletes: bool
    rewrites: tuple[tuple[Section, ...], ...] = ()
    upgrades: tuple[DataFileMeta, ...] = ()

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are read and replaced."""
        return tuple(f for group in self.rewrites for section in group for run in section for f in run.files)


def unit_plan(tree: MergeTree, unit: CompactUnit, rules: CompactionRules, key_types: Sequence[DataType]) -> UnitPlan:
    """The work of a unit of a tree; `key_types` are those of the trimmed primary key."""
    level = unit.output_level
    drop = level != 0 and level >= tree.highest_level
    if unit.one_by_one:
        return UnitPlan(level, drop, tuple((_alone(f),) for f in unit.files))
    rewrites: list[tuple[Section, ...]] = []
    upgrades: list[DataFileMeta] = []
    for group in _groups(sections(unit.files, key_types), rules.small_file_bytes):
        if len(group) > 1 or len(group[0]) > 1:
            rewrites.append(group)
            continue
        for file in group[0][0].files:
            if rules.rewrite_all or (level == tree.top_level and file.delete_row_count != 0):
                rewrites.append((_alone(file),))
            elif file.level != level:
                upgrades.append(file)
    return UnitPlan(level, drop, tuple(rewrites), tuple(upgrades))


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
