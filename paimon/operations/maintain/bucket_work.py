"""Compacting one bucket: the function that every task of a compaction runs, embedded or distributed.

Law: what is written holds, key by key, what merging the files read holds; memory stays within the budget however
large the files are; a failed task leaves no file. Source: `MergeTreeCompactTask`, `AppendCompactTask`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.errors import InvalidRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.deletion.index_files import BucketVectors, held_vectors
from paimon.operations.deletion.working import WorkingVectors
from paimon.operations.maintain.rewriting.local_copies import LocalCopies
from paimon.operations.maintain.rewriting.made import MadeFiles
from paimon.operations.maintain.rewriting.read import rows_in_order
from paimon.operations.maintain.rewriting.unit import UnitWork
from paimon.operations.maintain.work import BucketWork
from paimon.operations.read.data_file import Bucket
from paimon.operations.read.snapshots import latest_snapshot
from paimon.operations.undo import undone_on_failure
from paimon.ports.engine import Engine


def compact_bucket(
    engine: Engine, table: TableDefinition, work: BucketWork, copies: LocalCopies | None = None
) -> CommitMessage:
    """Do the work; its message says which files replace which, and which changelog files tell what changed.

    Rows of files that stay, of which newer ones were written, are marked in deletion vectors where the table has them.
    `copies` serve the lookups of whoever compacts the same buckets again and again.

    Raises
    ------
    InvalidRequest
        The table was opened before its schema changed, and files of the newer schema are to be replaced.
    """
    if work.outdates(table.schema.id):
        raise InvalidRequest(
            f"{table.identifier} has got a newer schema since it was opened: columns would be lost by compacting it so",
            hint="open the table again",
        )
    bucket = Bucket.of(engine, table, _as_split(work))
    vectors = WorkingVectors(engine, table, _vectors(engine, table, work))
    made = MadeFiles(engine, table, work.directory, work.unit.output_level if work.unit else 0)
    with undone_on_failure(made.remove):
        for pack in work.packs:
            with made.data_files(pack[0].min_sequence_number) as data:
                for rows in rows_in_order(bucket, pack, vectors):
                    data.write(rows)
        if work.unit is not None:
            own = copies.of((work.partition, work.bucket)) if copies is not None else None
            UnitWork.of(bucket, work.unit, made, vectors, own).run()
        index = vectors.write({f.file_name for f in work.rewritten})
    upgrades = work.unit.upgrades if work.unit else ()
    moved = tuple(evolve(f, level=work.unit.output_level) for f in upgrades) if work.unit else ()
    increment = CompactIncrement(
        (*work.rewritten, *upgrades), (*made.data, *moved), made.changelog, index.new, index.deleted
    )
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _vectors(engine: Engine, table: TableDefinition, work: BucketWork) -> BucketVectors:
    key = work.partition, work.bucket
    if work.vectors is not None or not table.options.deletion_vectors_enabled:
        return work.vectors or BucketVectors(*key)
    held = held_vectors(engine, table, latest_snapshot(engine, table.paths))
    return held.get(key, BucketVectors(*key))


def _as_split(work: BucketWork) -> DataSplit:
    """All files that may be read."""
    others = (*work.unit.upgrades, *work.unit.above) if work.unit else ()
    files = (*work.rewritten, *others)
    return DataSplit(0, work.partition, work.bucket, work.total_buckets, work.directory, files)
