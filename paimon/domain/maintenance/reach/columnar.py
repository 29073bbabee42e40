"""Which files any of several states of a table has: the question behind everything that deletes.

Law: a file is live in a state where its ADDs outnumber its DELETEs over the state's manifests, whatever history led
there (tags, branches, rollbacks); `ever_live` equals the reference. It holds one number for each file asked about, and
counts again only what differs from the state before. Source: `OrphanFilesClean`, `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.manifest.columns import EntryColumns, Integers, Mask
from paimon.domain.manifest.entries import FileKind


@frozen(eq=False)
class Mentions:
    """What one manifest says of the files asked about: their positions, with 1 for an ADD and -1 for a DELETE."""

    positions: Integers
    signs: Integers


def mentions(columns: EntryColumns, counts: Sequence[int], asked: pa.Array) -> list[Mentions]:
    """What manifests read together say of the files of these names, extra files among them; `counts` are their entries.
    """
    signs = np.where(columns.kinds == int(FileKind.ADD), 1, -1)
    extra = columns.files.field("_EXTRA_FILES")
    parents: Integers = pc.list_parent_indices(extra).to_numpy(zero_copy_only=False).astype(np.int64)
    names = pa.concat_arrays([columns.files.field("_FILE_NAME"), extra.flatten()])
    found: Integers = pc.index_in(names, asked).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.concatenate([np.arange(len(columns)), parents])
    wanted = np.flatnonzero(found >= 0)
    wanted = wanted[np.argsort(rows[wanted], kind="stable")]
    cuts = np.searchsorted(rows[wanted], np.cumsum(counts)[:-1])
    return [Mentions(found[part], signs[rows[part]]) for part in np.split(wanted, cuts)]


def ever_live(states: Iterable[frozenset[str]], manifests: Mapping[str, Mentions], asked: int) -> Mask:
    """Marks, of `asked` files, those that at least one state has.

    Parameters
    ----------
    states : iterable of frozenset of str
        The manifests of each state; fastest where neighbours have most of them in common.
    manifests : mapping
        What each says; one that is missing says nothing.
    """
    found: Mask = np.zeros(asked, dtype=bool)
    count: npt.NDArray[np.int64] = np.zeros(asked, dtype=np.int64)
    before: frozenset[str] = frozenset()
    for state in states:
        changed = [(manifests[m], 1) for m in state - before if m in manifests]
        changed += [(manifests[m], -1) for m in before - state if m in manifests]
        for said, sign in changed:
            np.add.at(count, said.positions, said.signs * sign)
        for said, _ in changed:
            found[said.positions] |= count[said.positions] > 0
        before = state
    return found
