"""Write what a MERGE changes: rows of primary-key tables as changes, rows of append tables as new files or vectors.

Invariant: one writer writes all new rows, so that the merge becomes one commit. The target streams; memory holds one
part of the source, and for append tables the numbers of the changed rows. Source: `MergeIntoPaimonTable`.
"""

# How old rows are replaced depends on the table, and on whether the source is merged in parts (see `merge_source`):
#
#     primary key                          changes go to the writer by key; no position is needed
#     append, deletion vectors             find all changed rows; append their new versions; mark the old ones
#     append, without, one part            find the files with a change, reading each up to its first one; then read
#                                          these files once more, and write all of their remaining rows
#     append, without, several parts       as with deletion vectors, but at the end replace the files
#
# In the last case several parts can change one file, and no part knows the changes of the others. So each part writes
# only the new versions of its rows. `_Output.add_match` joins the positions that the parts changed, and after the last
# part `_Output.remove_rows` reads each such file again, and writes its unchanged rows.
#
# Old rows are removed after all parts, with one message for each bucket: its deletion vectors share index files. Rows
# of the source without a match are inserted after the part has seen the whole target. Each row of the source is in one
# part, so none is inserted twice.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

from paimon.domain.assignment.merge_clauses import MergeAction
from paimon.domain.assignment.merge_columnar import Mask
from paimon.domain.commit.message import CommitMessage
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import delete_index_files, get_bucket_vectors, read_bucket_vectors
from paimon.operations.read.plan import plan_scan
from paimon.operations.row_level.merge import WrittenMerge
from paimon.operations.row_level.merge_changes import (
    FileChanges,
    compute_insert_rows,
    compute_keyed_rows,
    find_changed_files,
    find_changes_in_split,
    group_by_clause,
    merge_file,
    read_keyed_target,
    read_merged_rows,
)
from paimon.operations.row_level.merge_match import MergeMatcher, RowChanges
from paimon.operations.row_level.row_id_changes import write_row_id_merge
from paimon.operations.row_level.row_id_updates import RowIdUpdates
from paimon.operations.row_level.selected_rows import (
    FileMatch,
    build_removal_message,
    open_append_writer,
    read_new_rows,
)
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

PreparePart: TypeAlias = Callable[[], tuple[MergeMatcher, Predicate | None]]
"""Reads a part of the source, and returns the merge with it."""


def write_merge(
    context: TableContext, snapshot: Snapshot | None, parts: Sequence[PreparePart], commit_user: str
) -> WrittenMerge:
    """Write the changes of a MERGE into a snapshot (None: an empty table).

    Each function of `parts` returns the merge with a part of the source, and a condition. That is true for each row of
    the target that can matter to the part. One part is in memory at a time, and each part reads the target.
    """
    if context.options.data_evolution_enabled:
        opened = [partial(_open_matcher, prepare) for prepare in parts]
        return WrittenMerge(*write_row_id_merge(context, RowIdUpdates(context, snapshot), opened, commit_user))
    writer = _open_writer(context, commit_user)
    output = _Output(context, writer, is_divided=len(parts) > 1)
    with undo_on_failure(output.undo):
        for prepare in parts:
            _write_part(context, snapshot, output, *prepare())
        if snapshot is not None:
            output.remove_rows(snapshot)
        return WrittenMerge([*output.messages, *output.writer.prepare_commit()], output.counts)


def _open_matcher(prepare: PreparePart) -> MergeMatcher:
    return prepare()[0]


def _open_writer(context: TableContext, commit_user: str) -> TableWriter:
    if context.schema.primary_keys:
        return TableWriter(context, commit_user)
    return open_append_writer(context, commit_user, concurrent=True)


def _write_part(
    context: TableContext,
    snapshot: Snapshot | None,
    output: _Output,
    matcher: MergeMatcher,
    condition: Predicate | None,
) -> None:
    """Write the changes that a part of the source makes."""
    part = _PartMerge(context, matcher, condition, output, np.zeros(matcher.source.num_rows, np.bool_))
    # Without a row in the source, only rows that it does not match can change.
    if snapshot is not None and (matcher.source.num_rows or matcher.merge.not_matched_by_source):
        if context.schema.primary_keys:
            part.change_keyed_rows(snapshot)
        else:
            part.change_append_rows(snapshot)
    part.insert_rows()


