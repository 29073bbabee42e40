"""The sorted runs of one bucket in the order in which compaction takes them, and the unit that it takes.

Invariant: each level-0 file is a run of its own, the newest first. Each level above is one run.

Source: `Levels`, `LevelSortedRun`, `CompactUnit`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta


def _files(values: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(values)


@frozen
class LevelRun:
    """One sorted run: a file of level 0, or all files of a higher level."""

    level: int
    files: tuple[DataFileMeta, ...] = field(converter=_files)

    @property
    def size_bytes(self) -> int:
        """The size of its files in bytes."""
        return sum(f.file_size for f in self.files)


@frozen
class MergeTree:
    """All runs of a bucket, the newest first, and the number of the top level."""

    runs: tuple[LevelRun, ...]
    top_level: int

    @classmethod
    def of(cls, files: Iterable[DataFileMeta], levels: int) -> MergeTree:
        """Return the tree of the live files of a bucket, in any order.

        `levels` is the option `num-levels`; the tree has more levels if files are on higher ones.
        """
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in files:
            by_level.setdefault(file.level, []).append(file)
        newest_first = [LevelRun(0, (f,)) for f in sorted(by_level.pop(0, []), key=_age)]
        above = [LevelRun(level, by_level[level]) for level in sorted(by_level)]
        return cls((*newest_first, *above), max([levels - 1, *by_level]))

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """All files, run after run."""
        return tuple(f for run in self.runs for f in run.files)


def _age(file: DataFileMeta) -> tuple[int, int, int, str]:
    """Return the sort key of level-0 files: the newest first."""
    return -file.max_sequence_number, file.min_sequence_number, file.creation_time_millis or 0, file.file_name


@frozen
class CompactUnit:
    """Files to compact together, and the level of the result.

    Where `one_by_one`, each file is rewritten separately and stays on its level.
    """

    output_level: int
    files: tuple[DataFileMeta, ...] = field(converter=_files)
    one_by_one: bool = False
