"""Write level-0 files again with higher sequence numbers, so that rows that are committed last are the newest ones.

Invariant: rows, row kinds and the order of the rows stay; the distance between two numbers, too. Compactions of these
files are dropped: they have the old numbers, and a later compaction does the same work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.domain.commit.conflicts.late_rows import BucketKey
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.json_text import LONG_MAX
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.commit.checks import list_numbered_files
from paimon.operations.commit.prepared_files import list_prepared_paths
from paimon.operations.data_files.file_layout import FileLayout
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.data_files.write_data_files import RollingFiles
from paimon.operations.metadata.delete_files import undo_on_failure
from paimon.operations.table_context import TableContext


def count_late_bytes(messages: Sequence[CommitMessage], first_numbers: Mapping[BucketKey, int]) -> int:
    """Return the size of the files that `renumber_messages` writes again."""
    late = [m for m in messages if (m.partition, m.bucket) in first_numbers]
    return sum(file.file_size for m in late for file in list_numbered_files(m.data.new_files))


def renumber_messages(
    context: TableContext, messages: Sequence[CommitMessage], first_numbers: Mapping[BucketKey, int]
) -> list[CommitMessage]:
    """Return the messages with new level-0 files in the buckets of `first_numbers`; their old files are deleted."""
    late = [m for m in messages if (m.partition, m.bucket) in first_numbers]
    made: list[CommitMessage] = []

    def undo() -> None:
        context.files.delete(list_prepared_paths(context.table, made, _list_names(late)))

    with undo_on_failure(undo):
        made += context.engine.executor.map(partial(_renumber_bucket, context, first_numbers), late)
    replacements = {(m.partition, m.bucket): m for m in made}
    context.files.delete(list_prepared_paths(context.table, late, _list_names(made)))
    context.engine.observer.count("commit.late_files", len(made))
    return [replacements.get((m.partition, m.bucket), m) for m in messages]


def _list_names(messages: Sequence[CommitMessage]) -> set[str]:
    """Return the names of the written files and index files of messages."""
    files = {f.file_name for m in messages for f in (*m.data.new_files, *m.data.changelog_files)}
    return files | {e.file_name for m in messages for e in m.data.new_index_files}


def _renumber_bucket(
    context: TableContext, first_numbers: Mapping[BucketKey, int], message: CommitMessage
) -> CommitMessage:
    files = list_numbered_files(message.data.new_files)
    offset = first_numbers[message.partition, message.bucket] - min(f.min_sequence_number for f in files)
    split = DataSplit(0, message.partition, message.bucket, message.total_buckets, message.bucket_path, files)
    bucket = Bucket.of(context, split)
    others = [file for file in message.data.new_files if file.level != 0]
    made: list[DataFileMeta] = []

    def undo() -> None:
        written = evolve(message, data=DataIncrement(made), compact=CompactIncrement())
        context.files.delete(list_prepared_paths(context.table, [written]))

    with undo_on_failure(undo):
        for file in files:
            made.append(_renumber_file(bucket, file, offset))
    data = evolve(message.data, new_files=[*made, *others])
    return evolve(message, data=data, compact=CompactIncrement())


def _renumber_file(bucket: Bucket, file: DataFileMeta, offset: int) -> DataFileMeta:
    context = bucket.context
    layout = evolve(FileLayout.of(context.table), target_bytes=LONG_MAX, target_rows=None)
    rolling = RollingFiles(context.engine, layout, bucket.path)
    with undo_on_failure(rolling.abort):
        for batch in read_data_file(bucket, file, (*context.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)):
            rows = pa.Table.from_batches([batch])
            place = rows.column_names.index(SEQUENCE_NUMBER.name)
            numbers = pc.add(rows.column(place), pa.scalar(offset, pa.int64()))
            rolling.write(rows.set_column(place, rows.schema.field(place), numbers))
        (made,) = rolling.close()
    return made
