"""Remove changed rows of append tables without buckets: one task for all files of a partition writes deletion vectors.

Tasks that find rows in splits send the rows to remove, and the messages of the files that they wrote, to these tasks.

Invariant: the index files of a partition are written by one task, with the function that runs embedded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.scan.assemble import BucketKey
from paimon.operations.data_files.deletion_vectors import BucketVectors, delete_index_files
from paimon.operations.metadata.delete_files import undo_on_failure
from paimon.operations.row_level.selected_rows import BucketMatches, FileMatch, build_removal_message
from paimon.operations.table_context import TableContext
from paimon.operations.write.route import Address, find_tasks
from paimon.spark.tasks.shuffle import receive_rows, send_rows

_MESSAGES, _FILE, _POSITIONS = "messages", "file", "positions"


def send_removals(
    found: Sequence[BucketMatches], written: Sequence[CommitMessage], tasks: int, source: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows to remove and the messages of new files, in the form that Spark shuffles to `RemoveRows`.

    `found` has one item for each split. `tasks` counts the receiving tasks; `source` is the number of the sender.
    """
    messages = pa.table({_MESSAGES: pa.array([encode(written)], pa.binary())})
    yield from send_rows(messages, np.array([source % tasks], np.int32), source, 0)
    for position, matches in enumerate(found, 1):
        place = matches.split
        files = [
            CommitMessage(
                place.partition, place.bucket, place.total_buckets, place.bucket_path,
                DataIncrement(deleted_files=[match.file]),
            )
            for match in matches.files
        ]  # fmt: skip
        rows = pa.table({
            _FILE: pa.array([encode([file]) for file in files], pa.binary()),
            _POSITIONS: pa.array([match.after.positions for match in matches.files], pa.list_(pa.int64())),
        })  # fmt: skip
        (task,) = find_tasks([Address(place.partition, place.bucket)], tasks)
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
                (place,) = decode(data.as_py())
                (file,) = place.data.deleted_files
                match = FileMatch(file, DeletionVector(), DeletionVector.of(np.asarray(positions.values)))
                found.setdefault((place.partition, place.bucket), (place, []))[1].append(match)
        removals: list[CommitMessage] = []
        with undo_on_failure(lambda: self._undo(removals)):
            for key, (place, files) in found.items():
                vectors = self.old_vectors.get(key, BucketVectors(*key))
                removals.append(build_removal_message(self.context, place, files, vectors))
            return encode([*messages, *removals])

    def _undo(self, removals: Sequence[CommitMessage]) -> None:
        delete_index_files(self.context, [e for m in removals for e in m.data.new_index_files])
