"""Read deletion vectors, collect the deleted rows of a bucket, and write its vectors as index files.

Invariant: only the byte range of a vector is read; it is cached. Either all index files of a change are written and
returned, or none is left behind.

Source: `DeletionVectorsIndexFile`, `BucketedDvMaintainer`, `AppendDeleteFileMaintainer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from paimon.domain.commit.index_entries import plan_rewrites, vector_entries
from paimon.domain.deletion.vector import (
    DeletionVector,
    FileVector,
    IndexFileContent,
    Positions,
    decode_vector,
    encode_index_file,
    encode_index_files,
    stored_bytes,
)
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.manifest.entries import (
    DELETION_VECTORS,
    DataFileMeta,
    DeletionVectorRange,
    FileKind,
    IndexManifestEntry,
)
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.metadata.manifests import index_path, place_index_file, read_index_manifest
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_CACHE_ENTRY_BYTES = 1_000
"""Size of the cache's containers and of the vector's objects without the bitmaps."""


def read_vector(engine: Engine, deletion: DeletionFile) -> DeletionVector:
    """Return the layout of data files on a level; Unsupported if rows of this table cannot be written."""
    length, view = deletion.range.length, f"vector {deletion.range.offset}+{deletion.range.length}"
    cached = engine.cache.get(deletion.path, view)
    if isinstance(cached, DeletionVector):
        return cached
    vector = decode_vector(_read_range(engine, deletion), length, deletion.path)
    _check_cardinality(deletion, vector)
    engine.cache.put(deletion.path, vector, _CACHE_ENTRY_BYTES + 2 * length, view)
    return vector


def _check_cardinality(deletion: DeletionFile, vector: DeletionVector) -> None:
    recorded = deletion.range.cardinality
    if recorded is not None and recorded != vector.cardinality:
        deleted = f"deletes {vector.cardinality} rows of data file {deletion.range.data_file!r}"
        raise CorruptTable(deletion.path, f"{deleted}, but the index manifest records {recorded}")


def _read_range(engine: Engine, deletion: DeletionFile) -> bytes:
    """Read the stored bytes of a vector; fewer if the file ends before."""
    try:
        with engine.files.open(deletion.path) as source:
            available = source.size() - deletion.range.offset
            length = min(stored_bytes(deletion.range.length), available)
            return bytes(source.read_at(length, deletion.range.offset)) if length > 0 else b""
    except NotFound as error:
        raise CorruptTable(deletion.path, "does not exist, but the index manifest references it") from error
    except (pa.ArrowException, OSError) as error:
        raise CorruptTable(deletion.path, f"cannot be read: {error}") from error


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


def get_bucket_vectors(vectors: Mapping[BucketKey, BucketVectors], key: BucketKey) -> BucketVectors:
    """Return the deletion vectors of a bucket; those of a bucket without an index file are empty."""
    return vectors.get(key, BucketVectors(*key))


def write_vectors(
    context: TableContext,
    vectors: BucketVectors,
    changed: Mapping[str, DeletionVector],
    removed: Collection[str] = (),
) -> IndexChange:
    """Write a bucket's index files; `changed` has complete new vectors, `removed` names files without one."""
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
            entry = place_index_file(context.table, _build_entry(vectors, f"index-{uuid}-{number}", content))
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


class WorkingVectors:
    """The vectors before a compaction and the rows marked since; a state machine."""

    def __init__(self, context: TableContext, vectors: BucketVectors) -> None:
        self._context = context
        self._vectors = vectors
        self._deletion_files = vectors.files(context.table)
        self._marked: dict[str, list[Positions]] = {}

    def find_vector(self, file: DataFileMeta) -> DeletionVector | None:
        """Return the vector of a file before the compaction; None if it had none."""
        return self._find_by_name(file.file_name)

    def find_marked(self, file: DataFileMeta) -> DeletionVector | None:
        """Return the vector of a file with the rows marked so far; None if no row is deleted."""
        positions = self._marked.get(file.file_name)
        vector = self._find_by_name(file.file_name)
        return vector if positions is None else (vector or DeletionVector()).with_deleted(np.concatenate(positions))

    def mark(self, file: DataFileMeta, positions: Positions) -> None:
        """Mark rows of a file, given by their positions, as deleted."""
        self._marked.setdefault(file.file_name, []).append(positions)

    def write(self, removed: Collection[str]) -> IndexChange:
        """Write the new index files, without the vectors of the replaced data files `removed`."""
        changed = {
            name: (self._find_by_name(name) or DeletionVector()).with_deleted(np.concatenate(positions))
            for name, positions in self._marked.items()
            if name not in removed
        }
        return write_vectors(self._context, self._vectors, changed, removed)

    def _find_by_name(self, name: str) -> DeletionVector | None:
        deletion = self._deletion_files.get(name)
        return None if deletion is None else read_vector(self._context.engine, deletion)
