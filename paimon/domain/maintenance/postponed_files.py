"""Order the postponed files of a partition, so that a compaction replays their rows as they were committed.

Invariant: files of different commits are in the order of the commits. Files whose commit is not known any more come
first, by their time of creation, as Java orders the files of one writer. Source: `PostponeUtils`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paimon.domain.manifest.entries import DataFileMeta

CommitPosition = tuple[int, int]
"""The id of the snapshot that added a file, and the position of the file among those that it added."""
_BEFORE_ALL: CommitPosition = (-1, 0)


def sort_postponed_files(
    files: Sequence[DataFileMeta], positions: Mapping[str, CommitPosition]
) -> tuple[DataFileMeta, ...]:
    """Sort the postponed files of one partition by commit, oldest first; equal files keep their order.

    Files without a position belong to an expired snapshot. They come first, by time of creation.
    """

    def sort_key(file: DataFileMeta) -> tuple[CommitPosition, int]:
        """Return what orders a file: its commit, or its time of creation if the commit is not known."""
        known = positions.get(file.file_name)
        return (_BEFORE_ALL, file.creation_time_millis or 0) if known is None else (known, 0)

    return tuple(sorted(files, key=sort_key))
