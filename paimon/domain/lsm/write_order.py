"""Decide whether the age of files alone shows which of two records of a key is newer.

Invariant: in the returned order, of two records with the same key the one in the later file has the larger sequence
number. Where that is not certain, records must be compared by their own sequence numbers.

Source: `MergeTreeWriter` (sequence numbers ascend within a bucket).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from paimon.domain.manifest.entries import DataFileMeta


def sort_oldest_first(files: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...] | None:
    """Return the files from oldest to newest; None if numbers overlap in a way that levels do not explain."""
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
