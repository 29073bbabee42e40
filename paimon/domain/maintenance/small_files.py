"""Which files of an append table are put together: small ones, and those of which many rows are deleted.

Law: each file is in at most one pack; where rows have an order, a pack is a run of neighbours; files whose deletion
vectors lie in one index file are taken together, so that it is written anew once. Source: `AppendCompactCoordinator`,
`BucketedAppendCompactManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import frozen

from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry
from paimon.domain.options.table_options import TableOptions

Pack = tuple[DataFileMeta, ...]
"""Files that become one, or few, in this order."""


@frozen
class Marked:
    """A file with a deletion vector: the index file that holds it, and how many rows it names (None: unknown)."""

    index_file: str
    deleted_rows: int | None


def marked_files(held: Iterable[IndexManifestEntry]) -> Mapping[str, Marked]:
    """The data files whose vectors these index files hold."""
    return {r.data_file: Marked(e.file_name, r.cardinality) for e in held for r in e.deletion_vectors or ()}


@frozen
class PackRules:
    """When files are packed.

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
    delete_ratio : float
        Files are candidates of which a larger part is deleted.
    """

    target_bytes: int
    small_bytes: int
    open_cost_bytes: int
    min_files: int
    ordered: bool
    delete_ratio: float = 1.0

    @classmethod
    def of(cls, options: TableOptions, full: bool) -> PackRules:
        """The rules of an append table; a full compaction packs whatever can be packed, and takes deleted rows out."""
        target = options.target_file_size_bytes(False)
        return cls(
            target_bytes=target,
            small_bytes=int(target * options.compaction_small_file_ratio),
            open_cost_bytes=options.split_open_file_cost_bytes,
            min_files=2 if full else max(2, options.compaction_min_file_num),
            ordered=options.bucket != -1 and options.bucket_append_ordered,
            delete_ratio=0.0 if full else options.compaction_delete_ratio_threshold,
        )

    def is_worn(self, file: DataFileMeta, marked: Marked | None) -> bool:
        """Whether so many rows of a file are deleted that it is rewritten for that alone."""
        if marked is None:
            return False
        return marked.deleted_rows is None or marked.deleted_rows > file.row_count * self.delete_ratio


_NONE: Mapping[str, Marked] = {}


def packs(
    files: Sequence[DataFileMeta], rules: PackRules, marked: Mapping[str, Marked] = _NONE
) -> tuple[Pack, ...]:
    """The packs of one bucket's files; `marked` are those that have deletion vectors, by name."""
    worn = {f.file_name for f in files if rules.is_worn(f, marked.get(f.file_name))}
    if rules.ordered:
        return _of_neighbours(files, rules, worn)
    candidates = [f for f in files if f.file_size < rules.small_bytes or f.file_name in worn]
    with_vector = [f for f in candidates if f.file_name in marked]
    without = [f for f in candidates if f.file_name not in marked]
    return (*_of_groups(with_vector, rules, marked), *_of_any(without, rules))


def _of_groups(files: Sequence[DataFileMeta], rules: PackRules, marked: Mapping[str, Marked]) -> tuple[Pack, ...]:
    """Files by the index file of their vectors, smallest group first; all of them are taken."""
    groups: dict[str, list[DataFileMeta]] = {}
    for file in files:
        groups.setdefault(marked[file.file_name].index_file, []).append(file)
    ordered = sorted(groups.values(), key=lambda g: (sum(f.file_size for f in g), g[0].file_name))
    full, rest = _binned(ordered, rules)
    return (*full, tuple(rest)) if rest else tuple(full)


def _of_any(files: Sequence[DataFileMeta], rules: PackRules) -> tuple[Pack, ...]:
    """Smallest first."""
    ordered = sorted(files, key=lambda f: (f.file_size, f.min_sequence_number, f.file_name))
    full, rest = _binned([[f] for f in ordered], rules)
    return (*full, tuple(rest)) if len(rest) >= rules.min_files else tuple(full)


def _binned(groups: Iterable[list[DataFileMeta]], rules: PackRules) -> tuple[list[Pack], list[DataFileMeta]]:
    """Full packs, and what is left: a file weighs its bytes and what opening it costs, a full pack twice the target."""
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


def _of_neighbours(files: Sequence[DataFileMeta], rules: PackRules, worn: Collection[str]) -> tuple[Pack, ...]:
    """Runs of small and worn files; a pack is full at the target, and a large file ends it."""
    found: list[Pack] = []
    pack: list[DataFileMeta] = []
    for file in sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number)):
        taken = file.file_size < rules.small_bytes or file.file_name in worn
        if taken:
            pack.append(file)
        if not taken or sum(f.file_size for f in pack) >= rules.target_bytes:
            found += _worthwhile(pack, rules, worn, full=taken)
            pack = []
    return (*found, *_worthwhile(pack, rules, worn, full=False))


def _worthwhile(pack: list[DataFileMeta], rules: PackRules, worn: Collection[str], full: bool) -> list[Pack]:
    if any(f.file_name in worn for f in pack):
        return [tuple(pack)]
    return [tuple(pack)] if len(pack) > 1 and (full or len(pack) >= rules.min_files) else []
