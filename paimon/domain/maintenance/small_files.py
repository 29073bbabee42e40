"""Select the files of an append table to compact: small files, files with many deleted rows, and windows of a writer.

Invariant: Each file is in at most one pack. If rows have an order, the files of a pack are adjacent. Files whose
deletion vectors are in the same index file are compacted together, so that it is rewritten once.
A writer does not reconsider a file that it skipped (`Candidates`).
Source: `AppendCompactCoordinator`, `BucketedAppendCompactManager`.
"""

# Append tables have no keys, so a compaction only joins files. What may be joined depends on the order of the rows.
# The sizes below are in MiB, with the defaults: files should have 256, files below 179 (70 %) are small, a file counts
# 4 more than its size, and a pack that is not full needs five files.
#
# Rows without an order (`bucket = -1`): the smallest files first, because a rewritten byte then saves most files. A
# pack is full at twice the target, so that it becomes two files of the target size.
#
#     files      90  1  200  70  2  100  120  3  150  160      200 stays
#     packs      [1 2 3 70 90 100 120 150] = 536 + 8 * 4       full; [160] remains, which is fewer than five files
#
# Files with deletion vectors are packed apart, in groups with the same index file. The compaction removes their
# vectors, so the index file is written again; with the whole group that happens once. Such a pack may have one file.
#
# Rows with an order (fixed buckets, `bucket-append-ordered`): only neighbours by sequence number can be joined. A large
# file ends a pack, and a pack is full at the target:
#
#     files      10  20  200  30  40  50  60  90  70           in the order of their rows
#     packs      [30 40 50 60 90] = 270                        10 and 20 are fewer than five files, and so is 70
#
# Rows whose columns are in several files (data evolution): the files of neighbouring rows become one file, which keeps
# the ids of the rows, so deleted rows stay in it. A large file that has all columns of its rows ends a pack.
#
# But for these, a file with many deleted rows (`compaction.delete-ratio-threshold`) is packed whatever its size. A full
# compaction packs two files already, and each file with a deleted row.
#
# A writer that compacts its own bucket while it writes cannot look at all files after each flush. It keeps
# `Candidates`: the files from which it may still choose. `pick_window` takes the first five neighbours; a window that
# reaches twice the target before that drops its first file for good.
#
#     candidates     300  250  10  20  30  40  50      300 + 250 reach 512: 300 is dropped
#     window         [250  10  20  30  40]             the next candidates begin with 50

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import field, frozen

from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.scan.row_id_groups import first_row_id_of

Pack = tuple[DataFileMeta, ...]
"""Files that are compacted into one or a few files, in this order."""


@frozen
class MarkedFile:
    """The deletion vector of a file: its index file, and the number of deleted rows (None if unknown)."""

    index_file: str
    deleted_rows: int | None


def marked_files(index_files: Iterable[IndexManifestEntry]) -> Mapping[str, MarkedFile]:
    """Return the deletion vectors in these index files by name of data file."""
    return {r.data_file: MarkedFile(e.file_name, r.cardinality) for e in index_files for r in e.deletion_vectors or ()}


@frozen
class PackRules:
    """Rules for packing the files of an append table that are compacted together."""

    # the size that files should have
    target_bytes: int
    # a file is compacted below this size
    small_bytes: int
    # the cost of opening a file, added to its size
    open_cost_bytes: int
    # the smallest number of files in a pack that is not full
    min_files: int
    # whether only files with adjacent sequence numbers can be packed
    ordered: bool
    # a file with a larger share of deleted rows is compacted
    delete_ratio: float = 1.0
    # whether files that could stay are compacted, too
    rewrite_all: bool = False

    @classmethod
    def of(cls, options: TableOptions, full: bool) -> PackRules:
        """Return the rules of an append table. A full compaction packs all possible files and removes deleted rows."""
        target = options.target_file_size_bytes(False)
        rewrite_all = full and options.compaction_force_rewrite_all_files
        least = 1 if rewrite_all else 2
        return cls(
            target_bytes=target,
            small_bytes=int(target * options.compaction_small_file_ratio),
            open_cost_bytes=options.split_open_file_cost_bytes,
            min_files=least if full else max(2, options.compaction_min_file_num),
            ordered=options.bucket != -1 and options.bucket_append_ordered,
            delete_ratio=0.0 if full else options.compaction_delete_ratio_threshold,
            rewrite_all=rewrite_all,
        )

    def needs_rewrite(self, file: DataFileMeta, marked: MarkedFile | None) -> bool:
        """Return whether the share of deleted rows alone is a reason to rewrite the file."""
        if marked is None:
            return False
        return marked.deleted_rows is None or marked.deleted_rows > file.row_count * self.delete_ratio


