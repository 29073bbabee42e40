"""Delete and update rows of append tables.

Invariant: with `deletion-vectors.enabled` the old rows are marked in deletion vectors, and new versions are appended.
Otherwise each file with such a row is rewritten. A file without remaining rows is removed. The result is one OVERWRITE
snapshot, which is refused if another commit changed the same files. Source: `DeleteFromPaimonTableCommand`,
`UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from attrs import evolve

from paimon.domain.assignment.expression import Assignment
from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.scan.splits import DataSplit
from paimon.operations.data_files.deletion_vector_files import (
    BucketVectors,
    delete_index_files,
    read_bucket_vectors,
    write_vectors,
)
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.data_files.undo import undo_on_failure
from paimon.operations.row_level.assign import apply_assignments
from paimon.operations.row_level.matches import (
    BucketMatches,
    BucketPlace,
    FileMatch,
    SelectedChange,
    WrittenChanges,
    find_rows,
)
from paimon.operations.row_level.replace_rows import filter_rows, replace_rows
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

Assignments = Sequence[Assignment]
ChangeRows: TypeAlias = Callable[[pa.RecordBatch], pa.Table]
"""Returns new versions of rows."""


def write_append_changes(context: TableContext, change: SelectedChange) -> WrittenChanges:
    """Write the files and deletion vectors that change the selected rows."""
    found = find_rows(context, change.snapshot, change.predicate)
    held = read_bucket_vectors(context, change.snapshot)
    writer = open_append_writer(context, change.commit_user, concurrent=True)
    messages: list[CommitMessage] = []

    def undo() -> None:
        """Delete what was written before an error."""
        writer.abort()
        delete_index_files(context, [e for m in messages for e in m.data.new_index_files])

    with undo_on_failure(undo):
        for matches in found:
            write_new_rows(context, writer, matches, change.assignments)
            key = matches.split.partition, matches.split.bucket
            vectors = held.get(key, BucketVectors(*key))
            messages.append(build_removal_message(context, matches.split, matches.files, vectors))
        return WrittenChanges([*messages, *writer.prepare_commit()], sum(matches.count for matches in found))


def open_append_writer(context: TableContext, commit_user: str, concurrent: bool = False) -> TableWriter:
    """Return a writer without inline compaction, which could remove the files whose rows are changed.

    `concurrent` encodes the columns of a file in the executor; a writer in a task must not set it.
    """
    options = context.options.with_values({"write-only": "true"})
    target = context.with_table(evolve(context.table, options=options))
    return TableWriter(target, commit_user, concurrent=concurrent)


def write_new_rows(
    context: TableContext, writer: TableWriter, matches: BucketMatches, assignments: Assignments
) -> None:
    """Write the new versions of changed rows; without deletion vectors also the unchanged rows of their files.

    Without `assignments` the rows are deleted.
    """
    change = partial(apply_assignments, context.engine, assignments=assignments) if assignments else None
    for match in matches.files:
        for rows in read_new_rows(context, matches.split, match, change):
            writer.write(rows)


def read_new_rows(
    context: TableContext, split: DataSplit, match: FileMatch, change: ChangeRows | None
) -> Iterator[pa.Table]:
    """Read what replaces the rows found in a file; without deletion vectors also the other live rows of the file.

    All columns are read, in the order of the file. `change` gets the rows found in this order; None deletes them.
    """
    whole_files = not context.options.deletion_vectors_enabled
    if change is None and (match.removes_all_rows or not whole_files):
        return
    start = 0
    for batch in read_data_file(Bucket.of(context, split), match.file, context.schema.fields):
        rows = _select_new_rows(batch, match, start, change, whole_files)
        start += batch.num_rows
        if rows.num_rows:
            yield rows


def _select_new_rows(
    batch: pa.RecordBatch, match: FileMatch, start: int, change: ChangeRows | None, whole_files: bool
) -> pa.Table:
    found, deleted = match.mask(start, batch.num_rows), match.before.mask(start, batch.num_rows)
    if change is None:
        return pa.Table.from_batches([filter_rows(batch, ~found & ~deleted)])
    changed = change(batch.filter(pa.array(found)))
    if not whole_files:
        return changed
    replaced = replace_rows(batch, np.flatnonzero(found), changed)
    return pa.Table.from_batches([filter_rows(replaced, ~deleted)])


def build_removal_message(
    context: TableContext, place: BucketPlace, files: Sequence[FileMatch], vectors: BucketVectors
) -> CommitMessage:
    """Return the message that removes rows by deletion vectors, or whole files with their vectors.

    Without `deletion-vectors.enabled` whole files are removed.
    """
    marks = context.options.deletion_vectors_enabled
    removed_files = [match.file for match in files if match.removes_all_rows or not marks]
    changed = {m.file.file_name: m.after for m in files if marks and not m.removes_all_rows}
    change = write_vectors(context, vectors, changed, removed={f.file_name for f in removed_files})
    return CommitMessage(
        place.partition,
        place.bucket,
        place.total_buckets,
        place.bucket_path,
        DataIncrement(
            deleted_files=removed_files,
            new_index_files=change.new,
            deleted_index_files=change.deleted,
        ),
    )
