"""Select adjacent files of an ordered append bucket that a writer compacts after it wrote.

Invariant: The selected files are adjacent in sequence numbers, so their rows keep their order. A writer does not
reconsider a file that it skipped.
Source: `BucketedAppendCompactManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from attrs import field, frozen

from paimon.domain.maintenance.small_files import Pack
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

_MIN_FULL_FILES = 3
"""A full compaction of fewer files costs more than it saves."""


def _sort_files(files: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number, f.file_name)))


@frozen
class WindowRules:
    """Rules for the selection of adjacent files to compact."""

    # how many adjacent files to compact; files that reach 2 * `target_bytes` together drop the first one
    min_files: int
    # the size that files should have
    target_bytes: int
    # a file is small below this size
    small_bytes: int
    # whether a full compaction also rewrites files that could stay
    rewrite_all: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> WindowRules:
        """Return the rules of an append table."""
        target = options.target_file_size_bytes(False)
        return cls(
            options.compaction_min_file_num,
            target,
            int(target * options.compaction_small_file_ratio),
            options.compaction_force_rewrite_all_files,
        )


@frozen
class Candidates:
    """The files of a bucket that a writer can still compact, in the order of their rows."""

    files: tuple[DataFileMeta, ...] = field(converter=_sort_files, default=())

    def pick_window(self, rules: WindowRules) -> tuple[Pack, Candidates]:
        """Return the adjacent files to compact now, empty if no compaction is due, and the remaining candidates."""
        window: deque[DataFileMeta] = deque()
        size = 0
        for position, file in enumerate(self.files):
            window.append(file)
            size += file.file_size
            if len(window) >= rules.min_files:
                return tuple(window), Candidates(self.files[position + 1 :])
            if size >= 2 * rules.target_bytes:
                size -= window.popleft().file_size
        return (), Candidates(window)

    def pick_full(self, rules: WindowRules, marked: Collection[str] = ()) -> tuple[Pack, Candidates]:
        """Return the files of a full compaction, empty if none is due, and the remaining candidates.

        The files are all from the first small one, if most of them are small. Files with deletion vectors (`marked` has
        their names) are always rewritten.
        """
        if rules.rewrite_all and self.files:
            return self.files, Candidates()
        any_marked = any(f.file_name in marked for f in self.files)
        if len(self.files) < _MIN_FULL_FILES and not any_marked:
            return (), self
        small = [f.file_size < rules.small_bytes for f in self.files]
        wanted = [s or f.file_name in marked for s, f in zip(small, self.files, strict=True)]
        start = wanted.index(True) if True in wanted else len(wanted)
        rest = self.files[start:]
        worth = len(rest) >= _MIN_FULL_FILES and 2 * sum(small[start:]) > len(rest)
        return (rest if worth or any_marked else ()), Candidates()
