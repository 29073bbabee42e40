"""Build the file indexes of existing data files again, by the options of the table now.

Invariant: no data file changes, and no entry of a file equals an earlier one. A file whose indexes are already right
keeps its entry, so a second call does nothing. If another commit replaced a file first, CommitConflict is raised, and
no file is left behind.
Source: `FileIndexProcessor`, `RewriteFileIndexProcedure`.
"""

# Manifests identify a file by its name, extra files and embedded index, among others. A reader collects all deleted
# identities first, so an entry that is deleted can never be added again: the file would be lost.
#
#     ADD f           DELETE f, ADD f with index A           DELETE f with index A, ADD f        f is deleted!
#
# So each rewrite makes a new identity: a container gets a mark that readers ignore. A file whose indexes are removed
# gets a container without indexes.

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.index.build_indexes import IndexBuilder
from paimon.domain.index.container import ColumnIndex, decode_container, encode_container
from paimon.domain.manifest.entries import INDEX_SUFFIX, DataFileMeta, to_files
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.declared_indexes import DeclaredIndex, declare_indexes, supports_type, value_type
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.commit import commit
from paimon.operations.commit.prepared_files import abort_on_failure, abort_on_refusal, delete_prepared
from paimon.operations.compact.compact import find_buckets
from paimon.operations.compact.partition_condition import bind_partition_condition
from paimon.operations.data_files.file_indexes import index_path
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import check_unexpired, latest_snapshot
from paimon.operations.table_context import TableContext


@frozen
class IndexWork:
    """The files of one bucket whose indexes are built by one task."""

    partition: bytes
    bucket: int
    total_buckets: int
    directory: str
    files: tuple[DataFileMeta, ...] = field(converter=to_files)


@frozen
class IndexesRewritten:
    """What a rewrite of file indexes did."""

    # the snapshot of the rewrite; None if all indexes were right
    snapshot_id: int | None = None
    # the partitions and files whose indexes changed
    partitions: int = 0
    files: int = 0


@on_same_table
def rewrite_file_indexes(context: TableContext, commit_user: str, where: Predicate | None = None) -> IndexesRewritten:
    """Build indexes of files (of partitions in `where`) and commit; CommitConflict if replaced or expired."""
    predicate = None if where is None else bind_partition_condition(context, where)
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return IndexesRewritten()
    with check_unexpired(context, snapshot, "rewrite the indexes again"):
        messages = _rewrite_buckets(context, snapshot, commit_user, predicate)
    if not messages:
        return IndexesRewritten()
    with abort_on_refusal(context, messages, commit_user, snapshot):
        result = commit(context, CommitRequest(messages, commit_user))
    files = sum(len(m.compact.compact_after) for m in messages)
    return IndexesRewritten(result.snapshot_ids[-1], len({m.partition for m in messages}), files)


def _rewrite_buckets(
    context: TableContext, snapshot: Snapshot, commit_user: str, predicate: Predicate | None
) -> list[CommitMessage]:
    directories = BucketPaths.of(context.table)
    works = [
        IndexWork(b.partition, b.bucket, b.total_buckets, directories.directory(b.partition, b.bucket), b.files)
        for b in find_buckets(context, snapshot, predicate)
        if b.bucket >= 0
    ]
    messages: list[CommitMessage] = []
    with abort_on_failure(context, messages, commit_user, snapshot):
        run, discard = partial(rewrite_bucket, context.for_tasks(len(works))), partial(delete_prepared, context)
        for message in context.engine.executor.map(run, works, discard):
            messages += [] if message is None else [message]
            context.engine.observer.progress("building indexes", len(messages), len(works))
    return messages


def rewrite_bucket(context: TableContext, work: IndexWork) -> CommitMessage | None:
    """Build the indexes of the files of a bucket; None if no index changes."""
    split = DataSplit(0, work.partition, work.bucket, work.total_buckets, work.directory, work.files)
    bucket = Bucket.of(context, split)
    before: list[DataFileMeta] = []
    after: list[DataFileMeta] = []

    def undo() -> None:
        """Delete the index files that were written."""
        paths = [index_path(bucket.path_of(file), file) for file in after]
        context.files.delete([path for path in paths if path is not None])

    with undo_on_failure(undo):
        for file in work.files:
            indexed = _index_file(bucket, file)
            if indexed is not file:
                before.append(file)
                after.append(indexed)
    if not after:
        return None
    increment = CompactIncrement(tuple(before), tuple(after))
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _index_file(bucket: Bucket, file: DataFileMeta) -> DataFileMeta:
    """Return the metadata of a file with new indexes; the same object if they are right."""
    stored = bucket.columns_of(file)
    declared = _declare_for_file(bucket, stored)
    indexes = _build_indexes(bucket, file, stored, declared) if declared else []
    if indexes == _read_stored(bucket, file):
        return file
    data = encode_container(indexes, bucket.context.engine.ids.uuid().encode())
    others = tuple(name for name in file.extra_files if not name.endswith(INDEX_SUFFIX))
    if not indexes or len(data) <= bucket.context.options.file_index_in_manifest_threshold_bytes:
        return evolve(file, embedded_index=data, extra_files=others)
    # A new name, because the files of older snapshots stay, and another process may build indexes at the same time.
    name = f"{file.file_name}.{bucket.context.engine.ids.uuid()}{INDEX_SUFFIX}"
    indexed = evolve(file, embedded_index=None, extra_files=(*others, name))
    path = index_path(bucket.path_of(file), indexed)
    assert path is not None
    with bucket.context.files.create(path) as sink:
        sink.write(data)
    return indexed


def _declare_for_file(bucket: Bucket, stored: Sequence[DataField]) -> tuple[DeclaredIndex, ...]:
    """Return the declared indexes of the columns that a file has, by their names and types there."""
    schema = bucket.context.schema
    by_id = {column.id: column for column in stored}
    found: list[DeclaredIndex] = []
    for index in declare_indexes(schema.fields, schema.options):
        column = by_id.get(schema.field_of(index.column).id)
        if column is not None and supports_type(index.kind, value_type(index, column)):
            found.append(evolve(index, column=column.name))
    return tuple(found)


def _build_indexes(
    bucket: Bucket, file: DataFileMeta, stored: Sequence[DataField], declared: Sequence[DeclaredIndex]
) -> list[ColumnIndex]:
    names = {index.column for index in declared}
    columns = [column for column in stored if column.name in names]
    builder = IndexBuilder(declared, columns)
    for batch in read_data_file(bucket, file, columns):
        builder.add(pa.Table.from_batches([batch]))
    return decode_container(encode_container(builder.close()), file.file_name)


def _read_stored(bucket: Bucket, file: DataFileMeta) -> list[ColumnIndex] | None:
    """Return the indexes of a file; None if their file is missing or damaged."""
    path = index_path(bucket.path_of(file), file)
    if path is None:
        return [] if file.embedded_index is None else decode_container(file.embedded_index, file.file_name)
    try:
        return decode_container(bucket.context.files.read(path), path)
    except (NotFound, CorruptTable):
        return None
