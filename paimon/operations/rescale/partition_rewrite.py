"""Rewrite the rows of partitions into another number of buckets, in this process.

Invariant: each row of the source buckets is written once, with its row kind; records of a key are merged, and deletes
are dropped, as a full compaction does. New files are on the top level, so that no compaction has to follow. Rows of an
append bucket keep their order. Memory use stays within the budget; more rows are spilled.

Source: `RescaleAction`, which reads merged rows and overwrites the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from attrs import evolve

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.maintenance.rescale import PartitionSources, SourceBucket
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.system_columns import VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.compact.section_read import SectionRead, read_in_order
from paimon.operations.data_files.deletion_vectors import BucketVectors, WorkingVectors
from paimon.operations.data_files.read_data_file import Bucket
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
