"""Write the deletion vectors of a bucket as index files, and determine which index files they replace.

Invariant: either all index files are written and returned, or none is left behind.

Source: `BucketedDvMaintainer`, `AppendDeleteFileMaintainer`, `DeletionVectorIndexFileWriter`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import field, frozen

from paimon.domain.deletion.index_file import FileVector, IndexFileContent, encode_index_file, encode_index_files
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.maintenance.vector_files import plan_rewrites, vector_entries
from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, FileKind, IndexManifestEntry
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.metadata.delete_files import delete_files, undo_on_failure
from paimon.operations.metadata.manifests import index_path, read_index_manifest
from paimon.operations.table_context import TableContext


def _to_tuple(values: Iterable[IndexManifestEntry]) -> tuple[IndexManifestEntry, ...]:
    return tuple(values)


@frozen
class IndexChange:
    """The index files that a change adds, and those that they replace."""

    new: tuple[IndexManifestEntry, ...] = field(converter=_to_tuple, default=())
    deleted: tuple[IndexManifestEntry, ...] = field(converter=_to_tuple, default=())


@frozen(eq=False)
class BucketVectors:
    """The deletion vectors of one bucket in a snapshot; picklable, for the tasks that change them."""

    # the partition as a serialized row
    partition: bytes
    bucket: int
    # the index files of the bucket
    current: tuple[IndexManifestEntry, ...] = field(converter=_to_tuple, default=())

    def files(self, table: TableDefinition) -> dict[str, DeletionFile]:
        """Return the location of the vector of each data file, by file name."""
        return {
            r.data_file: DeletionFile(index_path(table, entry, "index manifest"), r)
            for entry in self.current
            for r in entry.deletion_vectors or ()
        }


def read_bucket_vectors(context: TableContext, snapshot: Snapshot | None) -> Mapping[BucketKey, BucketVectors]:
    """Return the deletion vectors of a snapshot, by partition and bucket; buckets without vectors are missing."""
    name = None if snapshot is None else snapshot.index_manifest
    entries = () if name is None else read_index_manifest(context, name)
    return {key: BucketVectors(*key, found) for key, found in vector_entries(entries).items()}


def write_vectors(
    context: TableContext,
    vectors: BucketVectors,
    changed: Mapping[str, DeletionVector],
    removed: Collection[str] = (),
) -> IndexChange:
    """Write the index files of a bucket after a change of its vectors.

    `changed` has the new, complete vector of each changed data file. The vectors of `removed` data files are removed.
    """
    touched = {*changed, *removed}
    deletion_files = vectors.files(context.table)
    if not changed and not touched & deletion_files.keys():
        return IndexChange()
    bitmap64, target = (
        context.options.deletion_vectors_bitmap64,
        context.options.deletion_vector_index_file_bytes,
    )
    plan = plan_rewrites(vectors.current, touched, context.table.is_bucketed)
    kept_vectors = [
        [(r.data_file, read_vector(context.engine, deletion_files[r.data_file])) for r in rewrite.kept]
        for rewrite in plan
    ]
    new: list[FileVector] = sorted(changed.items())
    if context.table.is_bucketed:
        contents = [encode_index_file([*(v for group in kept_vectors for v in group), *new], bitmap64)]
    else:
        contents = [c for group in [*kept_vectors, new] for c in encode_index_files(group, bitmap64, target)]
    return IndexChange(_write_index_files(context, vectors, contents), [rewrite.entry for rewrite in plan])


def _write_index_files(
    context: TableContext, vectors: BucketVectors, contents: Sequence[IndexFileContent]
) -> list[IndexManifestEntry]:
    """Write index files; delete those already written if one fails."""
    written: list[IndexManifestEntry] = []
    uuid = context.engine.ids.uuid()
    with undo_on_failure(lambda: delete_index_files(context, written)):
        for number, content in enumerate(contents):
            entry = _build_entry(vectors, f"index-{uuid}-{number}", content)
            with context.files.create(index_path(context.table, entry, "index manifest")) as sink:
                sink.write(content.data)
            written.append(entry)
    return written


def _build_entry(vectors: BucketVectors, name: str, content: IndexFileContent) -> IndexManifestEntry:
    ranges = [DeletionVectorRange(p.data_file, p.offset, p.length, p.cardinality) for p in content.places]
    address, size = (vectors.partition, vectors.bucket), len(content.data)
    return IndexManifestEntry(FileKind.ADD, *address, DELETION_VECTORS, name, size, len(ranges), tuple(ranges))


def delete_index_files(context: TableContext, entries: Iterable[IndexManifestEntry]) -> None:
    """Delete index files that no commit will name."""
    paths = [index_path(context.table, entry, "index manifest") for entry in entries]
    if paths:
        delete_files(context.engine, paths)
