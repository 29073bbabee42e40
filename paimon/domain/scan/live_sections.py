"""Which files of a merge tree a value predicate leaves.

Law: leaving out never changes a merged row that is selected. A file alone in its section is left out if no row of it
can match; a section that is merged only as a whole, and only where the merged row is one of the stored ones. Source:
`KeyValueFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from paimon.domain.lsm.sorted_run import Section, SortedRun

KEEPS_ROWS = frozenset({"deduplicate", "first-row"})
"""Engines whose merged rows are stored rows, so that what no record has, no merged row has."""


def matching_sections(sections: Sequence[Section], matching: Collection[str], engine: str) -> tuple[Section, ...]:
    """The sections, and files of unmerged sections, that may hold a selected row.

    Parameters
    ----------
    matching : collection of str
        Names of the files with a row that may match.
    engine : str
        The merge engine.
    """
    kept: list[Section] = []
    for section in sections:
        if len(section) == 1:
            files = tuple(f for f in section[0].files if f.file_name in matching)
            if files:
                kept.append((SortedRun(files),))
        elif engine not in KEEPS_ROWS or any(f.file_name in matching for run in section for f in run.files):
            kept.append(section)
    return tuple(kept)
