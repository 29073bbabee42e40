"""Whether the age of files alone tells which of two records of a key is newer.

Law: answered files are ordered so that of one key a later file holds the larger sequence number; None where that is
not certain, and records must be compared by their own sequence numbers. Source: `MergeTreeWriter` (numbers grow per
bucket).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from paimon.domain.manifest.entries import DataFileMeta


def oldest_first(files: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...] | None:
    """The files by age, if their ranges of sequence numbers allow no doubt; else None.

    A level above 0 holds each key once, so its files may share a range; level-0 files may not.
    """
    groups: dict[tuple[int, int], list[DataFileMeta]] = defaultdict(list)
    for position, file in enumerate(files):
        groups[(file.level, 0) if file.level > 0 else (0, position)].append(file)
    spans = sorted(
        (min(f.min_sequence_number for f in group), max(f.max_sequence_number for f in group), number)
        for number, group in enumerate(groups.values())
    )
    if any(later[0] <= earlier[1] for earlier, later in pairwise(spans)):
        return None
    ordered = list(groups.values())
    return tuple(file for _, _, number in spans for file in ordered[number])
