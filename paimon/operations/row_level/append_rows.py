"""Delete and update rows of append tables.

Invariant: with `deletion-vectors.enabled` the old rows are marked in deletion vectors, and new versions are appended.
Otherwise each file with such a row is rewritten. A file without remaining rows is removed. The result is one OVERWRITE
snapshot, which is refused if another commit changed the same files. Source: `DeleteFromPaimonTableCommand`,
`UpdatePaimonTableCommand`.
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
from paimon.operations.data_files.deletion_vector_files import (
    BucketVectors,
    delete_index_files,
    read_bucket_vectors,
    write_vectors,
)
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.data_files.undo import undo_on_failure
from paimon.operations.row_level.assign import apply_assignments
from paimon.operations.row_level.matches import BucketMatches, FileMatch
from paimon.operations.row_level.replace_rows import filter_rows, replace_rows
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine

Assignments = Sequence[Assignment]


def write_append_changes(
    context: TableContext,
    snapshot: Snapshot,
    found: Sequence[BucketMatches],
    assignments: Assignments,
    commit_user: str,
) -> list[CommitMessage]:
    """Write the files and deletion vectors that change the rows found.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    snapshot : Snapshot
        The snapshot in which the rows were found.
    found : sequence of BucketMatches
        The rows to change.
    assignments : sequence of Assignment
        The new values; if empty, the rows are deleted.
    commit_user : str
        The user of the commit to come.

    Returns
    -------
    list of CommitMessage
        What to commit.
    """
    marks = context.options.deletion_vectors_enabled
    held = read_bucket_vectors(context, snapshot)
    writer = TableWriter(context.with_table(without_compaction(context.table)), commit_user)
    messages: list[CommitMessage] = []

    def undo() -> None:
        """Delete what was written before an error."""
        writer.abort()
        delete_index_files(context, [e for m in messages for e in m.data.new_index_files])

    with undo_on_failure(undo):
        for matches in found:
            for rows in _read_new_rows(context, matches, assignments, whole_files=not marks):
                writer.write(rows)
            key = matches.split.partition, matches.split.bucket
            messages.append(build_removal_message(context, matches, held.get(key, BucketVectors(*key)), marks))
        return [*messages, *writer.prepare_commit()]


def without_compaction(table: TableDefinition) -> TableDefinition:
    """Return the table without inline compaction, which could remove the files whose rows are changed."""
    return evolve(table, options=table.options.with_values({"write-only": "true"}))


def _read_new_rows(
    context: TableContext, matches: BucketMatches, assignments: Assignments, whole_files: bool
) -> Iterator[pa.Table]:
    """Yield the rows to write: changed rows, and with `whole_files` also the unchanged rows of their files."""
    if not assignments and not whole_files:
        return
    bucket = Bucket.of(context, matches.split)
    for match in matches.files:
        if match.removes_all_rows and not assignments:
            continue
        start = 0
        for batch in read_data_file(bucket, match.file, context.schema.fields):
            rows = _select_new_rows(context.engine, batch, match, start, assignments, whole_files)
            start += batch.num_rows
            if rows.num_rows:
                yield rows


def _select_new_rows(
    engine: Engine, batch: pa.RecordBatch, match: FileMatch, start: int, assignments: Assignments, whole_files: bool
) -> pa.Table:
    found, deleted = match.mask(start, batch.num_rows), match.before.mask(start, batch.num_rows)
    if not assignments:
        return pa.Table.from_batches([filter_rows(batch, ~found & ~deleted & whole_files)])
    changed = apply_assignments(engine, batch.filter(pa.array(found)), assignments)
    if not whole_files:
        return changed
    replaced = replace_rows(batch, np.flatnonzero(found), changed)
    return pa.Table.from_batches([filter_rows(replaced, ~deleted)])


def build_removal_message(
    context: TableContext, matches: BucketMatches, vectors: BucketVectors, marks: bool
) -> CommitMessage:
    """Return the message that removes rows by deletion vectors, or whole files with their vectors.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    matches : BucketMatches
        The rows to remove.
    vectors : BucketVectors
        The deletion vectors of the bucket.
    marks : bool
        Whether rows are marked in deletion vectors; if not, whole files are removed.

    Returns
    -------
    CommitMessage
        The removed files, and the new deletion vectors.
    """
    split, files = matches.split, matches.files
    removed_files = [match.file for match in files if match.removes_all_rows or not marks]
    changed = {m.file.file_name: m.after for m in files if marks and not m.removes_all_rows}
    change = write_vectors(context, vectors, changed, removed={f.file_name for f in removed_files})
    return CommitMessage(
        split.partition,
        split.bucket,
        split.total_buckets,
        split.bucket_path,
        DataIncrement(
            deleted_files=removed_files,
            new_index_files=change.new,
            deleted_index_files=change.deleted,
        ),
    )
