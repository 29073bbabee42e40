"""Deleting and updating rows of append tables.

Law: with `deletion-vectors.enabled` the rows are marked in vectors and new versions appended; without, every file that
holds one of them is written anew. A file of which no row is left goes. Either becomes one OVERWRITE snapshot, refused
where the same files changed meanwhile. Source: `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from attrs import evolve

from paimon.domain.assignment.expression import Assignment
from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.deletion.index_files import BucketVectors, delete_index_files, held_vectors, write_vectors
from paimon.operations.read.data_file import Bucket, read_data_file
from paimon.operations.rows.assign import assigned_rows
from paimon.operations.rows.matches import BucketMatches, FileMatch
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine

Assignments = Sequence[Assignment]


def append_table_messages(
    engine: Engine,
    table: TableDefinition,
    snapshot: Snapshot,
    found: Sequence[BucketMatches],
    assignments: Assignments,
    commit_user: str,
) -> list[CommitMessage]:
    """Do what is to be done to the rows found; the messages say what to commit.

    Parameters
    ----------
    assignments : sequence of Assignment
        What is put into the rows; none: they are deleted.
    """
    marks = table.options.deletion_vectors_enabled
    held = held_vectors(engine, table, snapshot)
    writer = TableWriter(engine, _without_compaction(table), commit_user)
    messages: list[CommitMessage] = []

    def undo() -> None:
        writer.abort()
        delete_index_files(engine, table, [e for m in messages for e in m.data.new_index_files])

    with undone_on_failure(undo):
        for matches in found:
            for rows in _new_rows(engine, table, matches, assignments, whole_files=not marks):
                writer.write(rows)
            key = matches.split.partition, matches.split.bucket
            messages.append(_taken_away(engine, table, matches, held.get(key, BucketVectors(*key)), marks))
        return [*messages, *writer.prepare_commit()]


def _without_compaction(table: TableDefinition) -> TableDefinition:
    """Compacting at the same time could take away the very files that rows are deleted from."""
    return evolve(table, options=table.options.with_values({"write-only": "true"}))


def _new_rows(
    engine: Engine, table: TableDefinition, matches: BucketMatches, assignments: Assignments, whole_files: bool
) -> Iterator[pa.Table]:
    """The rows to be written: those found with their new values, and with `whole_files` those beside them."""
    if not assignments and not whole_files:
        return
    bucket = Bucket.of(engine, table, matches.split)
    for match in matches.files:
        if match.leaves_nothing and not assignments:
            continue
        start = 0
        for batch in read_data_file(bucket, match.file, table.schema.fields):
            rows = _of_batch(batch, match, start, assignments, whole_files)
            start += batch.num_rows
            if rows.num_rows:
                yield rows


def _of_batch(
    batch: pa.RecordBatch, match: FileMatch, start: int, assignments: Assignments, whole_files: bool
) -> pa.Table:
    found, gone = match.mask(start, batch.num_rows), match.before.mask(start, batch.num_rows)
    beside = pa.Table.from_batches([batch.filter(pa.array(~found & ~gone if whole_files else np.zeros_like(found)))])
    if not assignments:
        return beside
    changed = assigned_rows(batch.filter(pa.array(found)), assignments)
    if not beside.num_rows:
        return changed
    # Back to where they stood: rows of a bucket may have an order.
    order = np.argsort(np.concatenate([np.flatnonzero(~found & ~gone), np.flatnonzero(found)]), kind="stable")
    return pa.concat_tables([beside, changed]).take(pa.array(order))


def _taken_away(
    engine: Engine, table: TableDefinition, matches: BucketMatches, vectors: BucketVectors, marks: bool
) -> CommitMessage:
    """What is no longer valid of a bucket: rows by their vectors, or whole files with theirs."""
    split, files = matches.split, matches.files
    gone = [match.file for match in files if match.leaves_nothing or not marks]
    changed = {m.file.file_name: m.after for m in files if marks and not m.leaves_nothing}
    change = write_vectors(engine, table, vectors, changed, removed={f.file_name for f in gone})
    return CommitMessage(
        split.partition,
        split.bucket,
        split.total_buckets,
        split.bucket_path,
        DataIncrement(
            deleted_files=gone,
            new_index_files=change.new,
            deleted_index_files=change.deleted,
        ),
    )