@frozen(eq=False)
class _Output:
    """What all parts of a merge write: new rows, the positions of old rows, the counts."""

    context: TableContext
    writer: TableWriter
    is_divided: bool
    found: dict[BucketKey, dict[str, FileMatch]] = field(factory=dict)
    splits: dict[BucketKey, DataSplit] = field(factory=dict)
    counts: Counter[MergeAction] = field(factory=Counter)
    messages: list[CommitMessage] = field(factory=list)

    def undo(self) -> None:
        """Delete what was written before an error."""
        self.writer.abort()
        delete_index_files(self.context, [e for m in self.messages for e in m.data.new_index_files])

    def add_match(self, split: DataSplit, match: FileMatch) -> None:
        """Record the old rows of a file that a part of the source changes."""
        key = split.partition, split.bucket
        self.splits.setdefault(key, split)
        files = self.found.setdefault(key, {})
        earlier = files.get(match.file.file_name)
        if earlier is not None:
            match = FileMatch(match.file, match.before, earlier.after.with_deleted(match.after.positions))
        files[match.file.file_name] = match

    def remove_rows(self, snapshot: Snapshot) -> None:
        """Make the messages that remove the old rows of append tables."""
        old_vectors = read_bucket_vectors(self.context, snapshot) if self.found else {}
        for key, files in self.found.items():
            split, matches = self.splits[key], tuple(files.values())
            if self.is_divided:
                # Each part wrote its new rows only. The unchanged rows of replaced files are known after the last one.
                for match in matches:
                    for rows in read_new_rows(self.context, split, match, None):
                        self.writer.write(rows)
            vectors = get_bucket_vectors(old_vectors, key)
            self.messages.append(build_removal_message(self.context, split, matches, vectors))


@frozen(eq=False)
class _PartMerge:
    """A part of a source that is being merged, and which of its rows matched so far."""

    context: TableContext
    matcher: MergeMatcher
    condition: Predicate | None
    output: _Output
    matched: Mask

    def insert_rows(self) -> None:
        """Write the rows of the source without a match."""
        for rows, kinds in compute_insert_rows(self.context, self.matcher, self.matched):
            self.output.writer.write(rows, kinds)
            self.output.counts[MergeAction.INSERT] += rows.num_rows

    def change_keyed_rows(self, snapshot: Snapshot) -> None:
        """Read the rows of a primary-key table, also those that reads skip before a compaction, and write changes."""
        merge = self.matcher.merge
        for split in plan_scan(self.context.with_hidden_rows(), ScanRequest(snapshot, self.condition)).splits:
            for batch in read_keyed_target(self.context, merge, self.condition, split):
                changes = self.matcher.find_changes(batch)
                self.matched[changes.matched] = True
                for clause, rows, kinds in compute_keyed_rows(self.context, self.matcher, batch, changes):
                    self.output.writer.write(rows, kinds)
                    self.output.counts[clause.action] += rows.num_rows

    def change_append_rows(self, snapshot: Snapshot) -> None:
        """Find the changed rows of an append table, write their new versions, and record the old ones."""
        if self.context.options.deletion_vectors_enabled or self.output.is_divided:
            self._write_new_versions(snapshot)
        else:
            self._rewrite_files(snapshot)

    def _rewrite_files(self, snapshot: Snapshot) -> None:
        """Write all remaining rows of the files with a changed row."""
        splits = plan_scan(self.context, ScanRequest(snapshot, self.condition)).splits
        task = partial(find_changed_files, self.context.for_tasks(len(splits)), self.matcher)
        for split, found in zip(splits, self.context.engine.executor.map(task, splits), strict=True):
            self.matched[found.matched] = True
            for file, before in found.files:
                parts = []
                for rows, changes in merge_file(self.context, self.matcher, split, file, before):
                    self.matched[changes.matched] = True
                    parts.append(changes)
                    if rows.num_rows:
                        self.output.writer.write(rows)
                self._record_changes(split, FileChanges.of(file, before, RowChanges.of_parts(parts)))

    def _write_new_versions(self, snapshot: Snapshot) -> None:
        """Write only the new versions of changed rows."""
        for bucket in self._find_buckets(snapshot):
            for file in bucket.files:
                for rows in read_merged_rows(self.context, self.matcher, bucket.split, file, whole_files=False):
                    self.output.writer.write(rows)
                self._record_changes(bucket.split, file)

    def _record_changes(self, split: DataSplit, file: FileChanges) -> None:
        """Count the changed rows of a file, and record that they are removed."""
        for clause, numbers, _ in group_by_clause(self.matcher.merge, file.changes):
            self.output.counts[clause.action] += len(numbers)
        self.output.add_match(split, file.match)

    def _find_buckets(self, snapshot: Snapshot) -> Sequence[_BucketChanges]:
        """Search all splits, concurrently, and group the changed files by bucket."""
        splits = plan_scan(self.context, ScanRequest(snapshot, self.condition)).splits
        task = partial(find_changes_in_split, self.context.for_tasks(len(splits)), self.matcher)
        found: dict[BucketKey, _BucketChanges] = {}
        for split, done in zip(splits, self.context.engine.executor.map(task, splits), strict=True):
            self.matched[done.matched] = True
            if done.files:
                earlier = found.setdefault((split.partition, split.bucket), _BucketChanges(split, ()))
                found[split.partition, split.bucket] = _BucketChanges(split, (*earlier.files, *done.files))
        return list(found.values())


@frozen(eq=False)
class _BucketChanges:
    """The files of one bucket with changed rows."""

    split: DataSplit
    files: tuple[FileChanges, ...]
