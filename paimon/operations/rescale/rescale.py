"""Rescale a table: rewrite partitions to another number of buckets, and set the option `bucket`, with one commit.

The files are written first. Then the new schema is published, and at once the snapshot that replaces the partitions.
A partition that another writer changed in the meantime is rewritten again, as is one whose snapshot expired.

Invariant: no concurrent row is lost: the commit is refused if a partition has other files than those that were read.
Writers that still use the old number are refused by their commit (`domain/commit/conflicts/buckets.py`). After an
error, no new file is left behind, and the option has its old value again. Each row of the source buckets is written
once, with its row kind; records of a key are merged, and deletes are dropped, as a full compaction does. New files are
on the top level, so that no compaction has to follow. Rows of an append bucket keep their order. Memory use stays
within the budget; more rows are spilled.

Source: `RescaleAction`, which does not set the option, and fails if another writer changed the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict, InvalidRequest, PaimonError
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.maintenance.rescale import (
    PartitionSources,
    SourceBucket,
    check_rescalable,
    has_unreported_changes,
    select_partitions,
)
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import check_within
from paimon.domain.predicate.expression import Predicate
from paimon.domain.report import CardDisplay
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.changes import SetOption
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort, is_still_needed
from paimon.operations.compact.compact import compact, find_buckets
from paimon.operations.compact.partition_condition import bind_partition_condition
from paimon.operations.compact.plan_bucket import check_compactable
from paimon.operations.compact.section_read import SectionRead, read_in_order
from paimon.operations.data_files.deletion_vectors import BucketVectors, WorkingVectors, read_bucket_vectors
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.evolve import alter_table, load_at_newest_schema
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

_BUFFER_SHARE = 4
"""The part of the memory budget (1/n) for buffered rows. A sorted copy takes as much, and the read takes a third."""


def with_bucket_count(context: TableContext, total_buckets: int) -> TableContext:
    """Return the table with another bucket count, for writers that spill and do not compact."""
    buffered = min(context.options.write_buffer_bytes, max(1, context.engine.memory.bytes // _BUFFER_SHARE))
    options = context.options.with_values(
        {
            "bucket": str(total_buckets),
            "write-only": "true",
            "write-buffer-size": f"{buffered} b",
            "write-buffer-spillable": "true",
            "write-buffer-spill.max-disk-size": f"{LARGEST_LONG} b",
        }
    )
    return context.with_table(evolve(context.table, options=options))


def rewrite_partitions(
    context: TableContext, partitions: Sequence[PartitionSources], total_buckets: int, commit_user: str
) -> Iterator[CommitMessage]:
    """Rewrite partitions one after another to a new number of buckets; the messages add the new files."""
    target = with_bucket_count(context, total_buckets)
    total, done = sum(len(p.buckets) for p in partitions), 0
    for partition in partitions:
        writer = open_writer(target, commit_user)
        with undo_on_failure(writer.abort):
            for source in partition.buckets:
                for rows in read_source_rows(context, source):
                    write_rows(writer, target, rows)
                done += 1
                context.engine.observer.progress("rescaling buckets", done, total)
            messages = writer.prepare_commit()
        yield from messages


def open_writer(target: TableContext, commit_user: str) -> TableWriter:
    """Return a writer of new files on the top level of a table from `with_bucket_count`."""
    level = CompactionRules.of(target.options).levels - 1 if target.schema.primary_keys else 0
    return TableWriter(target, commit_user, ignore_previous=True, level=level)


def write_rows(writer: TableWriter, target: TableContext, rows: pa.Table) -> None:
    """Write rows of `read_source_rows`, with their row kinds in a primary-key table."""
    kinds = rows[VALUE_KIND.name].combine_chunks() if target.schema.primary_keys else None
    writer.write(rows.select(list(target.schema.names)), kinds, are_stored=True)


def read_source_rows(context: TableContext, source: SourceBucket) -> Iterator[pa.Table]:
    """Read one bucket's rows for a rewrite; keyed ones are merged, with `_VALUE_KIND`, without deletes."""
    files = source.files
    split = DataSplit(0, files.partition, files.bucket, files.total_buckets, source.directory, files.files)
    bucket = Bucket.of(context, split)
    vectors = WorkingVectors(context, BucketVectors(files.partition, files.bucket, source.vectors))
    if not context.schema.primary_keys:
        ordered = sorted(files.files, key=lambda f: f.min_sequence_number)
        yield from read_in_order(bucket, ordered, vectors)
        return
    spec = MergeSpec.of(context.schema, context.options)
    reader = SectionRead.for_merge(bucket, spec, vectors)
    for section in cut_into_sections(files.files, [f.type for f in spec.key_fields]):
        for rows in reader.read_merged(section):
            yield rows.filter(pa.array(~mask_retracts(rows)))


