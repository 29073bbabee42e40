"""Sort a primary-key table with dynamic buckets: distribute its rows to buckets again, in another order.

The files of a bucket are always in key order. But keys get their buckets in the order in which they arrive, so rows
that are written in the order of other columns give each bucket a range of these columns.

Invariant: an OVERWRITE snapshot replaces the files and hash indexes of whole partitions. It is refused if another
writer changed rows since they were read, so a key is never in two buckets.

Source: `SortCompactAction` with `HASH_DYNAMIC`, which drops the rows of concurrent writers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.commit.request import CommitRequest
from paimon.domain.maintenance.rescale import PartitionSources
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort_on_failure, abort_on_refusal
from paimon.operations.compact.compact import CompactResult
from paimon.operations.compact.partition_condition import bind_partition_condition
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.evolve import load_at_newest_schema
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.rescale.rescale import (
    open_writer,
    plan_rewrite,
    read_source_rows,
    select_sources,
    with_bucket_count,
    write_rows,
)
from paimon.operations.table_context import TableContext

_DYNAMIC = -1
_HINT = "compact again"


@on_same_table
def sort_buckets(
    context: TableContext, commit_user: str, order: SortOrder, where: Predicate | None = None
) -> CompactResult:
    """Give each bucket of partitions a range of the order; CommitConflict if another writer changed rows."""
    newest = load_at_newest_schema(context)
    snapshot, partitions = plan_rewrite(newest, None, commit_user, where)
    if snapshot is None or not partitions:
        return CompactResult()
    messages: list[CommitMessage] = []
    with (
        check_unexpired(newest, snapshot, _HINT),
        abort_on_failure(newest, messages, commit_user, snapshot),
    ):
        for done, partition in enumerate(partitions, 1):
            messages += _rewrite_partition(newest, partition, order, commit_user)
            newest.engine.observer.progress("sorting partitions", done, len(partitions))
    replaced = frozenset(p.partition for p in partitions)
    request = CommitRequest(messages, commit_user, partitions=replaced, read_state=ReadState.of(snapshot))
    with abort_on_refusal(newest, messages, commit_user, snapshot):
        committed = commit(newest, request)
    new_files = [f for m in messages for f in m.data.new_files]
    return CompactResult(
        committed.snapshot_ids,
        buckets=sum(len(p.buckets) for p in partitions),
        files_before=sum(len(s.files.files) for p in partitions for s in p.buckets),
        files_after=len(new_files),
        rows=sum(f.row_count for f in new_files),
    )


@on_same_table
def plan_bucket_sort(context: TableContext, where: Predicate | None = None) -> CompactResult:
    """Find the buckets, files and rows that `sort_buckets` would replace; nothing is written."""
    newest = load_at_newest_schema(context)
    predicate = None if where is None else bind_partition_condition(newest, where)
    snapshot = latest_snapshot(newest)
    if snapshot is None:
        return CompactResult()
    with check_unexpired(newest, snapshot, _HINT):
        sources = [s for p in select_sources(newest, snapshot, predicate, None) for s in p.buckets]
    files = [file for source in sources for file in source.files.files]
    return CompactResult(buckets=len(sources), files_before=len(files), rows=sum(f.row_count for f in files))


def _rewrite_partition(
    context: TableContext, partition: PartitionSources, order: SortOrder, commit_user: str
) -> list[CommitMessage]:
    target = with_bucket_count(context, _DYNAMIC)
    writer = open_writer(target, commit_user)
    with undo_on_failure(writer.abort):
        for rows in sort_rows(context.engine, _read_partition(context, partition), order):
            write_rows(writer, target, rows)
        return writer.prepare_commit()


def _read_partition(context: TableContext, partition: PartitionSources) -> Iterator[pa.Table]:
    """Yield the merged rows of all buckets, with their row kinds."""
    for source in partition.buckets:
        for rows in read_source_rows(context, source):
            yield rows.select([*context.schema.names, VALUE_KIND.name])
