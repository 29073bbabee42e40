"""Select over columns the live files of the base that a conflict check needs.

For tables with many files, a commit then costs only a few passes over columns.

Invariant: `check_conflicts` has the same result for these files as for all live files of the partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.commit.entries import Change
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask


def may_conflict(live: EntryColumns, change: Change, keyed: bool) -> Mask:
    """Mark the files that a conflict check needs.

    These are the files that the change or its deletion vectors name, and of the other files one for each partition and
    bucket count. In a primary-key table they also include the files above level 0 in changed buckets.
    """
    position = {row: i for i, row in enumerate(live.partition_rows)}
    touched = [position[p] for p in change.partitions if p in position]
    within: Mask = np.isin(live.partitions, np.array(touched, dtype=np.int64))
    vectors = (r.data_file for e in change.index for r in e.deletion_vectors or ())
    names = pa.array(sorted({*(e.file.file_name for e in change.entries), *vectors}), pa.string())
    found: Mask = np.array(pc.is_in(live.files.field("_FILE_NAME"), names), dtype=bool)
    unnamed = np.flatnonzero(~found)
    found[unnamed[_first_of_each(_to_codes(live.partitions, live.total_buckets)[unnamed])]] = True
    if keyed:
        found = found | _mask_above_level_0(live, change, position)
    return within & found


def _mask_above_level_0(live: EntryColumns, change: Change, position: Mapping[bytes, int]) -> Mask:
    """Mark the files above level 0 in the buckets that the change names."""
    buckets = {(position[e.partition], e.bucket) for e in change.entries if e.partition in position}
    wanted = np.array(sorted(buckets), dtype=np.int64).reshape(-1, 2)
    in_buckets = np.isin(_to_codes(live.partitions, live.buckets), _to_codes(wanted[:, 0], wanted[:, 1]))
    mask: Mask = (live.number("_LEVEL") >= 1) & in_buckets
    return mask


def _to_codes(first: Integers, second: Integers) -> Integers:
    """Return two numbers as one; the second is a signed 32-bit integer."""
    codes: Integers = (first << 33) + (second + (1 << 32))
    return codes


def _first_of_each(codes: Integers) -> Mask:
    first = np.zeros(len(codes), dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first