def build_removal_messages(partition: PartitionSources) -> list[CommitMessage]:
    """Return the messages that remove the files and deletion vectors of a partition, one for each bucket."""
    return [
        CommitMessage(
            partition.partition,
            source.files.bucket,
            source.files.total_buckets,
            source.directory,
            DataIncrement(deleted_files=source.files.files, deleted_index_files=source.vectors),
        )
        for source in partition.buckets
    ]


_ATTEMPTS = 5
"""How often partitions are rewritten again, because other writers changed them."""
_HINT = "rescale again"

Rewrite = Callable[[TableContext, Sequence[PartitionSources], int, str], Iterable[CommitMessage]]
"""Writes the rows of partitions to new files: table, partitions, number of buckets, commit user."""


@frozen
class RescaleResult(CardDisplay):
    """What a rescale did, or would do."""

    # empty if all partitions have the number of buckets already, and after a dry run
    snapshot_ids: tuple[int, ...] = ()
    # the number of partitions that were rewritten
    partitions: int = 0
    # files that were replaced
    files_before: int = 0
    # files that took their place; 0 after a dry run
    files_after: int = 0
    # rows of the new files; after a dry run, of the files before
    rows: int = 0


@on_same_table
def rescale(
    context: TableContext,
    buckets: int,
    commit_user: str,
    where: Predicate | None = None,
    rewrite: Rewrite = rewrite_partitions,
) -> RescaleResult:
    """Rewrite partitions to another number of buckets, and set the option `bucket` of the table.

    `where` selects partitions, and `rewrite` writes the new files, by default in this process. Raises `CommitConflict`,
    without any change, if other writers changed the same partitions or the snapshot expired in each attempt.
    """
    newest = load_at_newest_schema(context)
    check_rescalable(newest.table, buckets)
    if where is not None:
        bind_partition_condition(newest, where)
    work = _Rescale(newest, buckets, commit_user, rewrite)
    with work:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return work.run(*plan_rewrite(newest, buckets, commit_user, where))
            except CommitConflict:
                if attempt == _ATTEMPTS:
                    raise
    raise AssertionError


@on_same_table
def plan_rescale(context: TableContext, buckets: int, where: Predicate | None = None) -> RescaleResult:
    """Find what `rescale` would rewrite, without a write; CommitConflict if the snapshot expires meanwhile."""
    newest = load_at_newest_schema(context)
    check_rescalable(newest.table, buckets)
    predicate = None if where is None else bind_partition_condition(newest, where)
    snapshot = latest_snapshot(newest)
    if snapshot is None:
        return RescaleResult()
    with check_unexpired(newest, snapshot, _HINT):
        partitions = select_sources(newest, snapshot, predicate, buckets)
    files = [file for p in partitions for source in p.buckets for file in source.files.files]
    return RescaleResult(partitions=len(partitions), files_before=len(files), rows=sum(f.row_count for f in files))


def select_sources(
    context: TableContext, snapshot: Snapshot, predicate: Predicate | None, buckets: int | None
) -> tuple[PartitionSources, ...]:
    """Return the partitions of a snapshot with another number of buckets; all partitions if it is None."""
    check_compactable(context, snapshot)
    return select_partitions(_read_sources(context, snapshot, predicate), buckets)


def plan_rewrite(
    context: TableContext, buckets: int | None, commit_user: str, where: Predicate | None
) -> tuple[Snapshot | None, tuple[PartitionSources, ...]]:
    """Return the newest snapshot and the partitions of `select_sources`; where a compaction writes changelog, it runs.

    Raises `CommitConflict` if other writers added rows after the compaction, or the snapshot expired.
    """
    predicate = None if where is None else bind_partition_condition(context, where)
    for is_compacted in (False, True):
        snapshot = latest_snapshot(context)
        if snapshot is None:
            return None, ()
        with check_unexpired(context, snapshot, "try again"):
            partitions = select_sources(context, snapshot, predicate, buckets)
        if not _has_unreported_changes(context, partitions):
            return snapshot, partitions
        if not is_compacted:
            compact(context, commit_user, full=True, where=where)
    raise CommitConflict(
        f"Table {context.table.table_name!r} was not rewritten: other writers added rows after its compaction.",
        hint="pause the other writers, and try again",
    )


