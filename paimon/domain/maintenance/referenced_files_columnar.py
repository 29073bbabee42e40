"""Find the files that are live in any of several states of a table; every deletion of files depends on it.

The count keeps one number for each file, and each state recounts only the manifests that differ from the state before.

Invariant: A file is live in a state if its ADDs outnumber its DELETEs in the manifests of the state. This is true for
any history with tags, branches and rollbacks. `ever_live` equals the reference.
Source: `OrphanFilesClean`, `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.manifest.entries import FileKind
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask


@frozen(eq=False)
class Mentions:
    """The entries of one manifest that name given files."""

    positions: Integers
    # 1 for an ADD, -1 for a DELETE
    signs: Integers


def find_mentions(columns: EntryColumns, counts: Sequence[int], file_names: pa.Array) -> list[Mentions]:
    """Find the entries that name given files; `counts` are the numbers of entries of the manifests."""
    signs = np.where(columns.kinds == int(FileKind.ADD), 1, -1)
    extra = columns.files.field("_EXTRA_FILES")
    parents: Integers = pc.list_parent_indices(extra).to_numpy(zero_copy_only=False).astype(np.int64)
    names = pa.concat_arrays([columns.files.field("_FILE_NAME"), extra.flatten()])
    found: Integers = pc.index_in(names, file_names).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.concatenate([np.arange(len(columns)), parents])
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
