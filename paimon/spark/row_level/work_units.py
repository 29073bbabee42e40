"""The work of a row-level change in Spark: units of splits for tasks, and what removes the old rows of append tables.

Invariant: the index files of a bucket are written by one task, with the function that runs embedded.
"""

# Who removes the old rows of an append table? Deletion vectors of one bucket share index files, so one task must write
# them, while many tasks find the rows:
#
#     buckets      unit = all splits of a bucket    the task that changes the unit removes its old rows, too
#     no buckets   unit = one split                 all splits of a partition share index files ("partial units"):
#                                                   unit 0 -- positions -->
#                                                   unit 1 -- positions -->  RemoveRows of the partition -> messages
#                                                   unit 2 -- positions -->
#
# Without deletion vectors, now and earlier, whole files are replaced. Then no index file is shared, and each task
# removes the files of its own unit.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import BucketVectors, delete_index_files, get_bucket_vectors
from paimon.operations.read.plan import plan_scan
from paimon.operations.row_level.selected_rows import BucketMatches, FileMatch, build_removal_message
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address, find_tasks
from paimon.spark.tasks.shuffle import receive_rows, send_rows

_MESSAGES, _FILE, _POSITIONS = "messages", "file", "positions"


def _to_splits(values: Iterable[DataSplit]) -> tuple[DataSplit, ...]:
    return tuple(values)


@frozen(eq=False)
class WorkUnit:
    """Splits of one bucket that one task changes."""

    # At least one split
    splits: tuple[DataSplit, ...] = field(converter=_to_splits)
    # Deletion vectors of the bucket; empty if the unit is only a part of the bucket
    vectors: BucketVectors

    @property
    def key(self) -> BucketKey:
        """The partition and the bucket."""
        return self.splits[0].partition, self.splits[0].bucket


def plan_units(
    context: TableContext,
    snapshot: Snapshot,
    predicate: Predicate | None,
    old_vectors: Mapping[BucketKey, BucketVectors] | None = None,
) -> list[WorkUnit]:
    """Plan the units that can have rows for which a predicate over stored columns is true, in the order of the plan.

    `old_vectors` has the current deletion vectors of an append table.
    """
    splits = plan_scan(context, ScanRequest(snapshot, predicate)).splits
    groups: dict[object, list[DataSplit]] = {}
    for number, split in enumerate(splits):
        groups.setdefault((split.partition, split.bucket) if context.table.is_bucketed else number, []).append(split)
    vectors = old_vectors if old_vectors is not None and context.table.is_bucketed else {}
    keys = [(group[0].partition, group[0].bucket) for group in groups.values()]
    return [WorkUnit(group, get_bucket_vectors(vectors, key)) for key, group in zip(keys, groups.values(), strict=True)]


def has_partial_units(context: TableContext, old_vectors: Mapping[BucketKey, BucketVectors]) -> bool:
    """Return whether several units of an append table share deletion vectors, so that one task has to change them."""
    return not context.table.is_bucketed and (context.options.deletion_vectors_enabled or bool(old_vectors))


def send_removals(
    found: Sequence[BucketMatches], written: Sequence[CommitMessage], tasks: int, source: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows to remove and the messages of new files, in the form that Spark shuffles to `RemoveRows`.

    `found` has one item for each split. `tasks` counts the receiving tasks; `source` is the number of the sender.
    """
    messages = pa.table({_MESSAGES: pa.array([encode(written)], pa.binary())})
    yield from send_rows(messages, np.array([source % tasks], np.int32), source, 0)
    for position, matches in enumerate(found, 1):
        split = matches.split
        files = [
            CommitMessage(
                split.partition, split.bucket, split.total_buckets, split.bucket_path,
                DataIncrement(deleted_files=[match.file]),
            )
            for match in matches.files
        ]  # fmt: skip
        rows = pa.table({
            _FILE: pa.array([encode([file]) for file in files], pa.binary()),
            _POSITIONS: pa.array([match.after.positions for match in matches.files], pa.list_(pa.int64())),
        })  # fmt: skip
        (task,) = find_tasks([Address(split.partition, split.bucket)], tasks)
        yield from send_rows(rows, np.full(rows.num_rows, task, np.int32), source, position)


@frozen(eq=False)
class RemoveRows:
    """The task that removes the rows of its partitions, and returns all messages that it received or created."""

    context: TableContext
    # Deletion vectors before the change
    old_vectors: Mapping[BucketKey, BucketVectors]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """Return the encoded messages of all files."""
        messages: list[CommitMessage] = []
        found: dict[BucketKey, tuple[CommitMessage, list[FileMatch]]] = {}
        for received in receive_rows(batches):
            if _MESSAGES in received.rows.column_names:
                messages += (m for data in received.rows[_MESSAGES].to_pylist() for m in decode(data))
                continue
            for data, positions in zip(*received.rows.select([_FILE, _POSITIONS]).columns, strict=True):
                (removed,) = decode(data.as_py())
                (file,) = removed.data.deleted_files
                match = FileMatch(file, DeletionVector(), DeletionVector.of(np.asarray(positions.values)))
                found.setdefault((removed.partition, removed.bucket), (removed, []))[1].append(match)
        removals: list[CommitMessage] = []
        with undo_on_failure(lambda: self._undo(removals)):
            for key, (removed, files) in found.items():
                vectors = get_bucket_vectors(self.old_vectors, key)
                removals.append(build_removal_message(self.context, removed, files, vectors))
            return encode([*messages, *removals])

    def _undo(self, removals: Sequence[CommitMessage]) -> None:
        delete_index_files(self.context, [e for m in removals for e in m.data.new_index_files])
