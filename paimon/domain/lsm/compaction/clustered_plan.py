"""Plan the compaction of a bucket whose files are clustered by other columns than the primary key.

Invariant: all files of level 0 are rewritten, and every file above level 0 is rewritten or looked up. So at most one
live row of a key is above level 0.

Source: `ClusteringCompactManager`, `ClusteringFileRewriter.pickMergeCandidates`. Unlike Java, which merges all
overlapping and all small files at each compaction, files are merged when there are enough of them.
"""

# With `pk-clustering-override`, level 0 is as in every primary-key table: files in key order, hidden from batch reads.
# A compaction merges these files, sorts their rows by `clustering.columns`, and writes them to level 1. There the files
# are in no key order, and overlap. Deletion vectors keep the keys unique, as a lookup does in other tables:
#
#     level 0   [k=1 c=7] [k=5 c=2]        written          key 1 is looked up in a and b: the row in a is marked
#     level 1   a: c 0..9, k=1 c=4         clustered        new file c: c 2..7, k=5 c=2, k=1 c=7
#               b: c 3..6, k=2 c=3
#
# The bounds of a file (`min_key`, `max_key`) are keys on level 0, and values of the clustering columns on level 1.
#
# Files of level 1 have no age: no two of them have a live row of the same key. So any of them may be merged:
#
#     bounds    0 ........ 10 ........ 20 ........ 30       1. Files with disjoint bounds form a run, here (a b), (c d)
#     files     [    a    ]  [      b      ]                   and (e). If there are as many as the trigger, the rules
#               [ c ]  [    d   ]                              of the LSM tree pick runs, from the smallest on.
#                   [      e       ]                        2. Otherwise neighbors that are small and overlap no other
#                                                              file are merged, if there are as many as the trigger.
#
# A full compaction merges everything to one run, with the rows of level 0.

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from attrs import frozen

from paimon.domain.lsm.compaction.pick import count_universal_runs
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import LevelRun
from paimon.domain.lsm.sorted_run import KeyedFile, cut_keyed_files
from paimon.domain.manifest.entries import DataFileMeta

CLUSTERED_LEVEL = 1
"""The level of clustered files, as in Java."""


@frozen
class ClusteredPlan:
    """The work in one bucket of clustered files."""

    # the files of level 0, whose rows are merged by key
    new: tuple[DataFileMeta, ...] = ()
    # files above level 0 that are rewritten together
    merged: tuple[DataFileMeta, ...] = ()
    # the other files above level 0, in which keys are looked up
    kept: tuple[DataFileMeta, ...] = ()
    # whether the rows of level 0 and of the merged files are written together
    is_full: bool = False

    @property
    def clustered(self) -> tuple[DataFileMeta, ...]:
        """All files above level 0."""
        return (*self.merged, *self.kept)


def plan_clustered(
    files: Sequence[DataFileMeta],
    to_bounds: Callable[[DataFileMeta], KeyedFile],
    rules: CompactionRules,
    small_bytes: int,
    full: bool,
    marked: Collection[str],
) -> ClusteredPlan:
    """Return the plan for a bucket's live files; `marked` names those with deleted rows."""
    new = tuple(f for f in files if f.level == 0)
    above = tuple(f for f in files if f.level > 0)
    merged = _pick_all(new, above, to_bounds, small_bytes, marked) if full else ()
    if not full:
        merged = _pick_some(above, to_bounds, rules, small_bytes)
    names = {f.file_name for f in merged}
    return ClusteredPlan(new, merged, tuple(f for f in above if f.file_name not in names), full)


def _pick_all(
    new: Sequence[DataFileMeta],
    above: tuple[DataFileMeta, ...],
    to_bounds: Callable[[DataFileMeta], KeyedFile],
    small_bytes: int,
    marked: Collection[str],
) -> tuple[DataFileMeta, ...]:
    """Return all files; none if they are one run already, without deleted rows and without small files."""
    has_deleted = any(f.file_name in marked or f.delete_row_count != 0 for f in above)
    is_one_run = len(_cut_into_runs(above, to_bounds)) <= 1 and sum(f.file_size < small_bytes for f in above) <= 1
    return () if is_one_run and not has_deleted and not new else above


def _pick_some(
    files: Sequence[DataFileMeta],
    to_bounds: Callable[[DataFileMeta], KeyedFile],
    rules: CompactionRules,
    small_bytes: int,
) -> tuple[DataFileMeta, ...]:
    """Return the runs to merge, or the small files."""
    runs = sorted(_cut_into_runs(files, to_bounds), key=lambda run: run.size_bytes)
    count = count_universal_runs(runs, rules, hour=0)
    if count:
        return tuple(f for run in runs[:count] for f in run.files)
    neighbors: list[DataFileMeta] = []
    for section in cut_keyed_files(map(to_bounds, files)):
        section_files = [f for run in section for f in run.files]
        if len(section_files) == 1 and section_files[0].file_size < small_bytes:
            neighbors += section_files
        elif len(neighbors) >= rules.trigger:
            break
        else:
            neighbors = []
    return tuple(neighbors) if len(neighbors) >= rules.trigger else ()


def _cut_into_runs(files: Sequence[DataFileMeta], to_bounds: Callable[[DataFileMeta], KeyedFile]) -> list[LevelRun]:
    """Return as few runs of files with disjoint bounds as possible."""
    runs: list[list[DataFileMeta]] = []
    for section in cut_keyed_files(map(to_bounds, files)):
        for number, run in enumerate(sorted(section, key=lambda run: run.file_size, reverse=True)):
            if number == len(runs):
                runs.append([])
            runs[number] += run.files
    return [LevelRun(CLUSTERED_LEVEL, run) for run in runs]
