"""Which small files of an append table are put together.

Law: each file is in at most one pack; where rows have an order, a pack is a run of neighbours. Source:
`AppendCompactCoordinator`, `BucketedAppendCompactManager`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions

Pack = tuple[DataFileMeta, ...]
"""Files that become one, or few, in this order."""


@frozen
class PackRules:
    """When small files are packed.

    Parameters
    ----------
    target_bytes : int
        Size that files should have.
    small_bytes : int
        Smaller files are candidates.
    open_cost_bytes : int
        What opening a file weighs beside its bytes.
    min_files : int
        Files that make a pack worthwhile which is not full.
    ordered : bool
        Only neighbours by sequence number may be packed.
    """

    target_bytes: int
    small_bytes: int
    open_cost_bytes: int
    min_files: int
    ordered: bool

    @classmethod
    def of(cls, options: TableOptions, full: bool) -> PackRules:
        """The rules of an append table; a full compaction packs whatever can be packed."""
        target = options.target_file_size_bytes(False)
        return cls(
            target_bytes=target,
            small_bytes=int(target * options.compaction_small_file_ratio),
            open_cost_bytes=options.split_open_file_cost_bytes,
            min_files=2 if full else max(2, options.compaction_min_file_num),
            ordered=options.bucket != -1 and options.bucket_append_ordered,
        )


def packs(files: Sequence[DataFileMeta], rules: PackRules) -> tuple[Pack, ...]:
    """The packs of one bucket's files."""
    return _of_neighbours(files, rules) if rules.ordered else _of_any(files, rules)


def _of_any(files: Sequence[DataFileMeta], rules: PackRules) -> tuple[Pack, ...]:
    """Smallest first; a pack is full at twice the target, each file weighing its bytes and what opening it costs."""
    small = [f for f in files if f.file_size < rules.small_bytes]
    found: list[Pack] = []
    pack: list[DataFileMeta] = []
    weight = 0
    for file in sorted(small, key=lambda f: (f.file_size, f.min_sequence_number, f.file_name)):
        pack.append(file)
        weight += file.file_size + rules.open_cost_bytes
        if len(pack) > 1 and weight >= 2 * rules.target_bytes:
            found.append(tuple(pack))
            pack, weight = [], 0
    if len(pack) >= rules.min_files:
        found.append(tuple(pack))
    return tuple(found)


def _of_neighbours(files: Sequence[DataFileMeta], rules: PackRules) -> tuple[Pack, ...]:
    """Runs of small files; a pack is full at the target, and a large file ends it."""
    found: list[Pack] = []
    pack: list[DataFileMeta] = []
    for file in sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number)):
        if file.file_size < rules.small_bytes:
            pack.append(file)
            full = sum(f.file_size for f in pack) >= rules.target_bytes
        else:
            full = False
        if full or file.file_size >= rules.small_bytes:
            if full or len(pack) >= rules.min_files:
                found.append(tuple(pack))
            pack = []
    if len(pack) >= rules.min_files:
        found.append(tuple(pack))
    return tuple(p for p in found if len(p) > 1)
