"""Find the files that are live in any of several states of a table, and where they are; deletions depend on it.

The count keeps one number for each file, and each state recounts only the manifests that differ from the state before.

Invariant: A file is live in a state if its ADDs outnumber its DELETEs in the manifests of the state. This is true for
any history with tags, branches and rollbacks. `ever_live` equals the reference.
Source: `OrphanFilesClean`, `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.manifest.checked_columns import to_integers
from paimon.domain.manifest.entries import FileKind
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.types.arrow_arrays import from_numpy


@frozen(eq=False)
class Mentions:
    """The entries of one manifest that name given files."""

    positions: Integers
    # 1 for an ADD, -1 for a DELETE
    signs: Integers

    def renumber(self, numbers: Integers) -> Mentions:
        """Return the entries of the files that have a new number, which is -1 for the others."""
        positions = numbers[self.positions]
        return Mentions(positions[positions >= 0], self.signs[positions >= 0])


@frozen(eq=False)
class NamedFiles:
    """What the entries of one manifest say about where files are; nothing else of the manifest stays in memory."""

    # for each entry: 1 for an ADD, -1 for a DELETE; its partition in `partition_rows`; its bucket; the size of its file
    signs: Integers
    partitions: Integers
    partition_rows: tuple[bytes, ...]
    buckets: Integers
    sizes: Integers
    # null if the file is in the directory of its bucket
    external_paths: pa.StringArray
    # the files of all entries, then their extra files, with the entry that names each
    names: pa.StringArray
    rows: Integers

    @classmethod
    def of(cls, columns: EntryColumns) -> NamedFiles:
        """Read the files of all entries; an invalid value raises `CorruptTable`."""
        return cls(
            _read_signs(columns).astype(np.int8),
            columns.partitions.astype(np.int32),
            columns.partition_rows,
            columns.buckets.astype(np.int32),
            columns.number("_FILE_SIZE"),
            columns.files.field("_EXTERNAL_PATH"),
            *_list_names(columns),
        )


@frozen(eq=False)
class BucketFileNames:
    """The live files of one bucket, by name."""

    partition: bytes
    bucket: int
    names: list[str]
    # bytes; -1 for extra files, whose size is not recorded
    sizes: list[int]
    # None for files in the directory of the bucket; that of the main file for extra files
    external_paths: list[str | None]


def number_names(manifests: Mapping[str, NamedFiles]) -> tuple[pa.StringArray, dict[str, Mentions]]:
    """Return the distinct names of all files, and by manifest which of them its entries name."""
    named = pa.chunked_array([m.names for m in manifests.values()], pa.string())
    encoded = named.dictionary_encode().combine_chunks()
    ends = np.cumsum([len(m.names) for m in manifests.values()])
    codes = np.split(to_integers(encoded.indices), ends[:-1]) if manifests else []
    found = {n: Mentions(c, m.signs[m.rows]) for (n, m), c in zip(manifests.items(), codes, strict=True)}
    return encoded.dictionary, found


def find_places(
    manifests: Mapping[str, NamedFiles], mentions: Mapping[str, Mentions], live: Mask
) -> Iterator[BucketFileNames]:
    """Yield the marked files by bucket; the last ADD of a file says where it is."""
    last = np.full(len(live), -1, np.int64)
    start = 0
    for found in mentions.values():
        added = np.flatnonzero(found.signs > 0)
        last[found.positions[added]] = start + added
        start += len(found.signs)
    chosen = np.sort(last[live])
    edges = np.searchsorted(chosen, np.cumsum([0, *(len(m.names) for m in manifests.values())]))
    known: dict[tuple[bytes, int], BucketFileNames] = {}
    first = 0
    for files, low, high in zip(manifests.values(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        _add_places(known, files, chosen[low:high] - first)
        first += len(files.names)
    yield from known.values()


def _add_places(known: dict[tuple[bytes, int], BucketFileNames], files: NamedFiles, at: Integers) -> None:
    rows = files.rows[at]
    order = np.lexsort((files.buckets[rows], files.partitions[rows]))
    at, rows = at[order], rows[order]
    partitions, buckets = files.partitions[rows], files.buckets[rows]
    names = files.names.take(from_numpy(at)).to_pylist()
    sizes = np.where(at < len(files.signs), files.sizes[rows], -1).tolist()
    external_paths = files.external_paths.take(from_numpy(rows)).to_pylist()
    edges = np.flatnonzero(
        np.diff(partitions, prepend=-1, append=-1) | np.diff(buckets, prepend=-9, append=-9)
    ).tolist()
    for low, high in pairwise(edges):
        key = files.partition_rows[partitions[low]], int(buckets[low])
        bucket = known.setdefault(key, BucketFileNames(*key, [], [], []))
        bucket.names.extend(names[low:high])
        bucket.sizes.extend(sizes[low:high])
        bucket.external_paths.extend(external_paths[low:high])


def _read_signs(columns: EntryColumns) -> Integers:
    return np.where(columns.kinds == int(FileKind.ADD), 1, -1)


def _list_names(columns: EntryColumns) -> tuple[pa.StringArray, Integers]:
    """Return the names of the files of all entries, then of their extra files, and the entry that names each."""
    extra = columns.files.field("_EXTRA_FILES")
    names = pa.concat_arrays([columns.files.field("_FILE_NAME"), extra.flatten()])
    return names, np.concatenate([np.arange(len(columns)), to_integers(pc.list_parent_indices(extra))])


def find_mentions(columns: EntryColumns, counts: Sequence[int], file_names: pa.Array) -> list[Mentions]:
    """Find the entries that name given files; `counts` are the numbers of entries of the manifests."""
    signs = _read_signs(columns)
    names, rows = _list_names(columns)
    found = to_integers(pc.index_in(names, file_names), -1)
    wanted = np.flatnonzero(found >= 0)
    wanted = wanted[np.argsort(rows[wanted], kind="stable")]
    cuts = np.searchsorted(rows[wanted], np.cumsum(counts)[:-1])
    return [Mentions(found[part], signs[rows[part]]) for part in np.split(wanted, cuts)]


def ever_live(states: Iterable[frozenset[str]], manifests: Mapping[str, Mentions], file_count: int) -> Mask:
    """Mark the files that are live in a state (a set of manifests); missing manifests name no file."""
    found: Mask = np.zeros(file_count, dtype=bool)
    count: npt.NDArray[np.int64] = np.zeros(file_count, dtype=np.int64)
    before: frozenset[str] = frozenset()
    for state in states:
        changed = [(manifests[m], 1) for m in state - before if m in manifests]
        changed += [(manifests[m], -1) for m in before - state if m in manifests]
        for mentioned, sign in changed:
            np.add.at(count, mentioned.positions, mentioned.signs * sign)
        for mentioned, _ in changed:
            found[mentioned.positions] |= count[mentioned.positions] > 0
        before = state
    return found
