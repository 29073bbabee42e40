"""Find out whether the stored rows of a table are merged, so that each file can be read on its own.

Options that change how rows of a key are merged may change only then: every other file would be read in another way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paimon.domain.errors import InvalidRequest
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import find_deletion_files, read_data_manifests, read_live_columns
from paimon.operations.table_context import TableContext


def check_rows_merged(context: TableContext, snapshot: Snapshot, options: Sequence[str]) -> None:
    """Refuse a change of options while a bucket has unmerged rows, or rows that are marked as deleted.

    The error names the first of `options`, and the command that merges the rows.
    """
    has_vectors = any(find_deletion_files(context, snapshot).values())
    if has_vectors or (context.schema.primary_keys and _has_unmerged_files(context, snapshot)):
        name = context.table.table_name
        raise InvalidRequest(
            f"Option {options[0]!r} changes how the rows of table {name!r} are merged, and some are not merged yet",
            subject=options[0],
            hint=f"run CALL sys.compact('{name}'), or compact(full=True), while no other process writes",
        )


def _has_unmerged_files(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether a bucket has files on level 0, or on several levels."""
    live = read_live_columns(context, read_data_manifests(context, snapshot))
    levels = live.number("_LEVEL")
    buckets = np.column_stack([live.partitions, live.buckets])
    of_levels = np.unique(np.column_stack([buckets, levels]), axis=0)
    return bool((levels == 0).any()) or len(of_levels) > len(np.unique(buckets, axis=0))
