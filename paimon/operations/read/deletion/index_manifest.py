"""The deletion vectors of a snapshot, by data file.

Law: an index manifest is the complete list of live index files; each data file has at most one vector. Reads ask by
data file, so that a vector of a file that is not live is passed over, as in Java; `fsck` names it. Source:
`IndexFileHandler`, `SnapshotReaderImpl.getDeletionFiles`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry
from paimon.domain.paths import check_within, join, stored_segment
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.splits import DeletionFile
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import read_index_manifest
from paimon.ports.engine import Engine


def deletion_files(
    engine: Engine, table: TableDefinition, snapshot: Snapshot
) -> Mapping[BucketKey, Mapping[str, DeletionFile]]:
    """Where each data file's deletion vector lies, by partition and bucket and then by file name."""
    if snapshot.index_manifest is None:
        return {}
    source = table.paths.manifest(snapshot.index_manifest)
    found: dict[BucketKey, dict[str, DeletionFile]] = {}
    for entry in read_index_manifest(engine, table, snapshot.index_manifest):
        if entry.kind is FileKind.DELETE:
            continue
        if entry.index_type != DELETION_VECTORS:
            if entry.deletion_vectors:
                raise CorruptTable(source, f"holds deletion vectors in an index of type {entry.index_type!r:.80}")
            continue
        path = index_path(table, entry, source)
        files = found.setdefault((entry.partition, entry.bucket), {})
        for vector in entry.deletion_vectors or ():
            if vector.data_file in files:
                raise CorruptTable(source, f"names two deletion vectors for {vector.data_file}")
            files[vector.data_file] = DeletionFile(path, vector)
    return found


def index_path(table: TableDefinition, entry: IndexManifestEntry, source: str) -> str:
    """Where an index file lies; `source` is the file that names it."""
    if entry.external_path is not None:
        return check_within(entry.external_path, (table.location, *table.allowed_roots), source)
    if table.options.index_file_in_data_file_dir:
        directory = BucketPaths.of(table).directory(entry.partition, entry.bucket)
        return join(directory, stored_segment(entry.file_name, source))
    return table.paths.index(entry.file_name, source)
