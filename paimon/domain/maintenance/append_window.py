"""Which neighbours of an ordered bucket without keys a writer puts together after it has written.

Law: a pick is a run of neighbours by sequence number, so their rows keep their order; files that a pick passes over
are not looked at again by the same writer. Source: `BucketedAppendCompactManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from attrs import field, frozen

from paimon.domain.maintenance.small_files import Pack
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

_LEAST_FILES = 3
"""A full compaction of fewer files is not worth it."""


def _in_order(files: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    return tuple(sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number, f.file_name)))


@frozen
class WindowRules:
    """When neighbours are put together.

    Parameters
    ----------
    min_files : int
        So many neighbours are taken, unless they are twice the target before.
    target_bytes, small_bytes : int
        What files should have, and below what they are small.
    rewrite_all : bool
        A full compaction rewrites also what could be kept.
    """

    min_files: int
    target_bytes: int
    small_bytes: int
    rewrite_all: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> WindowRules:
        """The rules of an append table."""
        target = options.target_file_size_bytes(False)
        return cls(
            options.compaction_min_file_num,
            target,
            int(target * options.compaction_small_file_ratio),
            options.compaction_force_rewrite_all_files,
        )


@frozen
class Candidates:
    """Files of a bucket that a writer may still put together, in the order of their rows."""

    files: tuple[DataFileMeta, ...] = field(converter=_in_order, default=())

    def picked(self, rules: WindowRules) -> tuple[Pack, Candidates]:
        """The neighbours to put together now (none: nothing is worth it), and what is left for later."""
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

    def picked_full(self, rules: WindowRules, marked: Collection[str] = ()) -> tuple[Pack, Candidates]:
        """What a full compaction puts together: all from the first small file on, where more are small than not.

        Files with deletion vectors, whose names are `marked`, are rewritten in any case.
        """
        if rules.rewrite_all and self.files:
            return self.files, Candidates()
        any_marked = any(f.file_name in marked for f in self.files)
        if len(self.files) < _LEAST_FILES and not any_marked:
            return (), self
        small = [f.file_size < rules.small_bytes for f in self.files]
        wanted = [s or f.file_name in marked for s, f in zip(small, self.files, strict=True)]
        start = wanted.index(True) if True in wanted else len(wanted)
        rest = self.files[start:]
        worth = len(rest) >= _LEAST_FILES and 2 * sum(small[start:]) > len(rest)
        return (rest if worth or any_marked else ()), Candidates()