def _has_unreported_changes(context: TableContext, partitions: Sequence[PartitionSources]) -> bool:
    if not context.schema.primary_keys:
        return False
    top_level = CompactionRules.of(context.options).levels - 1
    return has_unreported_changes(partitions, context.options.changelog_producer, top_level)


def _read_sources(context: TableContext, snapshot: Snapshot, predicate: Predicate | None) -> list[SourceBucket]:
    vectors = read_bucket_vectors(context, snapshot)
    directories = BucketPaths.of(context.table)
    sources: list[SourceBucket] = []
    for bucket in (b for b in find_buckets(context, snapshot, predicate) if b.bucket >= 0):
        for file in bucket.files:
            if file.schema_id > context.schema.id:
                raise InvalidRequest(
                    f"Table {context.table.table_name!r} got a newer schema while it was rewritten.",
                    hint="try again",
                )
            if file.external_path is not None:
                roots = context.table.roots
                check_within(file.external_path, roots, context.paths.manifests)
        marked = vectors.get((bucket.partition, bucket.bucket))
        directory = directories.directory(bucket.partition, bucket.bucket)
        sources.append(SourceBucket(bucket, directory, marked.current if marked else ()))
    return sources


class _Rescale:
    """The new files of each partition, and the option: a state machine that runs until its commit is published."""

    def __init__(self, context: TableContext, buckets: int, commit_user: str, rewrite: Rewrite) -> None:
        self._context = context
        self._buckets = buckets
        self._commit_user = commit_user
        self._rewrite = rewrite
        self._old_buckets = TableOptions.of(context.schema.options).bucket
        self._first_seen: Snapshot | None = None
        self._written: dict[PartitionSources, list[CommitMessage]] = {}
        self._is_option_set = False

    def run(self, snapshot: Snapshot | None, partitions: Sequence[PartitionSources]) -> RescaleResult:
        """Rewrite the partitions that are new or changed, set the option, and commit."""
        if snapshot is not None:
            self._first_seen = self._first_seen or snapshot
            with check_unexpired(self._context, snapshot, _HINT):
                self._rewrite_changed(partitions)
        self._set_option()
        if not partitions:
            return RescaleResult()
        removed = [m for p in partitions for m in build_removal_messages(p)]
        added = [m for p in partitions for m in self._written[p]]
        messages = [*removed, *added]
        request = CommitRequest(messages, self._commit_user, operation="OVERWRITE", bucket_option=self._buckets)
        done = commit(self._context, request)
        new_files = [f for m in added for f in m.data.new_files]
        return RescaleResult(
            done.snapshot_ids,
            partitions=len(partitions),
            files_before=sum(len(m.data.deleted_files) for m in removed),
            files_after=len(new_files),
            rows=sum(f.row_count for f in new_files),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """After an error, delete the new files and restore the option, unless the commit may have been published."""
        messages = [m for found in self._written.values() for m in found]
        if error is None or (isinstance(error, PaimonError) and is_still_needed(messages, error)):
            return
        self._abort(messages)
        if self._is_option_set and self._read_option() == self._buckets:
            alter_table(self._context, [SetOption("bucket", str(self._old_buckets))])

    def _rewrite_changed(self, partitions: Sequence[PartitionSources]) -> None:
        outdated = [p for p in self._written if p not in set(partitions)]
        self._abort([m for p in outdated for m in self._written.pop(p)])
        missing = [p for p in partitions if p not in self._written]
        by_partition: dict[bytes, list[CommitMessage]] = {}
        self._written |= {p: by_partition.setdefault(p.partition, []) for p in missing}
        # no partition counts as written if the new files of one are incomplete
        with undo_on_failure(lambda: self._abort([m for p in missing for m in self._written.pop(p)])):
            for message in self._rewrite(self._context, missing, self._buckets, self._commit_user):
                by_partition[message.partition].append(message)

    def _set_option(self) -> None:
        if self._read_option() != self._buckets:
            alter_table(self._context, [SetOption("bucket", str(self._buckets))])
            self._is_option_set = True

    def _read_option(self) -> int:
        return TableOptions.of(load_at_newest_schema(self._context).schema.options).bucket

    def _abort(self, messages: Sequence[CommitMessage]) -> None:
        if messages and self._first_seen is not None:
            abort(self._context, messages, self._commit_user, is_before=self._first_seen.is_same)
