"""Keep newer records on smaller levels than older records of the same keys.

With one writer this holds without effort: a run that was written later has larger sequence numbers. Where several
writers compact, a level can hold newer records than level 0. Tables that need lookups then compact both together,
because a lookup takes the record of the smallest level as the newest.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.lsm.compaction.pick import build_unit
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


def is_out_of_order(one: KeyedFile, other: KeyedFile) -> bool:
    """Return whether, of two files in any order, the smaller level may hold an older record of a key."""
    return _is_older_above(one.file, other.file) and one.overlaps(other)


def find_out_of_order(
    files: Sequence[DataFileMeta], others: Iterable[DataFileMeta], key_types: Sequence[DataType]
) -> list[DataFileMeta]:
    """Return the files of `others`, in order, that are out of order with one of `files`; few keys are decoded."""
    suspects = [f for f in others if any(_is_older_above(f, file) for file in files)]
    if not suspects:
        return []
    keyed = [KeyedFile.of(f, key_types) for f in files]
    suspected = (KeyedFile.of(f, key_types) for f in suspects)
    return [other.file for other in suspected if any(is_out_of_order(file, other) for file in keyed)]


def _is_older_above(one: DataFileMeta, other: DataFileMeta) -> bool:
    """Return whether, by the sequence numbers, the file of the smaller level can hold an older record."""
    if one.level == other.level:
        return False
    upper, lower = (one, other) if one.level < other.level else (other, one)
    return upper.min_sequence_number <= lower.max_sequence_number


def include_newer_runs(tree: MergeTree, unit: CompactUnit, key_types: Sequence[DataType]) -> CompactUnit:
    """Extend a unit until no other run holds newer records of its keys.

    `unit` has the newest runs of the tree. It is returned itself if no level holds newer records.
    """
    if unit.one_by_one or not unit.files:
        return unit
    picked = _count_runs(tree, unit)
    count = picked
    oldest = min(f.min_sequence_number for f in unit.files)
    for number, run in enumerate(tree.runs[picked:], picked + 1):
        newer = [f for f in run.files if f.max_sequence_number >= oldest]
        taken = (f for smaller in tree.runs[:count] for f in smaller.files)
        if newer and find_out_of_order(newer, taken, key_types):
            count = number
            oldest = min(f.min_sequence_number for smaller in tree.runs[:count] for f in smaller.files)
    return unit if count == picked else build_unit(tree, count)


def _count_runs(tree: MergeTree, unit: CompactUnit) -> int:
    """Return how many runs, from the newest, a unit consists of."""
    files = count = 0
    while files < len(unit.files):
        files += len(tree.runs[count].files)
        count += 1
    return count
