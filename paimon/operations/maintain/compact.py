"""Compacting a table: what to do is decided bucket by bucket, done by tasks, and committed at once.

Law: the rows of the table stay what they are; what others write meanwhile stays. Where another compaction was faster,
CommitConflict is raised and nothing is left behind. Source: `MergeTreeCompactManager`, `CompactAction`.
"""

from __future__ import annotations

from functools import partial

from attrs import frozen

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of
from paimon.domain.scan.assemble import BucketFiles, by_bucket
from paimon.domain.scan.prune import check_partitions, manifests_to_read, partition_mask
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.abort import aborted_on_failure, aborted_on_refusal
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.deletion.index_files import BucketVectors, held_vectors
from paimon.operations.maintain.bucket_work import compact_bucket
from paimon.operations.maintain.compactable import check_compactable
from paimon.operations.maintain.work import work_of
from paimon.operations.read.manifests import data_manifests, live_columns
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import Engine


@frozen
class CompactResult:
    """What a compaction did.

    Parameters
    ----------
    snapshot_ids : tuple of int
        The snapshot it made; none where nothing was to do.
    buckets : int
        Buckets in which something was done.
    files_before, files_after : int
        Files replaced or moved to another level, and those that stand in their place.
    rows : int
        Stored rows of the files that stand in their place.
    """

    snapshot_ids: tuple[int, ...] = ()
    buckets: int = 0
    files_before: int = 0
    files_after: int = 0
    rows: int = 0


def compact(
    engine: Engine, table: TableDefinition, commit_user: str, full: bool = False, where: Predicate | None = None
) -> CompactResult:
    """Compact a table once.

    Parameters
    ----------
    commit_user : str
        Who commits.
    full : bool
        Everything into one run a bucket, rather than what the table's options ask for.
    where : Predicate, optional
        Over partition columns: compact these partitions alone.

    Raises
    ------
    Unsupported
        The table asks for more than this compaction does.
    CommitConflict
        Another compaction, or an overwrite, replaced the same files meanwhile.
    """
    predicate = None if where is None else _of_partitions(table, where)
    snapshot = latest_snapshot(engine, table.paths)
    if snapshot is None:
        return CompactResult()
    check_compactable(engine, table, snapshot)
    held = held_vectors(engine, table, snapshot)
    work = [
        work_of(engine, table, bucket, full, vectors=held.get(key, BucketVectors(*key)))
        for bucket in _buckets(engine, table, snapshot, predicate)
        for key in [(bucket.partition, bucket.bucket)]
    ]
    messages: list[CommitMessage] = []
    with aborted_on_failure(engine, table, messages, commit_user, snapshot):
        todo = [w for w in work if not w.is_empty]
        for message in engine.executor.map(partial(compact_bucket, engine, table), todo):
            messages.append(message)
            engine.observer.progress("compacting buckets", len(messages), len(todo))
    with aborted_on_refusal(engine, table, messages, commit_user, snapshot):
        done = commit(engine, table, CommitRequest(messages, commit_user))
    return _result(done.snapshot_ids, messages)


def _of_partitions(table: TableDefinition, where: Predicate) -> Predicate:
    predicate = bind(where, table.schema.fields)
    others = sorted(columns_of(predicate) - set(table.schema.partition_keys))
    if others:
        known = ", ".join(table.schema.partition_keys) or "none"
        hint = f"partition columns of {table.identifier}: {known}"
        raise InvalidRequest(f"compaction cannot select rows by {others[0]!r}", subject=others[0], hint=hint)
    return predicate


def _buckets(
    engine: Engine, table: TableDefinition, snapshot: Snapshot, predicate: Predicate | None
) -> list[BucketFiles]:
    fields = table.schema.partition_fields
    manifests = manifests_to_read(data_manifests(engine, table, snapshot), predicate, fields)
    live = live_columns(engine, table, manifests)
    check_partitions(live.partition_rows, len(fields), table.paths.manifests)
    live = live.where(live.buckets >= 0)
    if predicate is not None:
        live = live.where(partition_mask(live, predicate, fields))
    return by_bucket(live, None)


def _result(snapshot_ids: tuple[int, ...], messages: list[CommitMessage]) -> CompactResult:
    return CompactResult(
        snapshot_ids,
        buckets=len(messages),
        files_before=sum(len(m.compact.compact_before) for m in messages),
        files_after=sum(len(m.compact.compact_after) for m in messages),
        rows=sum(f.row_count for m in messages for f in m.compact.compact_after),
    )