_NO_VECTORS: Mapping[str, MarkedFile] = {}


def pack_small_files(
    files: Sequence[DataFileMeta], rules: PackRules, marked: Mapping[str, MarkedFile] = _NO_VECTORS
) -> tuple[Pack, ...]:
    """Return the packs of files of one bucket to compact; `marked` has the deletion vectors by name of data file."""
    worn = {f.file_name for f in files if rules.rewrite_all or rules.needs_rewrite(f, marked.get(f.file_name))}
    if rules.ordered:
        return _pack_adjacent(files, rules, worn)
    candidates = [f for f in files if f.file_size < rules.small_bytes or f.file_name in worn]
    with_vector = [f for f in candidates if f.file_name in marked]
    without = [f for f in candidates if f.file_name not in marked]
    return (*_pack_groups(with_vector, rules, marked), *_pack_smallest_first(without, rules))


def pack_row_groups(groups: Iterable[Pack], rules: PackRules) -> tuple[Pack, ...]:
    """Return packs of neighbouring groups of files, in ascending order of row ids; an empty group ends a pack.

    Each group has the files with columns of the same rows. A pack of several groups stays within the target size.
    Source: `DataEvolutionCompactCoordinator`.
    """
    packs: list[list[DataFileMeta]] = [[]]
    size, end = 0, -1
    for group in groups:
        own = sum(f.file_size for f in group)
        is_done = len(group) == 1 and own >= rules.small_bytes and not rules.rewrite_all
        if not group or is_done or first_row_id_of(group[0]) != end or size + own > rules.target_bytes:
            packs.append([])
            size = 0
        if group and not is_done:
            packs[-1] += group
            size, end = size + own, first_row_id_of(group[0]) + group[0].row_count
    return tuple(tuple(pack) for pack in packs if len(pack) >= rules.min_files)


def _pack_groups(files: Sequence[DataFileMeta], rules: PackRules, marked: Mapping[str, MarkedFile]) -> tuple[Pack, ...]:
    """Pack files by the index file of their deletion vectors, smallest group first. All files are packed."""
    groups: dict[str, list[DataFileMeta]] = {}
    for file in files:
        groups.setdefault(marked[file.file_name].index_file, []).append(file)
    ordered = sorted(groups.values(), key=lambda g: (sum(f.file_size for f in g), g[0].file_name))
    full, rest = _pack_files(ordered, rules)
    return (*full, tuple(rest)) if rest else tuple(full)


def _pack_smallest_first(files: Sequence[DataFileMeta], rules: PackRules) -> tuple[Pack, ...]:
    """Pack files without an order, smallest first."""
    ordered = sorted(files, key=lambda f: (f.file_size, f.min_sequence_number, f.file_name))
    full, rest = _pack_files([[f] for f in ordered], rules)
    return (*full, tuple(rest)) if len(rest) >= rules.min_files else tuple(full)


def _pack_files(groups: Iterable[list[DataFileMeta]], rules: PackRules) -> tuple[list[Pack], list[DataFileMeta]]:
    """Return packs of twice the target size, opening costs included, and the remaining files."""
    found: list[Pack] = []
    pack: list[DataFileMeta] = []
    weight = 0
    for group in groups:
        pack += group
        weight += sum(f.file_size + rules.open_cost_bytes for f in group)
        if len(pack) > 1 and weight >= 2 * rules.target_bytes:
            found.append(tuple(pack))
            pack, weight = [], 0
    return found, pack


def _pack_adjacent(files: Sequence[DataFileMeta], rules: PackRules, worn: Collection[str]) -> tuple[Pack, ...]:
    """Pack adjacent small and worn files. A pack is full at the target size, and a large file ends it."""
    found: list[Pack] = []
    pack: list[DataFileMeta] = []
    for file in sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number)):
        is_candidate = file.file_size < rules.small_bytes or file.file_name in worn
        if is_candidate:
            pack.append(file)
        if not is_candidate or sum(f.file_size for f in pack) >= rules.target_bytes:
            found += _keep_worthwhile(pack, rules, worn, full=is_candidate)
            pack = []
    return (*found, *_keep_worthwhile(pack, rules, worn, full=False))


def _keep_worthwhile(pack: list[DataFileMeta], rules: PackRules, worn: Collection[str], full: bool) -> list[Pack]:
    if any(f.file_name in worn for f in pack):
        return [tuple(pack)]
    return [tuple(pack)] if len(pack) > 1 and (full or len(pack) >= rules.min_files) else []


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
