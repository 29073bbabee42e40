"""Which live files of the base a conflict check must look at, found over columns.

Law: `check_conflicts` answers the same for these files as for all live files of the partitions; tables of many files
then cost a commit no more than a few passes over columns.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.entries import Change
from paimon.domain.manifest.columns import EntryColumns, Integers, Mask


def may_conflict(live: EntryColumns, change: Change, keyed: bool) -> Mask:
    """Marks files named by the change or its deletion vectors, one of each (partition, bucket count), and, where
    `keyed`, files above level 0 of the buckets that change."""
    position = {row: i for i, row in enumerate(live.partition_rows)}
    touched = [position[p] for p in change.partitions if p in position]
    within: Mask = np.isin(live.partitions, np.array(touched, dtype=np.int64))
    vectors = (r.data_file for e in change.index for r in e.deletion_vectors or ())
    names = pa.array(sorted({*(e.file.file_name for e in change.entries), *vectors}), pa.string())
    found: Mask = pc.is_in(live.files.field("_FILE_NAME"), names).to_numpy(zero_copy_only=False).astype(bool)
    found = found | _first_of_each(_pairs(live.partitions, live.total_buckets))
    if keyed:
        changed = {(position[e.partition], e.bucket) for e in change.entries if e.partition in position}
        wanted = np.array(sorted(changed), dtype=np.int64).reshape(-1, 2)
        codes = _pairs(live.partitions, live.buckets)
        found = found | ((live.number("_LEVEL") >= 1) & np.isin(codes, _pairs(wanted[:, 0], wanted[:, 1])))
    return within & found


def _pairs(first: Integers, second: Integers) -> Integers:
    """Two numbers as one; the second lies in 32 bits with its sign."""
    codes: Integers = (first << 33) + (second + (1 << 32))
    return codes


def _first_of_each(codes: Integers) -> Mask:
    first = np.zeros(len(codes), dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first
