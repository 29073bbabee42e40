"""Compact a table: decide bucket by bucket, run one task for each bucket, and commit all results at once.

Invariant: the rows of the table do not change, and concurrent writes are kept. If another compaction replaces the same
files first, CommitConflict is raised and no file is left behind.

Source: `MergeTreeCompactManager`, `CompactAction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from attrs import frozen

from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.request import CommitRequest
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.report import CardDisplay
from paimon.domain.scan.assemble import BucketFiles, group_by_bucket
from paimon.domain.scan.prune_by_partition import check_partitions, manifests_to_read
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort_on_failure, abort_on_refusal, delete_prepared
from paimon.operations.compact.compact_bucket import compact_bucket
from paimon.operations.compact.partition_condition import bind_partition_condition, match_partitions
from paimon.operations.compact.plan_bucket import BucketWork, check_compactable, pick_idle_partitions, plan_bucket_work
from paimon.operations.data_files.deletion_vectors import get_bucket_vectors, read_bucket_vectors
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext


@frozen
class CompactResult(CardDisplay):
    """What a compaction did, or would do."""

    # the snapshot of the compaction; empty if there was nothing to do, and after a dry run
    snapshot_ids: tuple[int, ...] = ()
    # the number of compacted buckets
    buckets: int = 0
    # files that were replaced or moved to another level
    files_before: int = 0
    # files that took their place; 0 after a dry run
    files_after: int = 0
    # stored rows of the new files; after a dry run, of the files before
    rows: int = 0


CompactBuckets: TypeAlias = Callable[[TableContext, Sequence[BucketWork]], Iterable[CommitMessage]]
"""Compacts the buckets of a table, and returns what to commit."""


@on_same_table
def compact(
    context: TableContext,
    commit_user: str,
    full: bool = False,
    where: Predicate | None = None,
    order: SortOrder | None = None,
    run: CompactBuckets | None = None,
) -> CompactResult:
    """Compact a table once, and commit the result.

    By default the options of the table select the files; `full` writes each bucket into one sorted run. `where` selects
    partitions, and `order` sorts all their rows. `run` compacts the buckets, by default with the executor of the
    engine. Raises `CommitConflict` if another commit replaced the same files, or the snapshot expired.
    """
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return CompactResult()
    with check_unexpired(context, snapshot, "compact again"):
        tasks = plan_buckets(context, snapshot, full, predicate, order)
        messages: list[CommitMessage] = []
        with abort_on_failure(context, messages, commit_user, snapshot):
            messages.extend((run or compact_with_executor)(context, tasks))
    with abort_on_refusal(context, messages, commit_user, snapshot):
        result = commit(context, CommitRequest(messages, commit_user))
    return to_compact_result(result.snapshot_ids, messages)


def compact_with_executor(context: TableContext, tasks: Sequence[BucketWork]) -> Iterator[CommitMessage]:
    """Compact buckets with the executor of the engine, and yield the message of each."""
    run, discard = partial(compact_bucket, context.for_tasks(len(tasks))), partial(delete_prepared, context)
    for done, message in enumerate(context.engine.executor.map(run, tasks, discard), 1):
        yield message
        context.engine.observer.progress("compacting buckets", done, len(tasks))


def plan_buckets(
    context: TableContext,
    snapshot: Snapshot,
    full: bool,
    predicate: Predicate | None,
    order: SortOrder | None = None,
) -> list[BucketWork]:
    """Decide what a compaction does in each bucket; nothing is written.

    By default the options of the table select the files; `full` makes each bucket one sorted run, and `order` takes all
    files. Buckets without work and postponed buckets are left out. See `pick_idle_partitions` for other partitions.
    """
    check_compactable(context, snapshot)
    vectors = read_bucket_vectors(context, snapshot)
    all_work = [
        plan_bucket_work(context, bucket, is_full, vectors=get_bucket_vectors(vectors, key), order=order)
        for bucket, is_full in _select_buckets(context, snapshot, full, predicate)
        if bucket.bucket >= 0
        for key in [(bucket.partition, bucket.bucket)]
    ]
    return [work for work in all_work if not work.is_empty]


def _select_buckets(
    context: TableContext, snapshot: Snapshot, full: bool, predicate: Predicate | None
) -> list[tuple[BucketFiles, bool]]:
    """Return the buckets of the selected partitions and of idle ones, and whether each is compacted fully."""
    options, clock = context.options, context.engine.clock
    selected = find_buckets(context, snapshot, predicate)
    idle_millis = options.clustering_idle_millis if options.clustering_incremental else None
    if predicate is None or idle_millis is None:
        return [(bucket, full) for bucket in selected]
    taken = {bucket.partition for bucket in selected}
    others = [b for b in find_buckets(context, snapshot, None) if b.partition not in taken]
    now = clock.now_millis()
    before = now + clock.local_offset_millis(now) - idle_millis
    top_level = CompactionRules.of_clustering(options).levels - 1
    idle = pick_idle_partitions(others, before, top_level, options.clustering_history_limit)
    return [*((bucket, full) for bucket in selected), *((b, True) for b in others if b.partition in idle)]


def find_buckets(context: TableContext, snapshot: Snapshot, predicate: Predicate | None) -> list[BucketFiles]:
    """Return the files of all buckets, postponed ones too, of the partitions that `predicate` selects."""
    fields = context.schema.partition_fields
    plain = None if predicate is None else restrict_to_columns(predicate, context.schema.partition_keys)
    manifests = manifests_to_read(read_data_manifests(context, snapshot), plain, fields)
    live = read_live_columns(context, manifests)
    check_partitions(live.partition_rows, len(fields), context.paths.manifests)
    if predicate is not None:
        live = live.filter(match_partitions(context, live.partition_rows, predicate)[live.partitions])
    return group_by_bucket(live, None)


def to_compact_result(snapshot_ids: tuple[int, ...], messages: Sequence[CommitMessage]) -> CompactResult:
    """Return the result of a compaction with these messages; postponed buckets are not counted as buckets."""
    return CompactResult(
        snapshot_ids,
        buckets=len({(m.partition, m.bucket) for m in messages if m.bucket >= 0}),
        files_before=sum(len(m.compact.compact_before) for m in messages),
        files_after=sum(len(m.compact.compact_after) for m in messages),
        rows=sum(f.row_count for m in messages for f in m.compact.compact_after),
    )
