"""Writing deletion vectors: the index files of a bucket, and which of the standing ones they replace.

Law: either all files are written and answered, or none is left behind. Source: `BucketedDvMaintainer`,
`AppendDeleteFileMaintainer`, `DeletionVectorIndexFileWriter`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import field, frozen

from paimon.domain.deletion.index_file import FileVector, IndexFileContent, encode_index_file, encode_index_files
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.maintenance.vector_files import rewrites, vector_entries
from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, FileKind, IndexManifestEntry
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.file_deletion import delete_files
from paimon.operations.read.deletion.index_manifest import index_path
from paimon.operations.read.deletion.vectors import read_vector
from paimon.operations.read.manifests import read_index_manifest
from paimon.operations.undo import undone_on_failure
from paimon.ports.engine import Engine


def _entries(values: Iterable[IndexManifestEntry]) -> tuple[IndexManifestEntry, ...]:
    return tuple(values)


@frozen
class IndexChange:
    """Index files written, and those that they replace."""

    new: tuple[IndexManifestEntry, ...] = field(converter=_entries, default=())
    deleted: tuple[IndexManifestEntry, ...] = field(converter=_entries, default=())


@frozen(eq=False)
class BucketVectors:
    """The deletion vectors of one bucket as a snapshot has them; it travels with the tasks that change them.

    Parameters
    ----------
    held : tuple of IndexManifestEntry
        The bucket's index files.
    """

    partition: bytes
    bucket: int
    held: tuple[IndexManifestEntry, ...] = field(converter=_entries, default=())

    def files(self, table: TableDefinition) -> dict[str, DeletionFile]:
        """Where the vector of each data file lies."""
        return {
            r.data_file: DeletionFile(index_path(table, entry, "index manifest"), r)
            for entry in self.held
            for r in entry.deletion_vectors or ()
        }


def held_vectors(
    engine: Engine, table: TableDefinition, snapshot: Snapshot | None
) -> Mapping[BucketKey, BucketVectors]:
    """The vectors that a snapshot holds, by bucket; buckets without vectors are missing."""
    name = None if snapshot is None else snapshot.index_manifest
    entries = () if name is None else read_index_manifest(engine, table, name)
    return {key: BucketVectors(*key, found) for key, found in vector_entries(entries).items()}


def write_vectors(
    engine: Engine,
    table: TableDefinition,
    vectors: BucketVectors,
    changed: Mapping[str, DeletionVector],
    removed: Collection[str] = (),
) -> IndexChange:
    """Write the index files that hold after a change of a bucket's vectors.

    Parameters
    ----------
    changed : mapping
        By data file, its whole new vector.
    removed : collection of str
        Data files that are replaced: their vectors go.
    """
    touched = {*changed, *removed}
    places = vectors.files(table)
    if not changed and not touched & places.keys():
        return IndexChange()
    bitmap64, target = table.options.deletion_vectors_bitmap64, table.options.deletion_vector_index_file_bytes
    plan = rewrites(vectors.held, touched, table.is_bucketed)
    kept = [[(r.data_file, read_vector(engine, places[r.data_file])) for r in rewrite.kept] for rewrite in plan]
    new: list[FileVector] = sorted(changed.items())
    if table.is_bucketed:
        contents = [encode_index_file([*(v for group in kept for v in group), *new], bitmap64)]
    else:
        contents = [c for group in [*kept, new] for c in encode_index_files(group, bitmap64, target)]
    return IndexChange(_written(engine, table, vectors, contents), [rewrite.entry for rewrite in plan])


def _written(
    engine: Engine, table: TableDefinition, vectors: BucketVectors, contents: Sequence[IndexFileContent]
) -> list[IndexManifestEntry]:
    made: list[IndexManifestEntry] = []
    uuid = engine.ids.uuid()
    with undone_on_failure(lambda: delete_index_files(engine, table, made)):
        for number, content in enumerate(contents):
            entry = _entry(vectors, f"index-{uuid}-{number}", content)
            with engine.files.create(index_path(table, entry, "index manifest")) as sink:
                sink.write(content.data)
            made.append(entry)
    return made


def _entry(vectors: BucketVectors, name: str, content: IndexFileContent) -> IndexManifestEntry:
    ranges = [DeletionVectorRange(p.data_file, p.offset, p.length, p.cardinality) for p in content.places]
    return IndexManifestEntry(
        FileKind.ADD, vectors.partition, vectors.bucket, DELETION_VECTORS, name, len(content.data), len(ranges),
        tuple(ranges),
    )  # fmt: skip


def delete_index_files(engine: Engine, table: TableDefinition, entries: Iterable[IndexManifestEntry]) -> None:
    """Remove index files that no commit will name."""
    paths = [index_path(table, entry, "index manifest") for entry in entries]
    if paths:
        delete_files(engine, paths)
