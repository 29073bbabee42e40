"""What several steps of one writer in one bucket come to: files after them, and compactions told as one.

Law: a compaction of what another one just made is told by what was there before the first and what is there after the
second; a file that only stood between them belongs to nobody, one that merely changed its level stays. Source:
`MergeTreeWriter.updateCompactResult`, `Levels.update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.commit.message import CompactIncrement, DataIncrement
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry

LiveFiles = Mapping[str, DataFileMeta]
"""The files of one bucket by name."""


def files_after(files: LiveFiles, data: DataIncrement, compact: CompactIncrement) -> dict[str, DataFileMeta]:
    """The files of a bucket after something was written, and then compacted."""
    gone = {f.file_name for f in data.deleted_files}
    found = {name: f for name, f in files.items() if name not in gone} | {f.file_name: f for f in data.new_files}
    gone = {f.file_name for f in compact.compact_before}
    return {name: f for name, f in found.items() if name not in gone} | {f.file_name: f for f in compact.compact_after}


def joined(first: CompactIncrement, second: CompactIncrement) -> tuple[CompactIncrement, tuple[str, ...]]:
    """Two compactions of one bucket as one, and the names of the data files between them that nobody needs."""
    between = {f.file_name for f in first.compact_after}
    before = {f.file_name: f for f in first.compact_before}
    after = {f.file_name: f for f in first.compact_after}
    kept = {f.file_name for f in second.compact_after}
    dropped: list[str] = []
    for file in second.compact_before:
        name = file.file_name
        if name not in between:
            before.setdefault(name, file)
            continue
        after.pop(name)
        if name not in before and name not in kept:
            dropped.append(name)
    after |= {f.file_name: f for f in second.compact_after}
    increment = CompactIncrement(
        before.values(),
        after.values(),
        (*first.changelog_files, *second.changelog_files),
        *_index(first, second),
    )
    return increment, tuple(dropped)


def _index(
    first: CompactIncrement, second: CompactIncrement
) -> tuple[Iterable[IndexManifestEntry], Iterable[IndexManifestEntry]]:
    """Index files added and taken away: one that the second takes from the first is neither."""
    made = {e.file_name for e in first.new_index_files}
    gone = {e.file_name for e in second.deleted_index_files}
    added = [e for e in first.new_index_files if e.file_name not in gone] + list(second.new_index_files)
    taken = [*first.deleted_index_files, *(e for e in second.deleted_index_files if e.file_name not in made)]
    return added, taken
