"""Combine several steps of one writer in one bucket: the live files after them, and two compactions as one.

Invariant: Two consecutive compactions become one, from the files before the first to the files after the second. A
file that only the first one wrote and the second one read is dropped. A file that only changed its level stays.
Source: `MergeTreeWriter.updateCompactResult`, `Levels.update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.commit.message import CompactIncrement, DataIncrement
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry

LiveFiles = Mapping[str, DataFileMeta]
"""The live files of one bucket by name."""


def files_after(files: LiveFiles, data: DataIncrement, compact: CompactIncrement) -> dict[str, DataFileMeta]:
    """Return the live files of a bucket after a write and the compaction that follows it."""
    removed = {f.file_name for f in data.deleted_files}
    found = {name: f for name, f in files.items() if name not in removed} | {f.file_name: f for f in data.new_files}
    removed = {f.file_name for f in compact.compact_before}
    return {name: f for name, f in found.items() if name not in removed} | {
        f.file_name: f for f in compact.compact_after
    }


def join_compactions(
    first: CompactIncrement, second: CompactIncrement
) -> tuple[CompactIncrement, tuple[DataFileMeta, ...]]:
    """Combine consecutive compactions of a bucket; also return intermediate files, which the caller deletes."""
    intermediate = {f.file_name for f in first.compact_after}
    before = {f.file_name: f for f in first.compact_before}
    after = {f.file_name: f for f in first.compact_after}
    kept = {f.file_name for f in second.compact_after}
    dropped: list[DataFileMeta] = []
    for file in second.compact_before:
        name = file.file_name
        if name not in intermediate:
            before.setdefault(name, file)
            continue
        after.pop(name)
        if name not in before and name not in kept:
            dropped.append(file)
    after |= {f.file_name: f for f in second.compact_after}
    increment = CompactIncrement(
        before.values(),
        after.values(),
        (*first.changelog_files, *second.changelog_files),
        *_join_index_files(first, second),
        dict.fromkeys([*first.looked_up, *(name for name in second.looked_up if name not in intermediate)]),
        first.drops_deletes or second.drops_deletes,
    )
    return increment, tuple(dropped)


def as_compaction(data: DataIncrement, compact: CompactIncrement) -> tuple[CompactIncrement, tuple[DataFileMeta, ...]]:
    """Return a write and the compaction after it as one compaction: the write only moved rows of the table.

    So a compaction moves postponed rows to real buckets. `data` only adds files. Also return the written files that
    the compaction replaced, which the caller deletes.
    """
    written = CompactIncrement(compact_after=data.new_files, changelog_files=data.changelog_files)
    return join_compactions(written, compact)


def _join_index_files(
    first: CompactIncrement, second: CompactIncrement
) -> tuple[Iterable[IndexManifestEntry], Iterable[IndexManifestEntry]]:
    """Return the added and the deleted index files, without those that the first adds and the second deletes."""
    made = {e.file_name for e in first.new_index_files}
    removed = {e.file_name for e in second.deleted_index_files}
    added = [e for e in first.new_index_files if e.file_name not in removed] + list(second.new_index_files)
    deleted = [*first.deleted_index_files, *(e for e in second.deleted_index_files if e.file_name not in made)]
    return added, deleted
