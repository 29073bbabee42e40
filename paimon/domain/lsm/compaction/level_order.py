"""Keep newer records on smaller levels than older records of the same keys.

With one writer this holds without effort: a run that was written later has larger sequence numbers. Where several
writers compact, a level can hold newer records than level 0. Tables that need lookups then compact both together,
because a lookup takes the record of the smallest level as the newest.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from paimon.domain.lsm.compaction.pick import build_unit
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.data_types import DataType


@frozen
class KeyedFile:
    """A file with the range of its keys.

    Parameters
    ----------
    file : DataFileMeta
        The file.
    low, high : Comparable
        Its smallest and its largest key.
    """

    file: DataFileMeta
    low: Comparable
    high: Comparable

    @classmethod
    def of(cls, file: DataFileMeta, key_types: Sequence[DataType]) -> KeyedFile:
        """Return a file with its keys as comparable values."""
        return cls(file, to_comparable_key(file.min_key, key_types), to_comparable_key(file.max_key, key_types))


def is_out_of_order(one: KeyedFile, other: KeyedFile) -> bool:
    """Return whether the file of the smaller level may hold an older record of a key than the other file.

    Parameters
    ----------
    one, other : KeyedFile
        Two files of a bucket, in any order.

    Returns
    -------
    bool
        False for files of one level.
    """
    if one.file.level == other.file.level:
        return False
    upper, lower = (one, other) if one.file.level < other.file.level else (other, one)
    is_older = upper.file.min_sequence_number <= lower.file.max_sequence_number
    return is_older and upper.low <= lower.high and lower.low <= upper.high


def include_newer_runs(tree: MergeTree, unit: CompactUnit, key_types: Sequence[DataType]) -> CompactUnit:
    """Return the unit with further runs until no other run holds newer records of its keys.

    Parameters
    ----------
    tree : MergeTree
        The runs of the bucket.
    unit : CompactUnit
        What was picked: the newest runs of the tree.
    key_types : sequence of DataType
        The types of the primary key.

    Returns
    -------
    CompactUnit
        The same unit if no level holds newer records.
    """
    if unit.one_by_one or not unit.files:
        return unit
    picked = _count_runs(tree, unit)
    count = picked
    oldest = min(f.min_sequence_number for f in unit.files)
    for number, run in enumerate(tree.runs[picked:], picked + 1):
        newer = [KeyedFile.of(f, key_types) for f in run.files if f.max_sequence_number >= oldest]
        taken = (f for smaller in tree.runs[:count] for f in smaller.files) if newer else ()
        if any(is_out_of_order(KeyedFile.of(file, key_types), other) for file in taken for other in newer):
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
