"""Merge the manifests of a table at once, whatever the limits of its options; no file and no row changes.

Invariant: the snapshot has the same live files. If nothing can be merged, there is no snapshot.

Source: `FileStoreCommitImpl.compactManifest`.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.plan_change import Intent, SafeSnapshot
from paimon.domain.commit.request import CommitRequest
from paimon.domain.manifest.merge_plan import is_clustered, manifests_with_deletes, must_change
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.attempts import publish_change
from paimon.operations.commit.manifest_writer import build_merge_limits
from paimon.operations.metadata.manifests import read_data_manifests
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext

_ALWAYS = {"manifest.full-compaction-threshold-size": "1 b"}


@frozen
class ManifestsCompacted:
    """What a merge of manifests did, or would do."""

    # None if there was nothing to merge, and after a dry run
    snapshot_id: int | None = None
    manifests_before: int = 0
    # after a dry run, the same as before
    manifests_after: int = 0


@on_same_table
def compact_manifests(context: TableContext, commit_user: str, dry_run: bool = False) -> ManifestsCompacted:
    """Merge small manifests, drop each DELETE entry together with its ADD, and cluster the entries by partition.

    A dry run returns the number of manifests. Errors are those of a commit.
    """
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return ManifestsCompacted()
    with check_unexpired(context, snapshot, "compact the manifests again"):
        before = read_data_manifests(context, snapshot)
    limits = build_merge_limits(context.table)
    is_due = manifests_with_deletes(before) or sum(must_change(m, limits) for m in before) > 1
    types = [f.type for f in context.schema.partition_fields]
    if dry_run or (not is_due and is_clustered(before, types, limits)):
        return ManifestsCompacted(None, len(before), len(before))
    forced = context.with_table(evolve(context.table, options=context.options.with_values(_ALWAYS)))
    intent = Intent(forced.table, CommitRequest((), commit_user), Change(CommitKind.COMPACT), SafeSnapshot())
    published = publish_change(forced, intent, None).snapshot
    return ManifestsCompacted(published.id, len(before), len(read_data_manifests(context, published)))
