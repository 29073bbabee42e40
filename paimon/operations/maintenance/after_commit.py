"""Run the maintenance that follows a commit: automatic tags, then expiry.

Invariant: the order is Java's: create due tags; expire tags, partitions and consumers; then expire snapshots and
changelogs. A `write-only` table leaves all of this to other processes. A failure never makes the commit a failure: the
rows stay committed.

Source: `TableCommitImpl.maintain`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.snapshot_expiry import has_decoupled_changelogs
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.expire.expire_changelogs import expire_changelogs
from paimon.operations.expire.expire_partitions import expire_partitions_if_due
from paimon.operations.expire.expire_snapshots import expire_snapshots
from paimon.operations.metadata.storage_time import OlderThan
from paimon.operations.refs.consumers import expire_consumers
from paimon.operations.refs.tags import create_batch_tag, create_due_tags, expire_tags
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import Stopped


def run_after_commit(
    context: TableContext, snapshot_ids: Sequence[int], identifier: int = BATCH_COMMIT_IDENTIFIER
) -> None:
    """Run the maintenance that follows a commit; if it fails, a `RuntimeWarning` says why.

    `snapshot_ids` are the snapshots of the commit, ascending; if there are none, nothing is done. Batch commits,
    identified by `identifier`, create tags that streaming commits do not.
    """
    if not snapshot_ids or context.options.write_only:
        return
    try:
        _run_steps(context, snapshot_ids[-1], identifier)
    except Stopped:  # the next commit goes on
        return
    except PaimonError as error:
        context.engine.observer.count("maintenance.failed", 1)
        warnings.warn(
            f"Table {context.table.table_name!r}: the rows are committed, but maintenance afterwards failed: {error}",
            RuntimeWarning,
            stacklevel=3,
        )


def _run_steps(context: TableContext, snapshot_id: int, commit_identifier: int) -> None:
    options = context.options
    create_due_tags(context)
    if commit_identifier == BATCH_COMMIT_IDENTIFIER:
        create_batch_tag(context, snapshot_id)
    if options.tag_time_expire_enabled:
        expire_tags(context)
    expire_partitions_if_due(context, snapshot_id)
    if options.consumer_expiration_millis is not None:
        expire_consumers(context, OlderThan(options.consumer_expiration_millis))
    expire_snapshots(context, known_latest=snapshot_id)
    if has_decoupled_changelogs(options):
        expire_changelogs(context)
