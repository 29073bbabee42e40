"""Compact one bucket: the function that each task of a compaction runs, in this process or on Spark.

Invariant: the new files have, key by key, the merged rows of the files that were read. Memory use stays within the
budget whatever the size of the files. A failed task leaves no file.

Source: `MergeTreeCompactTask`, `AppendCompactTask`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.errors import InvalidRequest
from paimon.domain.lsm.compaction.unit_plan import list_looked_up_files
from paimon.domain.scan.splits import DataSplit
from paimon.operations.compact.lookup_cache import LookupCache
from paimon.operations.compact.output_files import OutputFiles
from paimon.operations.compact.section_read import read_in_order
from paimon.operations.compact.unit import UnitWork
from paimon.operations.compact.work import BucketWork
from paimon.operations.data_files.deletion_vector_files import BucketVectors, read_bucket_vectors
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.data_files.working_vectors import WorkingVectors
from paimon.operations.metadata.delete_files import undo_on_failure
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext


def compact_bucket(context: TableContext, work: BucketWork, copies: LookupCache | None = None) -> CommitMessage:
    """Compact one bucket and return the commit message.

    Rows in files of higher levels that newer rows replace are marked in deletion vectors, if the table has them.
    `copies` are the lookup files of a writer that compacts the same buckets repeatedly. Raises `InvalidRequest` if the
    table was opened before its schema changed, and files of the newer schema would be replaced.
    """
    if work.outdates(context.schema.id):
        raise InvalidRequest(
            f"Table {context.table.table_name!r} has a newer schema than this handle: compaction would lose columns.",
            hint="open the table again",
        )
    bucket = Bucket.of(context, _as_split(work))
    vectors = WorkingVectors(context, _find_vectors(context, work))
    output = OutputFiles(context, work.directory, work.unit.output_level if work.unit else 0)
    with undo_on_failure(output.remove):
        for pack in work.packs:
            with output.data_files(pack[0].min_sequence_number) as data:
                for rows in read_in_order(bucket, pack, vectors):
                    data.write(rows)
        if work.unit is not None:
            lookup_files = copies.of((work.partition, work.bucket)) if copies is not None else None
            UnitWork.of(bucket, work.unit, output, vectors, lookup_files).run()
        index = vectors.write({f.file_name for f in work.rewritten})
    upgrades = work.unit.upgrades if work.unit else ()
    upgraded = tuple(evolve(f, level=work.unit.output_level) for f in upgrades) if work.unit else ()
    increment = CompactIncrement(
        (*work.rewritten, *upgrades),
        (*output.data, *upgraded),
        output.changelog,
        index.new,
        index.deleted,
        _list_looked_up(context, work),
        work.unit is not None and work.unit.drop_deletes,
    )
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _list_looked_up(context: TableContext, work: BucketWork) -> list[str]:
    if work.unit is None:
        return []
    return [f.file_name for f in list_looked_up_files(work.unit, [f.type for f in context.schema.key_fields])]


def _find_vectors(context: TableContext, work: BucketWork) -> BucketVectors:
    key = work.partition, work.bucket
    if work.vectors is not None or not context.options.deletion_vectors_enabled:
        return work.vectors or BucketVectors(*key)
    by_bucket = read_bucket_vectors(context, latest_snapshot(context))
    return by_bucket.get(key, BucketVectors(*key))


def _as_split(work: BucketWork) -> DataSplit:
    """Return all files that may be read."""
    others = (*work.unit.upgrades, *work.unit.above) if work.unit else ()
    files = (*work.rewritten, *others)
    return DataSplit(0, work.partition, work.bucket, work.total_buckets, work.directory, files)
